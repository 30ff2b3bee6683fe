"""The scenarios S1..S10, each made small: seconds long, driven step by step by what the cluster
shows, so that every run comes to the same end. A step waits for what stays true until the next."""

import datetime

from lib import manifests
from lib.fixtures import DRIVER

from .worlds import RACK, STEP_S, ZONE

PATIENT = {"backoffLimit": 6}
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims"


def s1_deadlock(world):
    """Two gangs of four and six devices; one of two goes by."""
    gangs = world.gangs
    world.flavor()
    world.queue("q", {DRIVER: 12})
    world.template()
    world.job("train-a", 4)
    gangs.wait_ready("train-a", 4)
    world.job("train-b", 4)
    gangs.wait_reason("train-b", "DevicesExhausted")
    world.job("small", 2)
    gangs.wait_ready("small", 2)
    world.finish("train-a")
    gangs.wait_ready("train-b", 4)
    world.finish("small", "train-b")


def s2_preemption(world):
    """A gang of high priority stops a low one whole, and that one resumes."""
    gangs = world.gangs
    world.flavor()
    world.queue("q", {DRIVER: 12}, preemption={"withinQueue": "LowerPriority"})
    world.template()
    world.job("low", 4, priority="low")
    gangs.wait_ready("low", 4)
    world.job("urgent", 4, priority="high")
    gangs.wait_ready("urgent", 4)
    world.finish("urgent")
    gangs.wait_ready("low", 4)
    gangs.wait_state("low", "Running")


def s3_pruned_field(world):
    """min-count by the field that the server drops; the gang starts with what there is room for."""
    gangs = world.gangs
    world.flavor()
    world.queue("q", {DRIVER: 5})
    world.template()
    world.job("first", 3, live_min_count=3)
    gangs.wait_ready("first", 3)
    world.job("second", 4, live_min_count=2, annotations={"tallyman.dev/partial": "true"})
    gangs.wait_ready("second", 2)
    world.finish("first")
    gangs.wait_state("second", "Running")
    world.finish("second")


def s4_shared_claim(world):
    """Two Jobs share one card; the third that wants it waits for the last of them."""
    gangs = world.gangs
    world.flavor()
    world.queue("q", {DRIVER: 1, "cpu": 8})
    world.template()
    world.cluster.request("POST", CLAIMS.format(world.namespace),
                          manifests.claim("mps", world.namespace))
    world.job("early", 2, templates=(), claims=["mps"])
    gangs.wait_ready("early", 2)
    world.job("late", 1, templates=(), claims=["mps"])
    gangs.wait_ready("late", 1)
    world.job("alone", 1)
    gangs.wait_reason("alone", "QuotaExhausted")
    world.job("cpu-only", 1, templates=())
    gangs.wait_ready("cpu-only", 1)
    world.finish("early")
    gangs.wait_reason("alone", "QuotaExhausted")
    world.finish("late")
    gangs.wait_ready("alone", 1)
    world.finish("alone")


def s5_reasons(world):
    """Gangs that wait for different things, which then come one by one."""
    gangs = world.gangs
    world.flavor()
    world.queue("q", {DRIVER: 2})
    world.template()
    world.job("runs", 2)
    gangs.wait_ready("runs", 2)
    world.job("never", 3)
    gangs.wait_reason("never", "NeverFits")
    world.job("held", 1, annotations={"tallyman.dev/hold": "true"})
    gangs.wait_reason("held", "Held")
    world.job("missing", 1, templates=["later"])
    gangs.wait_reason("missing", "MissingReference")
    world.job("quota", 2)
    gangs.wait_reason("quota", "QuotaExhausted")
    world.finish("runs")
    gangs.wait_ready("quota", 2)
    world.template("later")
    gangs.wait_reason("missing", "QuotaExhausted")
    world.finish("quota")
    gangs.wait_ready("missing", 1)
    gangs.annotate("held", "tallyman.dev/hold", None)
    gangs.wait_ready("held", 1)


def s6_checkpoint(world):
    """The victim is asked for a checkpoint, saves, stops whole, and resumes."""
    gangs = world.gangs
    world.flavor()
    world.queue("q", {DRIVER: 2}, preemption={"withinQueue": "LowerPriority"})
    world.template()
    world.job("low", 2, priority="low", annotations={"tallyman.dev/checkpoint-grace": "10m"})
    gangs.wait_ready("low", 2)
    gangs.wait_state("low", "Running")
    world.job("high", 2, priority="high")
    world.cluster.wait_for(lambda: gangs.annotation("low", "tallyman.dev/checkpoint-request"), STEP_S,
                           "the request for a checkpoint")
    now = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=1)
    gangs.annotate("low", "tallyman.dev/last-checkpoint", now.strftime("%Y-%m-%dT%H:%M:%SZ"))
    gangs.wait_ready("high", 2)
    world.finish("high")
    gangs.wait_ready("low", 2)
    gangs.wait_state("low", "Running")


def s7_unhealthy(world):
    """A device becomes unfit: its gang stops whole and starts on others."""
    gangs = world.gangs
    world.flavor()
    world.queue("q", {DRIVER: 4})
    world.template()
    world.job("train", 2, spec=PATIENT)
    gangs.wait_ready("train", 2)
    gangs.wait_state("train", "Running")
    driver, pool, device = sorted(world.cluster.devices_held(world.namespace))[0].split("/")
    world.add({"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule",
               "metadata": {"name": world.own("broken")},
               "spec": {"deviceSelector": {"driver": driver, "pool": pool, "device": device},
                        "taint": {"key": "example.com/broken", "effect": "NoExecute"}}})
    world.cluster.wait_for(
        lambda: gangs.status("train").get("evictions") == 1 and gangs.ready("train") == 2
        and not gangs.is_suspended("train")
        and f"{driver}/{pool}/{device}" not in world.cluster.devices_held(world.namespace), STEP_S,
        "train on healthy devices")
    gangs.wait_state("train", "Running")


def s8_give_back(world):
    """A borrows what B leaves idle, and gives it back when B wants it."""
    gangs = world.gangs
    world.flavor()
    cohort = world.own("lab")
    for name in ("a", "b"):
        world.queue(name, {DRIVER: 3}, cohort=cohort,
                    preemption={"reclaimWithinCohort": "Any"})
    world.template()
    world.job("own", 3, queue="a")
    gangs.wait_ready("own", 3)
    world.job("borrower", 2, queue="a")
    gangs.wait_ready("borrower", 2)
    gangs.wait_state("borrower", "Running")
    world.job("owner", 3, queue="b")
    gangs.wait_ready("owner", 3)
    gangs.wait_state("borrower", "Pending")
    world.finish("owner")
    gangs.wait_ready("borrower", 2)
    world.finish("own", "borrower")


def s9_user_and_cost(world):
    """Its user stops it and lets it go on; the queue is deleted under it and stays until it ends."""
    gangs = world.gangs
    world.flavor()
    world.queue("q", {DRIVER: 4})
    world.template()
    world.job("train", 4)
    gangs.wait_ready("train", 4)
    gangs.wait_state("train", "Running")
    gangs.patch("train", {"spec": {"suspend": True}})
    gangs.wait_state("train", "Held")
    world.job("next", 2)
    gangs.wait_ready("next", 2)
    gangs.annotate("train", "tallyman.dev/hold", None)
    gangs.wait_reason("train", "QuotaExhausted")
    world.finish("next")
    gangs.wait_ready("train", 4)
    world.cluster.request("DELETE", f"/apis/tallyman.dev/v1beta1/queues/{world.own('q')}")
    world.job("too-late", 1)
    gangs.wait_reason("too-late", "QueueStopped")
    world.finish("train")
    gangs.wait_reason("too-late", "QueueNotFound")


def s10_shape(world):
    """Enough in total, but not on one node, and not in one rack."""
    gangs = world.gangs
    world.flavor(topology={"levels": [ZONE, RACK, "kubernetes.io/hostname"]})
    world.queue("q", {DRIVER: 12})
    world.template()
    world.template("pair", 2)
    for number in (1, 2):
        world.job(f"holder-{number}", 1,
                  node_selector={"kubernetes.io/hostname": world.node(number)})
        gangs.wait_ready(f"holder-{number}", 1)
    world.job("rack", 4, annotations={"tallyman.dev/required-topology": RACK})
    gangs.wait_reason("rack", "TopologyUnsatisfied")
    world.job("node", 1, templates=["pair"], node_selector={RACK: "r1"})
    gangs.wait_reason("node", "NodeShape")
    world.finish("holder-1")
    gangs.wait_ready("node", 1)
    world.finish("holder-2", "node")
    gangs.wait_ready("rack", 4)
    gangs.wait_state("rack", "Running")


# name: (story, room in pods that no instant may exceed)
STORIES = {
    "s1": (s1_deadlock, 6), "s2": (s2_preemption, 6), "s3": (s3_pruned_field, 6),
    "s4": (s4_shared_claim, 5), "s5": (s5_reasons, 2), "s6": (s6_checkpoint, 2),
    "s7": (s7_unhealthy, 4), "s8": (s8_give_back, 6), "s9": (s9_user_and_cost, 4),
    "s10": (s10_shape, 6)}
