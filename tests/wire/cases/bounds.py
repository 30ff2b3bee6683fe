"""Answers without an end: memory stays where it is."""
import asyncio
import re
import zlib

from wirelib.objects import JOBS, bookmark, event, job

MEMORY_ROOM_KB = 60_000  # sanitizers keep freed memory for a while


async def memory_kb(client):
    return await client.metric("client", "max_rss_kb")


async def pour(exchange, piece, most_bytes):
    """Sends until the client has had enough; tells how much that was."""
    sent = 0
    try:
        while sent < most_bytes:
            await exchange.chunk(piece)
            sent += len(piece)
            await asyncio.sleep(0)
    except (ConnectionError, OSError):
        pass
    return sent


async def test_endless_answer_to_a_request(bench):
    server = await bench.server()
    client = await bench.client(server)
    before = await memory_kb(client)
    client.tell("get Job ns a")
    request = await server.next()
    await request.start()
    await pour(request, b"x" * 65536, 200_000_000)
    await client.expect(re.compile("^get retry .*larger than 8388608 bytes"), timeout=20)
    assert await memory_kb(client) - before < MEMORY_ROOM_KB
    await client.quit()


async def test_endless_refusal(bench):
    server = await bench.server()
    client = await bench.client(server, "--watch", "Job")
    stream = await server.next(JOBS)
    await stream.start(500)
    await pour(stream, b"y" * 65536, 100_000_000)
    await client.expect(re.compile("^trouble Job .*500: yyy"), timeout=20)
    await client.quit()


async def test_headers_without_end(bench):
    server = await bench.server()
    client = await bench.client(server, "--watch", "Job")
    stream = await server.next(JOBS)
    await stream.raw(b"HTTP/1.1 200 OK\r\n")
    try:
        for number in range(10_000):
            await stream.raw(b"X-%d: %s\r\n" % (number, b"z" * 1000))
    except (ConnectionError, OSError):
        pass
    await client.expect(re.compile("^trouble Job .*headers are larger than 262144 bytes"), timeout=20)
    assert (await server.next(JOBS)).is_watch_list
    await client.quit()


async def test_endless_object_in_a_watch(bench):
    _, client, stream = await bench.synced()
    before = await memory_kb(client)
    await stream.chunk(b'{"type":"ADDED","object":{"kind":"Job","metadata":{"annotations":{')
    try:
        for number in range(2_000):
            await stream.chunk(b'"k%d":"%s",' % (number, b"v" * 50_000))
    except (ConnectionError, OSError):
        pass
    await client.expect(re.compile("^trouble Job "), timeout=20)
    assert await memory_kb(client) - before < MEMORY_ROOM_KB
    await client.quit()


async def test_endless_text_in_a_watch(bench):
    _, client, stream = await bench.synced()
    before = await memory_kb(client)
    await stream.chunk(b'{"type":"ADDED","object":{"kind":"Job","metadata":{"name":"')
    await pour(stream, b"n" * 65536, 100_000_000)
    await client.expect(re.compile("^trouble Job "), timeout=20)
    assert await memory_kb(client) - before < MEMORY_ROOM_KB
    await client.quit()


async def test_bottomless_nesting(bench):
    _, client, stream = await bench.synced()
    await stream.chunk(b'{"type":"ADDED","object":' + b'{"a":' * 5000)
    await client.expect(re.compile("^trouble Job "), timeout=20)
    await client.quit()


async def test_a_gzip_bomb_costs_no_memory(bench):
    server = await bench.server()
    client = await bench.client(server, "--watch", "Job")
    before = await memory_kb(client)
    stream = await server.next(JOBS)
    await stream.start(200, [("Content-Encoding", "gzip")])
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = packer.compress(b'{"type":"ADDED","object":{"kind":"Job","metadata":{"name":"')
    for _ in range(200):
        bomb += packer.compress(b"n" * 1_000_000)
    bomb += packer.flush()
    assert len(bomb) < 400_000
    try:
        await stream.chunk(bomb)
    except (ConnectionError, OSError):
        pass
    await client.until("^trouble Job ", timeout=20)
    assert await memory_kb(client) - before < MEMORY_ROOM_KB
    await client.quit()


async def test_many_objects_leave_no_memory_behind(bench):
    _, client, stream = await bench.synced()
    thing = job("big", 11)
    thing["metadata"]["annotations"] = {f"pad-{i}": "x" * 10_000 for i in range(100)}
    for version in range(11, 41):
        thing["metadata"]["resourceVersion"] = str(version)
        await stream.chunk(event("MODIFIED" if version > 11 else "ADDED", thing))
    await stream.chunk(bookmark(100))
    for _ in range(30):
        await client.expect(re.compile("^(ADDED|MODIFIED) Job ns/big"))
    first = await memory_kb(client)
    for version in range(101, 201):
        thing["metadata"]["resourceVersion"] = str(version)
        await stream.chunk(event("MODIFIED", thing))
    for _ in range(100):
        await client.expect(re.compile("^MODIFIED Job ns/big"))
    assert await memory_kb(client) - first < 30_000
    await client.quit()
