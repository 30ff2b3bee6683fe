"""An Indexed Job that may start with fewer pods: started so, finished so, and put back if stopped."""

from lib import manifests
from lib.cluster import stays
from lib.gangs import Gangs

PARTIAL = {"tallyman.dev/partial": "true"}


class Place:
    """One node, and a queue with room for `cpu`."""

    def __init__(self, context, cpu):
        self.cluster = context.own_cluster(nodes=1, devices=0)
        self.namespace = context.namespace_in(self.cluster)
        self.gangs = Gangs(self.cluster, self.namespace)
        self.controller = context.controller(cluster=self.cluster)
        self.cluster.apply(manifests.queue("q", {"cpu": cpu}))

    def create(self, name, **more):
        self.gangs.create(manifests.job(name, self.namespace, queue="q", cpu="1", **more))

    def sizes(self, name):
        spec = self.cluster.job(self.namespace, name)["spec"]
        return spec["parallelism"], spec["completions"]

    def quota_becomes(self, cpu):
        self.cluster.apply(manifests.queue("q", {"cpu": cpu}))


def test_an_indexed_job_starts_with_fewer_pods_and_ends_with_as_many(context):
    place = Place(context, "3")
    place.create("elastic", pods=5, min_count=2, annotations=PARTIAL, run_for="4s")
    place.gangs.wait_ready("elastic", 3)
    assert place.sizes("elastic") == (3, 3), f"parallelism, completions: {place.sizes('elastic')}"
    place.gangs.wait_used("q", "cpu", "3")
    place.gangs.wait_complete("elastic")
    job = place.cluster.job(place.namespace, "elastic")
    assert job["status"]["completedIndexes"] == "0-2", job["status"]
    place.gangs.wait_used("q", "cpu", "0")


def test_a_stopped_one_has_its_pods_back_and_starts_whole_when_there_is_room(context):
    place = Place(context, "3")
    place.create("elastic", pods=5, min_count=2, annotations=PARTIAL)
    place.gangs.wait_ready("elastic", 3)
    place.cluster.kubectl("annotate", "job", "elastic", "-n", place.namespace,
                          "tallyman.dev/hold=true")
    place.cluster.kubectl("patch", "job", "elastic", "-n", place.namespace, "--type=merge",
                          "-p", '{"spec":{"suspend":true}}')
    place.cluster.wait_for(lambda: place.sizes("elastic") == (5, 5), 20,
                           "parallelism and completions put back")
    stays(lambda: not place.gangs.is_started("elastic"), 1.5, "held, it isn't started")
    place.quota_becomes("5")
    place.cluster.kubectl("annotate", "job", "elastic", "-n", place.namespace,
                          "tallyman.dev/hold-")
    place.gangs.wait_ready("elastic", 5)
    assert place.sizes("elastic") == (5, 5)


def test_one_that_isnt_indexed_does_all_its_work_with_fewer_pods(context):
    place = Place(context, "2")
    place.create("bag", pods=3, completions=4, min_count=1, annotations=PARTIAL, run_for="2s",
                 spec={"completionMode": "NonIndexed"})
    place.gangs.wait_ready("bag", 2)
    assert place.sizes("bag") == (2, 4), f"parallelism, completions: {place.sizes('bag')}"
    place.gangs.wait_complete("bag")
