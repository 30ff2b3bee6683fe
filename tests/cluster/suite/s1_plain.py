"""S1 without Tallyman: the deadlock that gang admission exists for, on plain Kubernetes."""

from lib import manifests
from lib.cluster import stays

DEVICES = 6
GANG = 4
JOBS = ("train-a", "train-b")


def _bound(cluster, namespace, job):
    return sum(1 for pod in cluster.pods(namespace, job) if pod["spec"].get("nodeName"))


def _training(cluster, namespace):
    """The Jobs whose whole gang runs: a distributed training makes no step with less."""
    return [job for job in JOBS
            if cluster.job(namespace, job)["status"].get("ready", 0) == GANG]


def _waiting_message(cluster, namespace):
    """What the scheduler says about a pod that it can't place."""
    for pod in cluster.pods(namespace):
        for condition in pod["status"].get("conditions", []):
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                return condition["message"]
    return ""


def test_two_gangs_of_four_deadlock_on_six_devices(context):
    cluster, namespace = context.cluster, context.namespace
    assert not cluster.devices_held(), "devices are held before the test has made any Job"
    cluster.apply(manifests.claim_template("one-gpu", namespace),
                  *(manifests.job(job, namespace, pods=GANG, claim_templates=["one-gpu"])
                    for job in JOBS))

    def is_settled():
        split = [_bound(cluster, namespace, job) for job in JOBS]
        return sum(split) == DEVICES and _waiting_message(cluster, namespace)

    cluster.wait_for(is_settled, 30, "six of the eight pods bound, and a reason for the others")
    cluster.wait_for(lambda: sum(cluster.job(namespace, job)["status"].get("ready", 0)
                                 for job in JOBS) == DEVICES, 15, "the bound pods Ready")
    assert len(cluster.devices_held(namespace)) == DEVICES, "every device should be held"
    stays(lambda: len(cluster.devices_held(namespace)) == DEVICES
          and len(_training(cluster, namespace)) <= 1, 3,
          "all six devices are held and at most one of the two Jobs trains")

    split = sorted((_bound(cluster, namespace, job) for job in JOBS), reverse=True)
    training = _training(cluster, namespace)
    assert split in ([3, 3], [4, 2]), f"pods bound per Job: {split}"
    assert len(training) == (1 if split == [4, 2] else 0)
    context.note(f"plain Kubernetes: devices held {DEVICES} of {DEVICES} "
                 f"({split[0]}+{split[1]}), jobs that train {len(training)}, left for others 0")
    context.note(f"the scheduler says: {_waiting_message(cluster, namespace)}")
