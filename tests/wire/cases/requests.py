"""Single requests: how each is written, and what each answer means."""
import asyncio
import json
import re

JOB = "/apis/batch/v1/namespaces/ns/jobs/a"
ADMISSION = "/apis/tallyman.dev/v1beta1/namespaces/ns/admissions/a"
EVENTS = "/apis/events.k8s.io/v1/namespaces/ns/events"
PARTIAL = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
           "metadata": {"name": "a", "namespace": "ns", "uid": "u1", "resourceVersion": "77"}}


async def sent(bench, command, *arguments):
    server = await bench.server()
    client = await bench.client(server, *arguments)
    client.tell(command)
    return server, client, await server.next()


async def test_merge_patch(bench):
    _, client, request = await sent(bench, 'patch Job ns a {"metadata":{"uid":"u1"}}')
    assert (request.method, request.path) == ("PATCH", JOB)
    assert request.query == {"fieldManager": "tallyman"}
    assert request.headers["content-type"] == "application/merge-patch+json"
    assert "as=PartialObjectMetadata" in request.headers["accept"]
    assert request.body == b'{"metadata":{"uid":"u1"}}'
    assert "expect" not in request.headers
    await request.answer(200, PARTIAL)
    await client.expect(re.compile("^patch done code=200 maybe=0 retry_after=0 uid=u1 rv=77 "))
    await client.quit()


async def test_server_side_apply(bench):
    _, client, request = await sent(bench, 'apply Admission ns a {"kind":"Admission"}')
    assert (request.method, request.path) == ("PATCH", ADMISSION)
    assert request.query == {"fieldManager": "tallyman", "force": "true"}
    assert request.headers["content-type"] == "application/apply-patch+yaml"
    await request.answer(201, PARTIAL)
    await client.expect(re.compile("^apply done code=201 .* uid=u1 rv=77 "))
    await client.quit()


async def test_names_are_encoded(bench):
    _, client, request = await sent(bench, "get Job n/s a%2e?b#c")
    assert request.target == "/apis/batch/v1/namespaces/n%2Fs/jobs/a%252e%3Fb%23c", request.target
    await request.answer(200, "{}")
    await client.expect(re.compile("^get done"))
    await client.quit()


async def test_delete_is_bound_to_the_uid(bench):
    _, client, request = await sent(bench, "delete Job ns a u1")
    assert (request.method, request.path) == ("DELETE", JOB)
    body = json.loads(request.body)
    assert body["preconditions"] == {"uid": "u1"} and body["propagationPolicy"] == "Background"
    await request.refuse(409, "Conflict", "the UID in the precondition does not match")
    await client.expect(re.compile("^delete conflict code=409"))
    await client.quit()


async def test_event(bench):
    server, client, request = await sent(bench, "event ns a.1f a u1")
    assert (request.method, request.path) == ("POST", EVENTS)
    body = json.loads(request.body)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", body["eventTime"])
    assert body["regarding"] == {"apiVersion": "batch/v1", "kind": "Job", "namespace": "ns",
                                 "name": "a", "uid": "u1"}
    assert body["reportingController"] == "tallyman.dev/tallyman"
    assert body["metadata"] == {"name": "a.1f", "namespace": "ns"}
    await request.answer(201, PARTIAL)
    await client.expect(re.compile("^event done"))
    await client.quit()


async def answered(bench, code, reason, wanted, **more):
    _, client, request = await sent(bench, "patch Job ns a {}")
    await request.refuse(code, reason, **more)
    await client.expect(re.compile(wanted))
    await client.quit()


async def test_409(bench):
    await answered(bench, 409, "Conflict", "^patch conflict code=409 maybe=0")


async def test_404(bench):
    await answered(bench, 404, "NotFound", "^patch not found code=404 maybe=0")


async def test_403(bench):
    await answered(bench, 403, "Forbidden", "^patch forbidden code=403 maybe=0")


async def test_422_names_the_field(bench):
    details = {"causes": [{"reason": "FieldValueInvalid", "message": "field is immutable",
                           "field": "metadata.uid"}]}
    await answered(bench, 422, "Invalid", "^patch invalid code=422 maybe=0 .* uid_cause=1 .*: PATCH "
                   + JOB + ": the server answers 422 Invalid: metadata.uid: field is immutable$",
                   message="a very long dump", details=details)


async def test_429_with_the_pause_in_the_body(bench):
    await answered(bench, 429, "TooManyRequests", "^patch retry code=429 maybe=0 retry_after=7000 ",
                   details={"retryAfterSeconds": 7})


async def test_429_with_the_pause_in_a_header(bench):
    await answered(bench, 429, "TooManyRequests", "^patch retry code=429 maybe=0 retry_after=3000 ",
                   headers=[("Retry-After", "3")])


async def test_an_absurd_pause_is_cut(bench):
    await answered(bench, 429, "TooManyRequests", "retry_after=120000 ",
                   headers=[("Retry-After", "99999999999")])


async def test_503_has_not_happened(bench):
    await answered(bench, 503, "ServiceUnavailable", "^patch retry code=503 maybe=0")


async def test_500_may_have_happened(bench):
    await answered(bench, 500, "InternalError", "^patch retry code=500 maybe=1")


async def test_504_may_have_happened(bench):
    await answered(bench, 504, "Timeout", "^patch retry code=504 maybe=1")


async def test_a_redirect_is_not_followed(bench):
    server, client, request = await sent(bench, "get Job ns a")
    await request.answer(302, "", [("Location", server.url + "/elsewhere")])
    await client.expect(re.compile("^get retry code=302"))
    await server.nothing(0.2)
    await client.quit()


async def test_an_answer_that_is_lost_may_have_happened(bench):
    server, client, request = await sent(bench, "patch Job ns a {}")
    await request.reset()
    await client.expect(re.compile("^patch retry code=0 maybe=1 .*broke off"))
    await server.nothing(0.2)
    await client.quit()


async def test_half_an_answer_is_none(bench):
    _, client, request = await sent(bench, "patch Job ns a {}")
    await request.head(200, [("Content-Length", "100")])
    await request.raw(b'{"metadata":')
    await request.close()
    await client.expect(re.compile("^patch retry code=200 maybe=1 .*broke off"))
    await client.quit()


async def test_no_answer_in_time(bench):
    _, client, _ = await sent(bench, "patch Job ns a {}", "--request-ms", "300")
    await client.expect(re.compile("^patch retry code=0 maybe=1 .*within 300 ms"), timeout=2)
    await client.quit()


async def test_a_refused_connection_has_not_happened(bench):
    server = await bench.server()
    await server.stop()
    client = await bench.client(server.url)
    client.tell("patch Job ns a {}")
    await client.expect(re.compile("^patch retry code=0 maybe=0 .*can't reach"))
    await client.quit()


async def test_connecting_takes_too_long(bench):
    # A listener whose backlog is full takes no connection.
    import socket
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        fillers = []
        for _ in range(8):
            filler = socket.socket()
            filler.setblocking(False)
            try:
                filler.connect(("127.0.0.1", port))
            except BlockingIOError:
                pass
            fillers.append(filler)
        client = await bench.client(f"http://127.0.0.1:{port}", "--connect-ms", "300")
        client.tell("patch Job ns a {}")
        await client.expect(re.compile("^patch retry code=0 maybe=0 .*can't reach"), timeout=2)
        for filler in fillers:
            filler.close()
    await client.quit()


async def test_cancelled_while_waiting(bench):
    _, client, request = await sent(bench, "patch Job ns a {}")
    client.tell("cancel")
    await client.expect(re.compile("^patch cancelled code=0 maybe=1"))
    await request.gone()
    await client.quit()


async def test_closing_with_requests_under_way(bench):
    _, client, _ = await sent(bench, "flood 40 Job ns a")
    client.tell("quit")
    for _ in range(40):
        await client.expect(re.compile("^flood cancelled"))
    await client.quit()


async def test_a_flood_shares_few_connections(bench):
    server = await bench.server()
    client = await bench.client(server)
    client.tell("flood 300 Job ns a")
    for _ in range(300):
        request = await server.next(JOB)
        assert server.open_connections() <= 16, server.open_connections()
        await request.answer(200, "{}")
    for _ in range(300):
        await client.expect(re.compile("^flood done"))
    assert await client.metric("client", "queued") == 0
    await client.quit()


async def test_a_kept_connection_that_has_died(bench):
    server, client, request = await sent(bench, "get Job ns a")
    await request.answer(200, "{}")
    await client.expect(re.compile("^get done"))
    await request.reset()
    await asyncio.sleep(0.1)
    client.tell("get Job ns a")
    await (await server.next(JOB)).answer(200, "{}")
    await client.expect(re.compile("^get done"))
    await client.quit()


async def test_version_and_group(bench):
    server, client, request = await sent(bench, "version")
    assert request.path == "/version"
    await request.answer(200, {"major": "1", "minor": "37", "gitVersion": "v1.37.2"})
    await client.expect("version v1.37.2")
    client.tell("group ResourceClaim")
    await (await server.next("/apis/resource.k8s.io")).answer(
        200, {"kind": "APIGroup", "name": "resource.k8s.io",
              "versions": [{"groupVersion": "resource.k8s.io/v1alpha3", "version": "v1alpha3"}]})
    await client.expect("group served=1 wanted=0 versions=1 advice=resource.k8s.io is served as "
                        "v1alpha3 only; Tallyman needs v1, v1beta2 or v1beta1 for resourceclaims, "
                        "which Kubernetes has from 1.32 on")
    client.tell("group ResourceClaim")
    await (await server.next("/apis/resource.k8s.io")).answer(
        200, {"kind": "APIGroup", "name": "resource.k8s.io",
              "versions": [{"groupVersion": "resource.k8s.io/v1beta1", "version": "v1beta1"}]})
    await client.expect("group served=1 wanted=1 versions=1 advice=")
    client.tell("group Queue")
    await (await server.next("/apis/tallyman.dev")).answer(404, "404 page not found")
    await client.expect(re.compile("^group served=0 wanted=0 versions=0 advice=tallyman.dev is not "
                                   "served by this cluster"))
    client.tell("version")
    await (await server.next("/version")).answer(200, "<html>")
    await client.expect(re.compile("^version unknown: GET /version: "))
    await client.quit()


async def test_a_prefix_of_the_server_is_kept(bench):
    server = await bench.server()
    client = await bench.client(server.url + "/k8s/clusters/c-1/")
    client.tell("get Job ns a")
    await (await server.next("/k8s/clusters/c-1" + JOB)).answer(200, "{}")
    await client.expect(re.compile("^get done"))
    await client.quit()
