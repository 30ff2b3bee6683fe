"""What a connection to the API server can do to answers and watches, by the proxy before the real one:
while it lasts nobody is started twice or beyond the quota, and soon after its end gangs start."""

import time

from proxy import faults
from proxy.bench import SOON_S, Bench
from proxy.goaway import GoawayRelay
from proxy.relay import Answer


def test_answers_that_are_lost_after_the_commit(context):
    bench = Bench(context).start()
    bench.faults.lose = lambda request: request.plural == "jobs"
    names = bench.submit(6)
    bench.wait_started(names, 20)
    bench.faults.lose = None
    bench.faults.tear = lambda request: request.plural in ("jobs", "admissions", "queues")
    bench.wait_started(bench.submit(6), 20)
    bench.faults.off()
    bench.probe()
    bench.judge()
    counts = bench.faults.counts
    context.note(f"{counts['lost']} answers lost, {counts['torn']} torn in the middle")
    assert counts["lost"] >= 3 and counts["torn"] >= 6, counts


def test_writes_that_never_arrive(context):
    bench = Bench(context).start()
    turns = iter(range(1 << 30))
    bench.faults.drop = lambda request: not request.is_lease and next(turns) % 2 == 0
    bench.wait_started(bench.submit(8), 30)
    bench.faults.off()
    bench.probe()
    bench.judge()
    context.note(f"{bench.faults.counts['dropped']} writes dropped")


def test_streams_that_hang(context):
    """Connected and silent: what happens meanwhile is decided once it is seen, and only once."""
    bench = Bench(context).start()
    for kinds in ({"jobs"}, {"pods"}, {faults.ALL}):
        bench.faults.muted = kinds
        names = bench.submit(4)
        time.sleep(3)
        bench.faults.muted = set()
        bench.wait_started(names)
    bench.judge()


def test_one_byte_at_a_time_and_half_a_character(context):
    bench = Bench(context)
    words = {"annotations": {"example.com/note": "Zwölf Boxkämpfer – 十二 🥊 " * 40}}
    bench.faults.chop = faults.inside_characters
    bench.start()
    for chop in (faults.inside_characters, faults.in_bytes):
        bench.faults.chop = chop
        bench.faults.cut("jobs")
        bench.wait_started(bench.submit(2, **words), 30)
    bench.faults.off()
    bench.probe(20)
    bench.judge()


def test_410_as_a_status_and_as_an_event(context):
    bench = Bench(context).start()
    for kind in ("jobs", "pods", "queues"):
        lists = bench.faults.counts[f"list {kind}"]
        bench.faults.expire(kind)
        bench.probe()
        bench.cluster.wait_for(lambda: bench.faults.counts[f"list {kind}"] > lists, 10,
                               f"{kind} listed afresh")
        lists = bench.faults.counts[f"list {kind}"]
        bench.faults.answers[kind].append(Answer.refusal(410, "Expired", "too old"))
        bench.faults.cut(kind)
        bench.probe()
        bench.cluster.wait_for(lambda: bench.faults.counts[f"list {kind}"] > lists, 10,
                               f"{kind} listed afresh")
    bench.judge()


def test_an_answer_of_200_with_nothing_in_it(context):
    bench = Bench(context).start()
    for kind in ("jobs", "pods"):
        bench.faults.answers[kind].extend([Answer(200), Answer(200)])
        bench.faults.cut(kind)
        bench.probe(10)
    bench.cluster.wait_for(lambda: bench.faults.counts["answered"] == 4, 15, "all four answered so")
    assert bench.faults.counts["watch jobs"] < 10, "it asks again without pauses"
    bench.judge()


def test_connections_closed_in_the_middle(context):
    """By a reset between events, by a reset inside one, in order, and all at once."""
    bench = Bench(context).start()
    for breaking in (lambda: bench.faults.cut("jobs"), lambda: bench.faults.tear_event("jobs"),
                     lambda: bench.faults.end("jobs"), bench.faults.cut, bench.proxy.cut_all,
                     lambda: bench.faults.tear_event("pods")):
        breaking()
        bench.probe()
    bench.judge()


def test_goodbye_over_http2(context):
    """GOAWAY as of a server that sheds connections: kept streams, disowned ones, and a close."""
    cluster = context.cluster
    pki = cluster.plane.directory / "pki"
    relay = GoawayRelay(cluster.plane.data["port"], pki / "ca.crt", pki / "server.crt",
                        pki / "server.key").start()
    bench = Bench(context, relay=relay).start()
    connections = relay.connections
    for disowns, closes in ((False, False), (True, True), (False, True), (True, False)):
        said = relay.say_goodbye(disowns, closes)
        assert said > 0
        bench.wait_started(bench.submit(3), 10)
    context.note(f"{connections} connections at first, {relay.connections} in the end")
    assert relay.connections > connections
    bench.judge()


def test_bookmarks_withheld_and_an_older_list_shown(context):
    """Without bookmarks its resourceVersions grow old; a WatchList that is older than what was seen
    is believed for as long as it stands, and starts nobody twice."""
    bench = Bench(context).start()
    bench.faults.has_bookmarks = False
    bench.probe()
    then = len(bench.faults.history)
    bench.wait_finished(bench.submit(4))
    lasting = bench.submit(3, pods=5, run_for="8s")
    bench.wait_started(lasting)
    bench.faults.older = {kind: (then, 2.0) for kind in ("jobs", "pods", "admissions")}
    for kind in ("jobs", "pods", "admissions"):
        bench.faults.expire(kind)
    late = bench.submit(3, pods=5)
    bench.wait_started(late, 30)
    assert bench.faults.counts["older"] == 3, bench.faults.counts
    bench.judge()


def test_a_huge_object(context):
    """A Job near the size that etcd takes: more than a megabyte of arguments."""
    bench = Bench(context).start()
    container = {"name": "main", "image": "registry.invalid/train:1",
                 "args": ["x" * 1000 for _ in range(1200)],
                 "resources": {"requests": {"cpu": "100m"}}}
    names = bench.submit(1, pods=1, pod_spec={"containers": [container]})
    bench.wait_started(names, SOON_S)
    bench.faults.cut()
    bench.probe()
    bench.judge()
