"""S6: a gang that can save its work is asked for a checkpoint before it is stopped for another, and
resumes later by itself in its old place."""

import datetime

from lib import manifests
from lib.cluster import stays
from lib.gangs import Gangs

CLASS = "gpu.example.com"
GRACE = "tallyman.dev/checkpoint-grace"
REQUEST = "tallyman.dev/checkpoint-request"
SAVED = "tallyman.dev/last-checkpoint"
PRIORITY = "tallyman.dev/priority-class"


class TwoCards:
    """One node with two cards, and a queue of both in which high stops low."""

    def __init__(self, context):
        self.cluster = context.own_cluster(nodes=1, devices=2)
        self.namespace = context.namespace_in(self.cluster)
        self.gangs = Gangs(self.cluster, self.namespace)
        self.controller = context.controller(cluster=self.cluster)
        self.cluster.apply(manifests.priority_class("low", 1), manifests.priority_class("high", 9),
                           manifests.queue("cards", {CLASS: "2"},
                                           preemption={"withinQueue": "LowerPriority"}),
                           manifests.claim_template("one-gpu", self.namespace))

    def job(self, name, priority, **more):
        self.gangs.create(manifests.job(name, self.namespace, queue="cards", pods=2,
                                        claim_templates=["one-gpu"], labels={PRIORITY: priority},
                                        **more))

    def marks(self, name):
        """The request as its pods have it."""
        return {pod["metadata"].get("annotations", {}).get(REQUEST)
                for pod in self.gangs.pods(name)}

    def save(self, name):
        now = datetime.datetime.now(datetime.timezone.utc)
        self.gangs.annotate(name, SAVED, now.strftime("%Y-%m-%dT%H:%M:%SZ"))

    def wait_asked(self, name):
        self.cluster.wait_for(lambda: self.gangs.annotation(name, REQUEST), 10,
                              f"the request for a checkpoint on {name}")
        request = self.gangs.annotation(name, REQUEST)
        self.cluster.wait_for(lambda: self.marks(name) == {request}, 10, "the same on its pods")
        self.gangs.wait_reason("high", "WaitingForVictims")
        return request


def test_it_saves_stops_and_resumes_by_itself(context):
    cards = TwoCards(context)
    gangs = cards.gangs
    cards.job("low", "low", annotations={GRACE: "10m"})
    gangs.wait_ready("low", 2)
    gangs.wait_state("low", "Running")
    cards.job("later", "low")
    cards.job("high", "high", run_for="3s")
    request = cards.wait_asked("low")
    assert gangs.status("high")["state"] == "Reserved", gangs.status("high")
    stays(lambda: not gangs.is_suspended("low"), 1, "low running until it has saved")

    cards.controller.restart(is_killed=True)
    stays(lambda: not gangs.is_suspended("low"), 1, "low running after a restart, too")
    assert gangs.annotation("low", REQUEST) == request, "asked once"
    gangs.wait_state("high", "Reserved")

    cards.save("low")
    gangs.wait_started("high")
    assert gangs.is_suspended("low")
    assert gangs.annotation("low", REQUEST) is None, "the request has gone"
    gangs.wait_complete("high")
    gangs.wait_ready("low", 2)
    assert gangs.is_suspended("later"), "low is in its old place, before later"
    assert gangs.status("low").get("evictions") == 1, gangs.status("low")


def test_out_of_grace_it_stops_unsaved(context):
    cards = TwoCards(context)
    gangs = cards.gangs
    cards.job("low", "low", annotations={GRACE: "5s"})
    gangs.wait_ready("low", 2)
    gangs.wait_state("low", "Running")
    cards.job("high", "high")
    cards.wait_asked("low")
    gangs.wait_started("high", 20)
    assert gangs.is_suspended("low")


def test_the_request_is_taken_back(context):
    cards = TwoCards(context)
    gangs = cards.gangs
    cards.job("low", "low", annotations={GRACE: "10m"})
    gangs.wait_ready("low", 2)
    gangs.wait_state("low", "Running")
    cards.job("high", "high")
    cards.wait_asked("low")
    gangs.delete("high")
    cards.cluster.wait_for(lambda: gangs.annotation("low", REQUEST) is None, 10,
                           "the request taken back")
    cards.cluster.wait_for(lambda: cards.marks("low") == {None}, 10, "on the pods, too")
    assert not gangs.is_suspended("low")
    gangs.wait_state("low", "Running")
