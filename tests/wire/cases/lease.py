"""One of several replicas leads: what is written to the Lease, and when it is given up."""
import json
import re
import time

from wirelib import patience

LEASES = "/apis/coordination.k8s.io/v1/namespaces/ns/leases"
LEASE = LEASES + "/tallyman"
LEASE_MS = 6000  # renewed every 0.8 s, given up after 4 s, looked at every 0.24 s by others
MISSING = (404, "NotFound", 'leases.coordination.k8s.io "tallyman" not found')


def record(holder, version, transitions=3):
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "tallyman", "namespace": "ns", "resourceVersion": str(version)},
            "spec": {"holderIdentity": holder, "leaseDurationSeconds": 6,
                     "acquireTime": "2026-11-30T00:00:00.000000Z", "leaseTransitions": transitions}}


async def opened(bench, lease_ms=LEASE_MS):
    server = await bench.server()
    client = await bench.client(server)
    client.tell(f"lease me {int(patience.of(lease_ms))}")
    look = await server.next(LEASE)
    assert look.method == "GET"
    return server, client, look


async def led(bench):
    """It leads, at version 1."""
    server, client, look = await opened(bench)
    await look.refuse(*MISSING)
    write = await server.next(LEASES)
    await write.answer(201, record("me", 1, 1))
    await client.expect("leading")
    return server, client, write


async def closed(client, server=None):
    """Ends; a lease that is ours is given back first."""
    client.tell("unlease")
    if server is not None:
        while True:
            write = await server.next(LEASE)
            spec = json.loads(write.body)["spec"]
            await write.answer(200, record(spec["holderIdentity"], 99))
            if spec["holderIdentity"] == "":
                assert spec["leaseDurationSeconds"] == 1
                break
    await client.until("^lease closed$")
    await client.quit()


async def test_an_absent_lease_is_made(bench):
    server, client, write = await led(bench)
    assert write.method == "POST"
    body = json.loads(write.body)
    assert body["metadata"] == {"name": "tallyman", "namespace": "ns"}, body
    spec = body["spec"]
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("me", 1)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", spec["renewTime"])
    client.tell("held")
    await client.expect("held 1")
    await closed(client, server)


async def test_it_is_renewed_under_its_version(bench):
    server, client, _ = await led(bench)
    for version in (1, 2, 3):
        write = await server.next(LEASE)
        body = json.loads(write.body)
        assert write.method == "PUT" and body["metadata"]["resourceVersion"] == str(version)
        # It goes on being the same holder's.
        assert body["spec"]["leaseTransitions"] == 1
        assert body["spec"]["acquireTime"] == "2026-11-30T00:00:00.000000Z"
        await write.answer(200, record("me", version + 1, 1))
    await closed(client, server)


async def test_anothers_lease_is_taken_when_it_has_stood_still(bench):
    server, client, look = await opened(bench, 1500)
    await look.answer(200, record("other", 5))
    await client.expect("following other")
    looks = 0
    while True:
        request = await server.next(LEASE)
        if request.method == "PUT":
            break
        looks += 1
        if looks == 5:
            renewed = time.monotonic()  # its time begins anew
        await request.answer(200, record("other", 6 if looks >= 5 else 5))
    assert time.monotonic() - renewed >= patience.of(1.5), "it was taken too early"
    body = json.loads(request.body)
    assert body["spec"]["leaseTransitions"] == 4 and body["metadata"]["resourceVersion"] == "6"
    assert body["spec"]["acquireTime"] != "2026-11-30T00:00:00.000000Z"
    await request.answer(200, record("me", 7, 4))
    await client.expect("leading")
    await closed(client, server)


async def test_a_lease_given_back_is_taken_at_once(bench):
    server, client, look = await opened(bench)
    await look.answer(200, record("other", 5))
    await client.expect("following other")
    await (await server.next(LEASE)).answer(200, record("", 6))
    write = await server.next(LEASE)
    assert write.method == "PUT"
    await write.answer(200, record("me", 7))
    await client.expect("leading")
    await closed(client, server)


async def test_of_two_that_take_it_one_gets_it(bench):
    server, client, look = await opened(bench)
    await look.refuse(*MISSING)
    await (await server.next(LEASES)).refuse(409, "AlreadyExists", "it exists")
    await (await server.next(LEASE)).answer(200, record("other", 1))
    await client.expect("following other")
    client.tell("held")
    await client.expect("held 0")
    await closed(client)


async def test_a_leader_that_finds_anothers_name_stops_at_once(bench):
    server, client, _ = await led(bench)
    await (await server.next(LEASE)).refuse(409, "Conflict", "the object has been modified")
    await (await server.next(LEASE)).answer(200, record("other", 9))
    await client.expect("lost: another replica has taken the lease")
    client.tell("held")
    await client.expect("held 0")
    await server.nothing(1)
    await closed(client)


async def test_a_leader_that_cant_renew_stops_before_its_time_is_over(bench):
    server, client, _ = await led(bench)
    await client.until("^lost: the lease couldn't be renewed in time$", 10)
    client.tell("held")
    await client.expect("held 0")
    client.tell("unlease")
    await client.until("^lease closed$")
    await client.quit()
    assert server.queue.qsize() >= 1  # the renewal that nobody answered


async def test_a_write_whose_answer_is_lost_is_looked_for(bench):
    server, client, _ = await led(bench)
    await (await server.next(LEASE)).refuse(500, "InternalError", "who knows")
    await client.expect(re.compile("^lease trouble: .*who knows"))
    look = await server.next(LEASE)
    assert look.method == "GET"
    await look.answer(200, record("me", 2))  # it was written
    write = await server.next(LEASE)
    assert json.loads(write.body)["metadata"]["resourceVersion"] == "2"
    await write.answer(200, record("me", 3))
    client.tell("held")
    await client.expect("held 1")
    await closed(client, server)


async def test_a_namespace_that_isnt_there_is_told(bench):
    server, client, look = await opened(bench)
    await look.refuse(*MISSING)
    await (await server.next(LEASES)).refuse(404, "NotFound", 'namespaces "ns" not found')
    await client.expect(re.compile('^lease trouble: .*namespaces "ns" not found'))
    assert (await server.next(LEASE)).method == "GET"
    client.tell("unlease")
    await client.until("^lease closed$", 10)
    await client.quit()


async def test_what_cant_be_read_is_read_again(bench):
    server, client, look = await opened(bench)
    await look.answer(200, "{\"spec\":")
    await client.expect(re.compile("^lease trouble: "))
    look = await server.next(LEASE)
    await look.refuse(403, "Forbidden", "no right to get leases")
    await client.expect(re.compile("^lease trouble: .*no right to get leases"))
    await (await server.next(LEASE)).answer(200, record("me", 4))
    write = await server.next(LEASE)  # ours, from before a restart
    await write.answer(200, record("me", 5))
    await client.expect("leading")
    await closed(client, server)


async def test_giving_back_doesnt_wait_for_ever(bench):
    server, client, _ = await led(bench)
    client.tell("unlease")
    await server.next(LEASE)
    await client.until("^lease closed$", 15)
    await client.quit()


async def next_of_lease(server):
    while (request := await server.next()).path != LEASE:
        pass  # never answered
    return request


async def test_it_is_renewed_though_nothing_else_is_answered(bench):
    server, client, _ = await led(bench)
    client.tell("flood 300 Job ns a")  # more than may be on their way
    for version in (1, 2, 3, 4, 5, 6):
        write = await next_of_lease(server)
        assert write.method == "PUT"
        await write.answer(200, record("me", version + 1, 1))
    client.tell("held")
    await client.expect("held 1")
    client.tell("unlease")
    while json.loads((write := await next_of_lease(server)).body)["spec"]["holderIdentity"] != "":
        await write.answer(200, record("me", 99))
    await write.answer(200, record("", 100))
    await client.until("^lease closed$")
    await client.quit()
