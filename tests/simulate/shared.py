"""Devices that several claims share by their capacities, and claims that a gang has once for all its
pods."""
import claims
from bench import case, same
from claims import CLASS, CLUSTER, bound, job

CARDS = CLUSTER.split("  devices:\n", maxsplit=1)[0] + """\
  devices:
  - {name: card-0, allowMultipleAllocations: true, capacity: {memory: {value: 10Gi}}}
  - name: card-1
    allowMultipleAllocations: true
    capacity: {memory: {value: 10Gi, requestPolicy: {default: 2Gi, validRange: {min: 2Gi, step: 4Gi}}}}
"""
ONE = f"requests: [{{name: r, exactly: {{{CLASS}}}}}]"


def share(name, memory, **more):
    """A Job whose pods have so much of a card each; None: they don't say."""
    capacity = f", capacity: {{requests: {{memory: {memory}}}}}" if memory else ""
    return job(name, f"requests: [{{name: r, exactly: {{{CLASS}{capacity}}}}}]", **more)


def gang(name, pods, devices=ONE, head="", **more):
    """A Job whose pods have one claim together."""
    return job(name, devices, pods=pods, **more).replace(
        "  suspend: true\n", "  suspend: true\n" + head +
        f"  scheduling: {{schedulingPolicy: {{gang: {{minCount: {pods}}}}}, resourceClaims: "
        f"[{{name: lift, resourceClaimTemplateName: {name}}}]}}\n")


def lines(bench, cluster, *jobs, options=()):
    bench.write("c.yaml", cluster + "".join(jobs))
    return bench.good("c.yaml", "--with-tallyman", "--all", *options)


def when(text, name, what):
    """The moments at which that is told of the Job."""
    return [line.split()[0] for line in text.splitlines()
            if f" {name} " in line and what in line]


@case
def pods_share_a_card_as_far_as_its_capacity_goes(bench):
    """4 and 4 of 10 Gi of card-0; 3 Gi are 6 on card-1 by its steps (2, 6, 10), so one fits there."""
    text = lines(bench, CARDS, share("a", "4Gi", pods=2), share("b", "3Gi"),
                 share("c", "3Gi", after="1m"))
    assert "2 of 2 pods bound: w1 (card-0 card-0)" in text, text
    assert "1 of 1 pods bound: w1 (card-1)" in text, text
    freed, = when(text, "a", "finished")
    assert when(text, "c", "admitted on") == [freed], text


@case
def who_says_nothing_takes_the_default_or_all(bench):
    """All of card-0, then five times 2 Gi of card-1; the seventh waits."""
    text = lines(bench, CARDS, share("six", None, pods=6), share("one", None, after="1m"))
    assert "(card-0 card-1 card-1 card-1 card-1 card-1)" in text, text
    assert when(text, "one", "admitted on") == when(text, "six", "finished"), text


@case
def more_than_any_card_has_never_starts(bench):
    text = lines(bench, CARDS, share("big", "11Gi"))
    assert "admitted" not in text and "the end: 1 of 1 Jobs unfinished" in text, text


@case
def a_card_that_is_not_shared_is_taken_whole(bench):
    whole = CARDS.replace("allowMultipleAllocations: true, ", "", 1)
    text = lines(bench, whole, share("a", "2Gi"), share("b", "2Gi"), share("c", "2Gi"))
    places = [line.split("bound: ")[1] for line in text.splitlines() if "pods bound" in line]
    assert places == ["w1 (card-0)", "w1 (card-1)", "w1 (card-1)"], text


@case
def all_pods_of_a_gang_use_its_one_device(bench):
    _, where = bound(bench, "crew", gang("crew", 3))
    assert where == "w1 (lift-0 lift-0 lift-0)", where


@case
def the_gang_s_device_is_held_until_its_job_goes(bench):
    """Not only until it has finished: kube-scheduler's claim goes with the PodGroup."""
    all_three = f"requests: [{{name: r, exactly: {{{CLASS}, count: 3}}}}]"
    kept = lines(bench, CLUSTER, gang("crew", 3), job("all", all_three, after="1m"))
    assert when(kept, "crew", "finished") and not when(kept, "all", "admitted"), kept
    assert "1 of 2 Jobs unfinished" in kept, kept
    gone = lines(bench, CLUSTER, gang("crew", 3, head="  ttlSecondsAfterFinished: 60\n"),
                 job("all", all_three, after="1m"))
    assert when(gone, "crew", "finished") == ["00:05:03"], gone
    assert when(gone, "crew", "deleted") == when(gone, "all", "admitted on") == ["00:06:03"], gone
    assert "  2 of 2         0.0 device-h" in gone, gone


@case
def a_gang_waits_for_the_template_of_its_claim(bench):
    late = gang("crew", 2).replace("metadata: {name: crew, namespace: quay}",
                                   "metadata: {name: crew, namespace: quay, annotations: "
                                   "{example.com/submit-after: 1m}}")
    text = lines(bench, CLUSTER, late)
    assert when(text, "crew", "admitted on") == ["00:01:00"], text


@case
def both_hold_while_writes_and_watches_fail(bench):
    """Nothing is given out twice or charged wrongly, and all who can finish do."""
    pods = [share(f"s{i}", f"{2 + i % 3}Gi", pods=1 + i % 3, after=f"{i}m") for i in range(6)]
    crews = [gang(f"g{i}", 2 + i, head="  ttlSecondsAfterFinished: 30\n", after=f"{i}m")
             for i in range(5)]
    for seed in "123":
        for cluster, jobs in ((CARDS, pods), (claims.CLUSTER, crews)):
            text = lines(bench, cluster, *jobs, options=("--faults", "--seed", seed))
            assert "held        no node" in text, (seed, text)
            assert "the end: every Job has finished" in text, (seed, text)


def card(policy):
    """One card of 10 Gi of which a share is taken by that policy."""
    return CLUSTER.split("  devices:\n", maxsplit=1)[0] + f"""\
  devices:
  - name: card-0
    allowMultipleAllocations: true
    capacity: {{memory: {{value: 10Gi, requestPolicy: {{{policy}}}}}}}
"""


def both(bench, cluster, *jobs):
    """How many pods are bound of each Job after two minutes, by kube-scheduler alone and with
    Tallyman: the two have to agree about what a share takes."""
    names = [text.split("metadata: {name: ")[1].split(",")[0] for text in jobs]
    bench.write("c.yaml", cluster + "".join(jobs))
    halves = []
    for option in ("--plain", "--with-tallyman"):
        text = bench.good("c.yaml", option, "--all", "--until", "2m")
        halves.append([any(f" {name} " in line and "pods bound: w1 (card-0" in line
                           for line in text.splitlines()) for name in names])
    same(halves[0], halves[1])
    return halves[0]


@case
def a_share_takes_the_next_of_the_valid_values(bench):
    """3 Gi are 4, twice; of the 2 Gi that are left, nothing is left for 3, and 2 are just right."""
    values = card("default: 2Gi, validValues: [2Gi, 4Gi, 8Gi]")
    same(both(bench, values, share("a", "3Gi"), share("b", "3Gi"), share("c", "3Gi", after="10s"),
              share("d", None, after="20s"), share("e", "1Gi", after="30s")),
         [True, True, False, True, False])
    same(both(bench, values, share("a", "8Gi")), [True])
    same(both(bench, values, share("a", "9Gi")), [False])


@case
def a_share_of_a_range_is_no_more_than_its_maximum(bench):
    bounded = card("default: 1Gi, validRange: {min: 1Gi, max: 4Gi}")
    same(both(bench, bounded, share("a", "4Gi"), share("b", "4Gi"), share("c", "3Gi", after="10s"),
              share("d", "2Gi", after="20s")), [True, True, False, True])
    same(both(bench, bounded, share("a", "5Gi")), [False])


@case
def a_capacity_that_no_card_has_is_never_given(bench):
    other = share("a", "1Gi").replace("memory: 1Gi", "cores: 1")
    same(both(bench, card("default: 1Gi"), other, share("b", "1Gi")), [False, True])
