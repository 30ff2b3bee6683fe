"""The paged list that stands in where WatchList isn't served, and kinds that aren't served at all."""
import asyncio
import re

from wirelib.objects import JOBS, added, bookmark, event, job, job_list, seen

QUEUES = "/apis/tallyman.dev/v1beta1/queues"
SLICES = "/apis/resource.k8s.io/%s/resourceslices"


async def listing(bench, *arguments):
    """A server without WatchList, and the first request of a list."""
    server = await bench.server()
    client = await bench.client(server, "--watch", "Job", *arguments)
    stream = await server.next(JOBS)
    await stream.refuse(422, "Invalid", "resourceVersionMatch is forbidden for watch")
    await client.expect(re.compile("^trouble Job wait=0: .*422 Invalid"))
    return server, client, await server.next(JOBS)


async def test_pages_then_a_watch_from_their_version(bench):
    server, client, page = await listing(bench, "--page-items", "2")
    assert page.query == {"limit": "2"}, page.query
    await page.answer(200, job_list(40, [job("a", 5), job("b", 7)], "next/+="))
    page = await server.next(JOBS)
    assert page.query == {"limit": "2", "continue": "next/+="}, page.query
    await page.answer(200, job_list(40, [job("c", 9)]))
    await client.expect("sync_start Job", seen("ADDED", "a", 5), seen("ADDED", "b", 7),
                        seen("ADDED", "c", 9), "synced Job")
    stream = await server.next(JOBS)
    assert stream.is_watch and not stream.is_watch_list
    assert stream.query["resourceVersion"] == "40"
    await stream.start()
    await stream.chunk(added("d", 41))
    await client.expect(seen("ADDED", "d", 41))
    await client.quit()


async def test_http_400_means_no_watch_list_too(bench):
    server = await bench.server()
    client = await bench.client(server, "--watch", "Job")
    await (await server.next(JOBS)).refuse(400, "BadRequest", "unknown parameter")
    await client.expect(re.compile("^trouble Job wait=0: .*400"))
    assert not (await server.next(JOBS)).is_watch
    await client.quit()


async def test_expired_continue_token_begins_the_list_again(bench):
    server, client, page = await listing(bench)
    await page.answer(200, job_list(40, [job("a", 5)], "next"))
    page = await server.next(JOBS)
    await page.refuse(410, "Expired", "The provided continue parameter is too old")
    await client.expect("sync_start Job", seen("ADDED", "a", 5),
                        re.compile("^trouble Job .*410 Expired"))
    page = await server.next(JOBS)
    assert "continue" not in page.query, "the rest of another moment isn't taken"
    await page.answer(200, job_list(50, [job("b", 45)]))
    await client.expect("sync_start Job", seen("ADDED", "b", 45),
                        seen("DELETED", "a", 5, rest=" bare"), "synced Job")
    await client.quit()


async def test_reset_in_the_middle_of_a_page(bench):
    server, client, page = await listing(bench)
    await page.head(200, [("Content-Length", "10000")])
    await page.raw(b'{"metadata":{"resourceVersion":"4"},"items":[')
    await client.expect("sync_start Job")  # a reset throws away what hasn't been read yet
    await page.reset()
    await client.expect(re.compile("^trouble Job .*broke off"))
    page = await server.next(JOBS)
    await page.answer(200, job_list(4, []))
    await client.expect("sync_start Job", "synced Job")
    await client.quit()


async def test_429_is_obeyed(bench):
    server, client, page = await listing(bench)
    await page.refuse(429, "TooManyRequests", "slow down", [("Retry-After", "1")])
    line = await client.expect(re.compile("^trouble Job .*429 TooManyRequests"))
    assert int(re.search(r"wait=(\d+)", line).group(1)) >= 1000, line
    await server.nothing(0.8)
    await (await server.next(JOBS)).answer(200, job_list(4, []))
    await client.expect("sync_start Job", "synced Job")
    await client.quit()


async def test_500_and_503_are_tried_again(bench):
    server = await bench.server()
    client = await bench.client(server, "--watch", "Job")
    await (await server.next(JOBS)).refuse(500, "InternalError", "etcd is away")
    await client.expect(re.compile("^trouble Job .*500 InternalError: etcd is away"))
    await (await server.next(JOBS)).answer(503, "starting", [("Retry-After", "0")])
    await client.expect(re.compile("^trouble Job .*503: starting"))
    stream = await server.next(JOBS)
    assert stream.is_watch_list, "trouble isn't taken for a lack of WatchList"
    await stream.start()
    await stream.chunk(bookmark(4, is_end=True))
    await client.expect("sync_start Job", "synced Job")
    await client.quit()


async def test_403_is_said_and_tried_again(bench):
    server = await bench.server()
    client = await bench.client(server, "--watch", "Job")
    await (await server.next(JOBS)).refuse(403, "Forbidden", "jobs.batch is forbidden: User x")
    await client.expect(re.compile("^trouble Job .*403 Forbidden: jobs.batch is forbidden"))
    assert (await server.next(JOBS)).is_watch_list
    await client.quit()


async def test_server_that_is_away_and_comes_back(bench):
    server, client, _ = await bench.synced()
    port = server.port
    await server.stop()
    await client.expect(re.compile("^trouble Job"))
    await client.until("^trouble Job .*can't reach http://127.0.0.1:.*(refused|connect)")
    server = await bench.server(port=port)
    stream = await server.next(JOBS)
    await stream.start()
    await stream.chunk(added("a", 5) + bookmark(10, is_end=True))
    await client.until("^sync_start Job$")
    await client.expect(seen("MODIFIED", "a", 5), "synced Job")
    await client.quit()


async def test_an_absent_kind_is_told_once_and_found_later(bench):
    server = await bench.server()
    client = await bench.client(server, "--watch", "Queue")
    for _ in range(3):
        await (await server.next(QUEUES)).refuse(404, "NotFound", "404 page not found")
    await client.expect("absent Queue")
    stream = await server.next(QUEUES)
    await stream.start()
    await stream.chunk(bookmark(4, is_end=True).replace(b'"Job"', b'"Queue"'))
    await client.expect("sync_start Queue", "synced Queue")
    await client.quit()


def old_slice(name, version):
    return {"apiVersion": "resource.k8s.io/v1beta1", "kind": "ResourceSlice",
            "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": str(version)},
            "spec": {"driver": "d", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
                     "devices": [{"name": "g0", "basic": {"attributes": {"a": {"int": 1}}}}]}}


async def test_the_newest_version_that_is_served_is_read(bench):
    server = await bench.server()
    client = await bench.client(server, "--watch", "ResourceSlice")
    for version in ("v1", "v1beta2"):
        await (await server.next(SLICES % version)).refuse(404, "NotFound", "404 page not found")
    stream = await server.next(SLICES % "v1beta1")
    await stream.start()
    end = bookmark(9, is_end=True).replace(b'"Job"', b'"ResourceSlice"')
    await stream.chunk(event("ADDED", old_slice("a", 5)) + end)
    await client.expect("sync_start ResourceSlice",
                        re.compile("^ADDED ResourceSlice .*a uid=uid-a rv=5"),
                        "synced ResourceSlice")
    # Whenever all is read afresh, a newer version may be there.
    await stream.finish()
    await client.expect(re.compile("^trouble ResourceSlice"))
    stream = await server.next(SLICES % "v1")
    await stream.start()
    await stream.chunk(event("ADDED", old_slice("a", 5)) + end)
    await client.expect("sync_start ResourceSlice",
                        re.compile("^MODIFIED ResourceSlice .*a uid=uid-a rv=5"),
                        "synced ResourceSlice")
    await client.quit()


async def test_a_kind_is_absent_when_no_version_is_served(bench):
    server = await bench.server()
    client = await bench.client(server, "--watch", "ResourceSlice")
    for version in ("v1", "v1beta2", "v1beta1"):
        await (await server.next(SLICES % version)).refuse(404, "NotFound", "404 page not found")
    await client.expect("absent ResourceSlice")
    await client.quit()


async def test_absent_kind_without_a_status_in_the_body(bench):
    server = await bench.server()
    client = await bench.client(server, "--watch", "Queue")
    await (await server.next(QUEUES)).answer(404, "404 page not found\n")
    await client.expect("absent Queue")
    await client.quit()


async def test_a_short_404_forgets_nothing(bench):
    server, client, stream = await bench.synced()
    await stream.finish()
    await client.expect(re.compile("^trouble"))
    await (await server.next(JOBS)).refuse(404, "NotFound", "not yet")
    await client.expect(re.compile("^trouble Job .*404"))
    stream = await server.next(JOBS)
    await stream.start()
    await stream.chunk(added("a", 5) + bookmark(10, is_end=True))
    await client.expect("sync_start Job", seen("MODIFIED", "a", 5), "synced Job")
    await client.quit()


async def test_a_kind_that_is_taken_away_loses_its_objects(bench):
    server, client, stream = await bench.synced()
    await stream.chunk(added("b", 11))
    await client.expect(seen("ADDED", "b", 11))
    await stream.finish()

    async def refuse_all():
        while True:
            await (await server.next(JOBS)).refuse(404, "NotFound", "the kind is gone")

    refusing = asyncio.create_task(refuse_all())
    await client.until("^trouble Job .*404")
    await client.until("^DELETED Job ns/a uid=uid-a rv=5 bare$")
    refusing.cancel()
    await client.expect(seen("DELETED", "b", 11, rest=" bare"), "absent Job")
    await client.quit()
