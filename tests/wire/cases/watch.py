"""What a watch may be sent: every input of the watch faults, and what must come of it."""
import asyncio
import re

from wirelib.objects import JOBS, added, bookmark, error, event, job, job_list, seen


async def give(stream, *parts):
    await stream.start()
    for part in parts:
        await stream.chunk(part)


async def resync(server, *parts, rest=()):
    """Answers the next request, a WatchList, with the parts."""
    stream = await server.next(JOBS)
    assert stream.is_watch_list, stream.target
    await give(stream, *parts)
    return stream


async def test_first_sync_then_changes(bench):
    _, client, stream = await bench.synced()
    await stream.chunk(added("b", 11))
    await stream.chunk(event("MODIFIED", job("a", 12)))
    await stream.chunk(event("DELETED", job("a", 13)))
    await client.expect(seen("ADDED", "b", 11), seen("MODIFIED", "a", 12), seen("DELETED", "a", 13))
    assert stream.query["resourceVersionMatch"] == "NotOlderThan"
    assert stream.query["allowWatchBookmarks"] == "true"
    assert "resourceVersion" not in stream.query, "nothing is resumed from a stored version"
    assert stream.headers["user-agent"].startswith("tallyman/")
    await client.quit()


async def test_a_http_410_lists_afresh_and_finds_what_vanished(bench):
    server, client, stream = await bench.synced("--watch-ms", "2000")
    await stream.chunk(added("b", 11))
    await client.expect(seen("ADDED", "b", 11))
    await asyncio.sleep(int(stream.query["timeoutSeconds"]) - 0.1)
    await stream.finish()
    resumed = await server.next(JOBS)
    assert resumed.is_watch and not resumed.is_watch_list, "its own deadline: resumed"
    assert resumed.query["resourceVersion"] == "11"
    await resumed.refuse(410, "Expired", "too old resource version")
    await client.expect(re.compile(r"^trouble Job .*410 Expired: too old"))
    await resync(server, added("b", 11), bookmark(20, is_end=True))
    await client.expect("sync_start Job", seen("MODIFIED", "b", 11),
                        seen("DELETED", "a", 5, rest=" bare"), "synced Job")
    assert await client.metric("Job", "vanished") == 1
    await client.quit()


async def test_b_error_event_410_lists_afresh(bench):
    server, client, stream = await bench.synced()
    await stream.chunk(error(410, "Expired", "too old resource version: 1 (751)"))
    await client.expect(re.compile(r"^trouble Job .*410 Expired.*listed afresh"))
    await resync(server, bookmark(30, is_end=True))
    await client.expect("sync_start Job", seen("DELETED", "a", 5, rest=" bare"), "synced Job")
    await client.quit()


async def test_c_closing_at_once_is_met_with_growing_pauses(bench):
    server = await bench.server()
    client = await bench.client(server, "--watch", "Job", "--retry-base-ms", "50", "--retry-max-ms",
                                "400")
    waits = []
    for _ in range(6):
        stream = await server.next(JOBS)
        await stream.start()
        await stream.finish()
        line = await client.expect(re.compile("^trouble Job wait="))
        waits.append(int(re.search(r"wait=(\d+)", line).group(1)))
    assert 25 <= waits[0] <= 50, waits
    assert all(200 <= wait <= 400 for wait in waits[4:]), waits
    assert not any("sync_start" in line for line in client.log)
    await client.quit()


async def test_c_empty_watch_lists_lead_to_a_plain_list(bench):
    server = await bench.server()
    client = await bench.client(server, "--watch", "Job")
    for _ in range(3):
        stream = await server.next(JOBS)
        assert stream.is_watch_list
        await stream.start()
        await stream.finish()
        await client.expect(re.compile("^trouble Job .*before all objects had come"))
    listing = await server.next(JOBS)
    assert not listing.is_watch, listing.target
    await listing.answer(200, job_list(7, [job("a", 5)]))
    await client.expect("sync_start Job", seen("ADDED", "a", 5), "synced Job")
    await client.quit()


async def test_c_closing_a_complete_stream_at_once_does_not_spin(bench):
    server, client, stream = await bench.synced("--retry-base-ms", "50", "--retry-max-ms", "400")
    await stream.finish()
    for _ in range(4):
        await client.expect(re.compile("^trouble Job .*the server ended it"))
        stream = await resync(server, added("a", 5), bookmark(10, is_end=True))
        await client.expect("sync_start Job", seen("MODIFIED", "a", 5), "synced Job")
        await stream.finish()
    line = await client.expect(re.compile("^trouble Job wait="))
    assert int(re.search(r"wait=(\d+)", line).group(1)) >= 200, line
    await client.quit()


async def test_d_one_byte_chunks_cut_inside_a_character(bench):
    _, client, stream = await bench.synced()
    for byte in added("b", 11, note="grüße, 世界 🚢"):
        await stream.chunk(bytes([byte]))
    await client.expect(seen("ADDED", "b", 11, rest=" note=grüße, 世界 🚢"))
    await client.quit()


async def test_e_two_events_in_a_chunk(bench):
    _, client, stream = await bench.synced()
    await stream.chunk(added("b", 11) + added("c", 12) + bookmark(13)[:20])
    await client.expect(seen("ADDED", "b", 11), seen("ADDED", "c", 12))
    await client.quit()


async def test_f_an_object_of_a_megabyte_and_a_half(bench):
    _, client, stream = await bench.synced()
    thing = job("big", 11, note="first")
    thing["metadata"]["annotations"].update({f"pad-{i}": "x" * 100_000 for i in range(15)})
    await stream.chunk(event("ADDED", thing))
    await stream.chunk(added("after", 12))
    await client.expect(seen("ADDED", "big", 11, rest=" note=first"), seen("ADDED", "after", 12))
    await client.quit()


async def test_g_a_bookmark_moves_the_version_and_is_no_object(bench):
    server, client, stream = await bench.synced("--watch-ms", "2000")
    await stream.chunk(bookmark(50))
    await asyncio.sleep(int(stream.query["timeoutSeconds"]) - 0.1)
    await stream.finish()
    resumed = await server.next(JOBS)
    assert resumed.query["resourceVersion"] == "50"
    await give(resumed, added("b", 51))
    await client.expect(seen("ADDED", "b", 51))
    assert await client.metric("Job", "bookmarks") == 2
    await client.quit()


async def test_h_a_silent_socket_is_given_up(bench):
    server, client, stream = await bench.synced("--idle-ms", "400")
    await client.expect(re.compile("^trouble Job .*no byte came for 400 ms"), timeout=2)
    await stream.gone()
    await resync(server, added("a", 5), bookmark(10, is_end=True))
    await client.expect("sync_start Job", seen("MODIFIED", "a", 5), "synced Job")
    await client.quit()


async def test_h_bytes_keep_a_quiet_stream_alive(bench):
    server, client, stream = await bench.synced("--idle-ms", "600")
    for version in range(11, 16):
        await asyncio.sleep(0.3)
        await stream.chunk(bookmark(version))
    await stream.chunk(added("b", 20))
    await client.expect(seen("ADDED", "b", 20))
    await server.nothing(0.05)
    await client.quit()


async def test_h_no_headers_at_all(bench):
    server = await bench.server()
    client = await bench.client(server, "--watch", "Job", "--initial-ms", "300")
    await server.next(JOBS)
    await client.expect(re.compile("^trouble Job .*no byte came for 300 ms"), timeout=2)
    listing = await server.next(JOBS)
    assert not listing.is_watch, "silence before the end mark: a plain list is tried"
    await client.quit()


async def test_h_initial_objects_without_an_end_mark(bench):
    server = await bench.server()
    client = await bench.client(server, "--watch", "Job", "--initial-ms", "300")
    stream = await server.next(JOBS)
    await give(stream, added("a", 5))
    await client.expect("sync_start Job", seen("ADDED", "a", 5),
                        re.compile("^trouble Job .*no byte came"))
    listing = await server.next(JOBS)
    assert not listing.is_watch
    await listing.answer(200, job_list(7, [job("a", 5)]))
    await client.expect("sync_start Job", seen("MODIFIED", "a", 5), "synced Job")
    await client.quit()


async def test_version_that_goes_backwards_drops_the_stream(bench):
    server, client, stream = await bench.synced()
    await stream.chunk(added("b", 20))
    await stream.chunk(added("c", 15))
    await client.expect(seen("ADDED", "b", 20),
                        re.compile(r"^trouble Job .*went back from 20 to 15"))
    await stream.gone()
    await resync(server, added("c", 4), bookmark(9, is_end=True))
    await client.expect("sync_start Job", seen("ADDED", "c", 4),
                        seen("DELETED", "a", 5, rest=" bare"),
                        seen("DELETED", "b", 20, rest=" bare"), "synced Job")
    assert await client.metric("Job", "reversals") == 1
    await client.quit()


async def test_bookmark_that_goes_backwards_drops_the_stream(bench):
    server, client, stream = await bench.synced()
    await stream.chunk(bookmark(9))
    await client.expect(re.compile("^trouble Job .*went back from 10 to 9"))
    fresh = await server.next(JOBS)
    assert fresh.is_watch_list
    await client.quit()


async def test_initial_objects_may_have_any_version(bench):
    server = await bench.server()
    client = await bench.client(server, "--watch", "Job")
    await resync(server, added("a", 9), added("b", 3), added("c", 7), bookmark(9, is_end=True))
    await client.expect("sync_start Job", seen("ADDED", "a", 9), seen("ADDED", "b", 3),
                        seen("ADDED", "c", 7), "synced Job")
    await client.quit()


async def test_a_bookmark_without_the_mark_ends_no_list(bench):
    server = await bench.server()
    client = await bench.client(server, "--watch", "Job")
    stream = await resync(server, added("a", 9), bookmark(9), added("b", 3))
    await client.expect("sync_start Job", seen("ADDED", "a", 9), seen("ADDED", "b", 3))
    await client.silence(0.1)
    await stream.chunk(bookmark(10, is_end=True))
    await client.expect("synced Job")
    await client.quit()


async def test_recreated_under_its_name_while_nobody_watched(bench):
    server, client, stream = await bench.synced()
    await stream.reset()
    await client.expect(re.compile("^trouble Job"))
    await resync(server, added("a", 30, uid="second"), bookmark(31, is_end=True))
    await client.expect("sync_start Job", seen("DELETED", "a", 5, rest=" bare"),
                        seen("ADDED", "a", 30, uid="second"), "synced Job")
    await client.quit()


async def test_recreated_within_one_burst(bench):
    _, client, stream = await bench.synced()
    await stream.chunk(event("DELETED", job("a", 11)) + added("a", 12, uid="second"))
    await client.expect(seen("DELETED", "a", 11), seen("ADDED", "a", 12, uid="second"))
    await client.quit()


async def test_malformed_object_is_skipped(bench):
    server, client, stream = await bench.synced()
    bad = job("bad", 11, spec={"parallelism": "many"})
    await stream.chunk(event("ADDED", bad) + added("b", 12))
    await client.expect(re.compile("^malformed Job ns/bad: .*parallelism"), seen("ADDED", "b", 12))
    await stream.chunk(event("MODIFIED", job("a", 13, spec={"suspend": 7})))
    await client.expect(re.compile("^malformed Job ns/a: .*suspend"))
    await stream.reset()
    await client.expect(re.compile("^trouble"))
    await resync(server, event("ADDED", job("a", 13, spec={"suspend": 7})),
                 bookmark(14, is_end=True))
    # a can't be read now, but it is there; b isn't.
    await client.expect("sync_start Job", re.compile("^malformed Job ns/a"),
                        seen("DELETED", "b", 12, rest=" bare"), "synced Job")
    assert await client.metric("Job", "malformed") == 3
    await client.quit()


async def test_page_of_a_proxy_instead_of_a_stream(bench):
    server = await bench.server()
    client = await bench.client(server, "--watch", "Job")
    stream = await server.next(JOBS)
    await stream.answer(200, "<html>Please log in</html>")
    await client.expect("sync_start Job", re.compile("^trouble Job .*unreadable answer"))
    await client.quit()


async def test_stream_that_ends_inside_an_object(bench):
    server, client, stream = await bench.synced()
    await stream.chunk(added("b", 11)[:40])
    await stream.finish()
    await client.expect(re.compile("^trouble Job"))
    await resync(server, added("a", 5), added("b", 11), bookmark(12, is_end=True))
    await client.expect("sync_start Job", seen("MODIFIED", "a", 5), seen("ADDED", "b", 11),
                        "synced Job")
    await client.quit()


async def test_reset_in_the_middle_of_the_initial_objects(bench):
    server, client, stream = await bench.synced()
    await stream.reset()
    await client.expect(re.compile("^trouble Job"))
    stream = await resync(server, added("c", 6))
    await client.expect("sync_start Job", seen("ADDED", "c", 6))
    await stream.reset()
    # Half a list says nothing about what has vanished.
    await client.expect(re.compile("^trouble Job"))
    await resync(server, added("c", 6), bookmark(12, is_end=True))
    await client.expect("sync_start Job", seen("MODIFIED", "c", 6),
                        seen("DELETED", "a", 5, rest=" bare"), "synced Job")
    await client.quit()


async def test_error_event_of_another_kind_is_tried_again_after_its_pause(bench):
    server, client, stream = await bench.synced()
    await stream.chunk(error(504, "Timeout", "Too large resource version: 99, current: 10",
                             {"retryAfterSeconds": 1}))
    line = await client.expect(re.compile("^trouble Job .*504 Timeout: Too large"))
    assert int(re.search(r"wait=(\d+)", line).group(1)) >= 1000, line
    await server.nothing(0.7)
    await client.quit()


async def test_selector_is_encoded(bench):
    server = await bench.server()
    client = await bench.client(server)
    client.tell("watch Job a.b/c=d,!e")
    stream = await server.next(JOBS)
    assert "labelSelector=a.b%2Fc%3Dd%2C%21e" in stream.target, stream.target
    await give(stream, added("a", 5), bookmark(6, is_end=True))
    await client.expect("sync_start Job", seen("ADDED", "a", 5), "synced Job")
    # Leaving the selection looks like a deletion, with the new version.
    await stream.chunk(event("DELETED", job("a", 9)))
    await client.expect(seen("DELETED", "a", 9))
    await client.quit()


async def test_closing_an_informer_in_the_middle(bench):
    _, client, stream = await bench.synced()
    await stream.chunk(added("b", 11)[:30])
    client.tell("unwatch Job")
    await stream.gone()
    await client.silence(0.1)
    await client.quit()
