"""HTTP/2: taken where it is offered, streams reset, servers that say goodbye."""
import asyncio
import re

from wirelib.http2 import Http2Server
from wirelib.objects import added, bookmark, seen

FIRST = added("a", 5) + bookmark(10, is_end=True)


async def http2_server(bench):
    context = bench.certificates.context(protocols=("h2", "http/1.1"))
    return await bench.server(context, kind=Http2Server)


def trust(bench):
    return {"certificate-authority": bench.certificates.path("ca.crt")}


async def watching(bench):
    server = await http2_server(bench)
    client = await bench.client(server, "--watch", "Job", cluster=trust(bench))
    connection = await server.next_connection()
    stream = await connection.request()
    await connection.head(stream)
    await connection.data(stream, FIRST)
    await client.expect("sync_start Job", seen("ADDED", "a", 5), "synced Job")
    return server, client, connection, stream


async def resync(server, client):
    connection = await server.next_connection()
    stream = await connection.request()
    await connection.head(stream)
    await connection.data(stream, FIRST)
    await client.expect("sync_start Job", seen("MODIFIED", "a", 5), "synced Job")


async def test_watch_over_http2(bench):
    _, client, connection, stream = await watching(bench)
    await connection.data(stream, added("b", 11)[:17])
    await connection.data(stream, added("b", 11)[17:])
    await client.expect(seen("ADDED", "b", 11))
    await client.quit()


async def test_goaway_under_a_watch(bench):
    server, client, connection, stream = await watching(bench)
    await connection.goaway(stream)
    await connection.data(stream, added("b", 11))  # what was begun is still carried on
    await client.expect(seen("ADDED", "b", 11))
    await connection.close()
    await client.expect(re.compile("^trouble Job"))
    await server.next_connection()
    await client.quit()


async def test_goaway_that_disowns_the_watch(bench):
    server, client, connection, _ = await watching(bench)
    await connection.goaway(0, 2)
    await connection.close()
    await client.expect(re.compile("^trouble Job"))
    await resync(server, client)
    await client.quit()


async def test_stream_reset_under_a_watch(bench):
    server, client, connection, stream = await watching(bench)
    await connection.rst(stream, 2)
    await client.expect(re.compile("^trouble Job"))
    await asyncio.sleep(0.1)
    if not connection.is_over.is_set() and not connection.requests.empty():
        again = await connection.request()  # the connection itself is still good
        await connection.head(again)
        await connection.data(again, FIRST)
        await client.expect("sync_start Job", seen("MODIFIED", "a", 5), "synced Job")
    else:
        await resync(server, client)
    await client.quit()


async def test_requests_share_one_connection(bench):
    server = await http2_server(bench)
    client = await bench.client(server, cluster=trust(bench))
    client.tell("flood 60 Job ns a")
    connection = await server.next_connection()
    streams = [await connection.request() for _ in range(60)]
    for stream in streams:
        await connection.head(stream)
        await connection.data(stream, b"{}", is_end=True)
    for _ in range(60):
        await client.expect(re.compile("^flood done"))
    assert len(server.connections) == 1
    await client.quit()


async def test_a_watch_has_a_connection_of_its_own(bench):
    server, client, connection, _ = await watching(bench)
    client.tell("get Job ns a")
    other = await server.next_connection()
    stream = await other.request()
    await other.head(stream)
    await other.data(stream, b"{}", is_end=True)
    await client.expect(re.compile("^get done"))
    client.tell("watch Pod")
    third = await server.next_connection()
    await third.request()
    assert connection.requests.empty() and len(server.connections) == 3
    await client.quit()


async def test_goaway_after_a_patch_was_sent(bench):
    server = await http2_server(bench)
    client = await bench.client(server, cluster=trust(bench))
    client.tell("patch Job ns a {}")
    connection = await server.next_connection()
    stream = await connection.request()
    await connection.goaway(stream)
    await connection.close()
    await client.expect(re.compile("^patch retry code=0 maybe=1"))
    await client.quit()


async def test_stream_refused_before_it_was_looked_at(bench):
    server = await http2_server(bench)
    client = await bench.client(server, cluster=trust(bench))
    client.tell("patch Job ns a {}")
    connection = await server.next_connection()
    stream = await connection.request()
    await connection.rst(stream, 7)  # REFUSED_STREAM
    # libcurl sends it again by itself, on this connection or another; nothing had been done.
    await asyncio.sleep(0.3)
    if connection.requests.empty() and server.queue.empty():
        await client.expect(re.compile("^patch retry code=0"))
    else:
        second = connection if not connection.requests.empty() else await server.next_connection()
        stream = await second.request()
        await second.head(stream)
        await second.data(stream, b"{}", is_end=True)
        await client.expect(re.compile("^patch done"))
    await client.quit()
