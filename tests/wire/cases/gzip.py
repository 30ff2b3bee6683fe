"""Compressed answers: a WatchList is one gzip member per flush, and may be cut anywhere."""
import re
import zlib

from wirelib.objects import JOBS, added, bookmark, job, job_list, seen


def member(data):
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


async def compressed(bench, *arguments):
    server = await bench.server()
    client = await bench.client(server, "--watch", "Job", "--retry-base-ms", "1", "--retry-max-ms",
                                "2", *arguments)
    return server, client


async def begin(server):
    stream = await server.next(JOBS)
    assert stream.headers["accept-encoding"] == "gzip"
    await stream.start(200, [("Content-Encoding", "gzip")])
    return stream


async def test_watch_list_of_several_members_cut_at_every_boundary(bench):
    server, client = await compressed(bench)
    members = [member(added("a", 5, note="größe") + added("b", 6)[:30]),
               member(added("b", 6)[30:] + added("c", 7)), member(bookmark(10, is_end=True)),
               member(added("d", 11))]
    text = b"".join(members)
    for cut in range(1, len(text)):
        stream = await begin(server)
        await stream.chunk(text[:cut])
        await stream.chunk(text[cut:])
        verb = "ADDED" if cut == 1 else "MODIFIED"
        await client.expect("sync_start Job", seen(verb, "a", 5, rest=" note=größe"),
                            seen(verb, "b", 6), seen(verb, "c", 7))
        if cut > 1:
            await client.expect(seen("DELETED", "d", 11, rest=" bare"))
        await client.expect("synced Job", seen("ADDED", "d", 11))
        await stream.finish()
        await client.expect(re.compile("^trouble Job .*the server ended it"))
    await client.quit()


async def test_byte_by_byte(bench):
    server, client = await compressed(bench)
    stream = await begin(server)
    for byte in member(added("a", 5)) + member(bookmark(10, is_end=True)):
        await stream.chunk(bytes([byte]))
    await client.expect("sync_start Job", seen("ADDED", "a", 5), "synced Job")
    await client.quit()


async def test_what_is_flushed_inside_a_member_is_seen_at_once(bench):
    server, client = await compressed(bench)
    stream = await begin(server)
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    await stream.chunk(packer.compress(added("a", 5)) + packer.flush(zlib.Z_SYNC_FLUSH))
    await client.expect("sync_start Job", seen("ADDED", "a", 5))
    await stream.chunk(packer.compress(bookmark(6, is_end=True)) + packer.flush(zlib.Z_SYNC_FLUSH))
    await client.expect("synced Job")
    await client.quit()


async def test_damaged_member(bench):
    server, client = await compressed(bench)
    stream = await begin(server)
    data = bytearray(member(added("a", 5) + bookmark(10, is_end=True)))
    data[-6] ^= 0x55  # its checksum
    await stream.chunk(bytes(data))
    await client.until("^trouble Job .*isn't sound gzip")
    await client.quit()


async def test_not_gzip_at_all(bench):
    server, client = await compressed(bench)
    stream = await begin(server)
    await stream.chunk(added("a", 5))
    await client.expect(re.compile("^trouble Job .*isn't sound gzip"))
    await client.quit()


async def test_stream_that_ends_inside_a_member(bench):
    server, client = await compressed(bench)
    stream = await begin(server)
    await stream.chunk(member(added("a", 5) + bookmark(10, is_end=True))[:-4])
    await stream.finish()
    await client.until("^trouble Job .*the compressed answer broke off")
    await client.quit()


async def test_a_compressed_page(bench):
    server, client = await compressed(bench)
    await (await server.next(JOBS)).refuse(422, "Invalid")
    await client.expect(re.compile("^trouble"))
    page = await server.next(JOBS)
    assert page.headers["accept-encoding"] == "gzip"
    import json
    body = json.dumps(job_list(9, [job(f"j{i:03}", i + 1) for i in range(200)])).encode()
    await page.answer(200, member(body), [("Content-Encoding", "gzip")])
    await client.expect("sync_start Job")
    for number in range(200):
        await client.expect(seen("ADDED", f"j{number:03}", number + 1))
    await client.expect("synced Job")
    await client.quit()
