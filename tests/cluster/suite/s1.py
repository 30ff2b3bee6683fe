"""S1 with Tallyman: on six devices two gangs of four take turns, and the two devices that are left
serve others. The table of plain Kubernetes is in s1_plain."""

from lib import manifests
from lib.cluster import stays
from lib.gangs import Bindings, Gangs

DEVICES = 6
GANG = 4
CLASS = "gpu.example.com"


def _training(namespace, queue, name, pods=GANG, **more):
    return manifests.job(name, namespace, pods=pods, queue=queue, claim_templates=["one-gpu"],
                         **more)


def _wait_sentence(gangs, name):
    """What train-b says once it tells of the devices that are free while train-a runs."""
    try:
        gangs.cluster.wait_for(lambda: "2 of 6 are free" in gangs.summary(name), 10,
                               f"{name} says that 2 of 6 devices are free")
    except AssertionError as error:
        raise AssertionError(f"{error}; {gangs.describe(name)}") from None
    return gangs.status(name)


def test_two_gangs_of_four_take_turns_on_six_devices(context):
    cluster, namespace, queue = context.cluster, context.namespace, context.name("research")
    gangs = Gangs(cluster, namespace)
    assert not cluster.devices_held(), "devices are held before the test has made any Job"
    context.controller()
    context.apply(manifests.queue(queue, {CLASS: str(2 * GANG)}),
                  manifests.claim_template("one-gpu", namespace))
    sizes = {"train-a": GANG, "train-b": GANG, "small": 2}
    with Bindings(cluster, namespace, sizes) as bindings:
        cluster.apply(_training(namespace, queue, "train-a", run_for="20s"))
        gangs.wait_started("train-a")
        cluster.apply(_training(namespace, queue, "train-b"))
        bindings.follow_until(lambda: gangs.ready("train-a") == GANG, 15, "train-a is whole")
        status = _wait_sentence(gangs, "train-b")
        assert status["reason"] == "DevicesExhausted", status
        assert status["message"].startswith(f"needs 4 {CLASS} at once, 2 of 6 are free"), status
        held = len(cluster.devices_held(namespace))
        assert held == GANG and not gangs.pods("train-b"), "train-b has pods while it waits"
        context.note("                   devices held   jobs that train   left for others")
        context.note("plain Kubernetes   6 of 6         0 or 1            0   (s1_plain)")
        context.note(f"with Tallyman      {held} of {DEVICES}         1                 "
                     f"{DEVICES - held}")
        context.note(f"train-b: {status['summary']}")

        cluster.apply(_training(namespace, queue, "small", pods=2))
        bindings.follow_until(lambda: gangs.ready("small") == 2, 5, "a third Job of 2 starts")
        assert gangs.is_suspended("train-b"), "train-b has started on devices that aren't free"
        assert len(cluster.devices_held(namespace)) == DEVICES

        bindings.follow_until(lambda: cluster.has_condition(namespace, "train-a", "Complete"), 30,
                              "train-a has ended")
        bindings.follow_until(lambda: gangs.ready("train-b") == GANG, 15,
                              "train-b starts by itself when train-a has ended")
        partial = bindings.assert_never_partial()
    context.note("longest time with a part of a gang bound: "
                 f"{max(partial.values(), default=0):.2f} s")
    record = gangs.record("train-b")
    assert record["queue"] == queue and record["podSets"][0]["count"] == GANG, record


def test_a_gang_larger_than_the_free_devices_holds_none(context):
    """Whatever comes and goes, a waiting Job has neither pods nor claims."""
    cluster, namespace, queue = context.cluster, context.namespace, context.name("research")
    gangs = Gangs(cluster, namespace)
    context.controller()
    context.apply(manifests.queue(queue, {CLASS: "20"}),
                  manifests.claim_template("one-gpu", namespace))
    gangs.create(_training(namespace, queue, "seven", pods=7))
    message = gangs.wait_reason("seven", "NeverFits")
    assert message.startswith(f"needs 7 {CLASS} at once, and all nodes that it may use have 6"), message
    gangs.create(_training(namespace, queue, "six", pods=6, run_for="1s"))
    gangs.wait_complete("six")
    stays(lambda: not gangs.pods("seven")
          and all("seven" not in holder for holders in cluster.devices_held().values()
                  for holder in holders), 1, "the gang of seven holds nothing")
