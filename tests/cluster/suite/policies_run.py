"""Where the policies of config/policies aren't installed the controller undoes what they would have
refused: nobody rides for free, and a Job that slipped through starts whole or not at all."""

from lib import manifests
from lib.cluster import stays
from lib.gangs import QUEUE, Gangs, remove_policies


class Unguarded:
    """A cluster without policies, a queue of one cpu, and the controller."""

    def __init__(self, context):
        self.cluster = context.own_cluster(nodes=2, is_audited=True)
        context.session.install(self.cluster)
        remove_policies(self.cluster)
        self.gangs = Gangs(self.cluster, context.namespace_in(self.cluster))
        self.cluster.apply(manifests.queue("q", {"cpu": "1"}), manifests.queue("r", {"cpu": "1"}))
        self.controller = context.controller(cluster=self.cluster)

    def job(self, name, **more):
        return self.gangs.create(manifests.job(name, self.gangs.namespace, queue="q", **more))[0]

    def one_warning(self, name, reason):
        """The note of the one Event of that reason."""
        self.cluster.wait_for(lambda: self.gangs.events(name, reason), 10, f"an Event {reason}")
        stays(lambda: len(self.gangs.events(name, reason)) == 1, 1, f"one Event {reason}")
        event = self.gangs.events(name, reason)[0]
        assert event["type"] == "Warning", event
        return event["note"]


def test_a_waiting_job_that_a_user_starts_is_suspended_again(context):
    free = Unguarded(context)
    gangs = free.gangs
    free.job("runs", pods=2, cpu="500m")
    gangs.wait_ready("runs", 2)
    free.job("waits", pods=2, cpu="500m", suspend=True)
    gangs.wait_reason("waits", "QuotaExhausted")
    gangs.patch("waits", {"spec": {"suspend": False}})
    free.cluster.wait_for(lambda: gangs.is_suspended("waits"), 5, "suspended again")
    free.cluster.wait_for(lambda: not gangs.pods("waits"), 10, "its pods gone")
    context.note(free.one_warning("waits", "NotAdmitted"))
    gangs.wait_reason("waits", "QuotaExhausted")
    gangs.wait_used("q", "cpu", "1")
    assert gangs.record("runs") and not gangs.is_suspended("runs"), "the Job that runs was touched"
    gangs.delete("runs")
    gangs.wait_ready("waits", 2)
    stays(lambda: gangs.ready("waits") == 2, 1, "no fight about it")


def test_a_job_that_is_created_running_is_suspended_and_queued(context):
    free = Unguarded(context)
    gangs = free.gangs
    free.job("first", pods=2, cpu="500m")
    free.cluster.wait_for(lambda: gangs.record("first"), 10, "admitted")
    free.job("second", pods=2, cpu="500m")
    message = gangs.wait_reason("second", "QuotaExhausted")
    assert "0 of 1 free" in message, message
    assert not gangs.record("second") and gangs.is_suspended("second")
    gangs.wait_ready("first", 2)
    gangs.create(manifests.job("plain", gangs.namespace, pods=1))
    gangs.wait_ready("plain", 1)
    gangs.patch("plain", {"metadata": {"labels": {QUEUE: "q"}}})
    free.cluster.wait_for(lambda: gangs.is_suspended("plain"), 5,
                          "a running Job that comes into the queue is suspended")
    gangs.wait_reason("plain", "QuotaExhausted")


def test_a_gang_that_grows_while_it_runs_is_stopped_whole(context):
    free = Unguarded(context)
    gangs = free.gangs
    free.job("grows", pods=2, completions=8, cpu="250m",
             pod_annotations={"example.com/stop-for": "2s"})
    gangs.wait_ready("grows", 2)
    gangs.wait_used("q", "cpu", "500m")
    gangs.patch("grows", {"spec": {"parallelism": 4}})
    free.cluster.wait_for(lambda: gangs.is_suspended("grows"), 5, "suspended")
    context.note(free.one_warning("grows", "Resized"))
    gangs.wait_ready("grows", 4)
    assert gangs.record("grows")["podSets"][0]["count"] == 4
    gangs.wait_used("q", "cpu", "1")

    gangs.patch("grows", {"spec": {"parallelism": 6}})
    gangs.wait_reason("grows", "NeverFits", 20)
    stays(lambda: gangs.is_suspended("grows") and not gangs.pods("grows"), 1,
          "more than the quota never runs")
    gangs.wait_used("q", "cpu", "0")


def test_a_gang_that_shrinks_gives_back_when_its_pods_are_gone(context):
    free = Unguarded(context)
    gangs = free.gangs
    free.job("shrinks", pods=4, completions=8, cpu="250m",
             pod_annotations={"example.com/stop-for": "3s"})
    gangs.wait_ready("shrinks", 4)
    gangs.wait_used("q", "cpu", "1")
    free.job("next", pods=2, cpu="250m", suspend=True)
    gangs.wait_reason("next", "QuotaExhausted")
    gangs.patch("shrinks", {"spec": {"parallelism": 2}})
    stays(lambda: gangs.is_suspended("next") and gangs.used("q", "cpu") == "1", 1.5,
          "charged while the extra pods stop")
    gangs.wait_ready("next", 2)
    gangs.wait_used("q", "cpu", "1")
    assert gangs.ready("shrinks") == 2 and not gangs.is_suspended("shrinks")


def test_a_running_job_that_leaves_its_queue_is_charged_there(context):
    free = Unguarded(context)
    gangs = free.gangs
    free.job("leaves", pods=2, cpu="500m")
    gangs.wait_ready("leaves", 2)
    gangs.wait_used("q", "cpu", "1")
    gangs.patch("leaves", {"metadata": {"labels": {QUEUE: None}}})
    free.job("next", pods=1, suspend=True)
    gangs.wait_reason("next", "QuotaExhausted")
    stays(lambda: gangs.used("q", "cpu") == "1" and gangs.is_suspended("next"), 1.5,
          "it is charged to its old queue")
    gangs.patch("leaves", {"metadata": {"labels": {QUEUE: "r"}}})
    stays(lambda: gangs.used("q", "cpu") == "1" and gangs.is_suspended("next")
          and gangs.used("r", "cpu") == "0", 1.5, "whatever its label says")
    gangs.patch("leaves", {"spec": {"suspend": True}})
    gangs.wait_ready("next", 1)
    gangs.wait_used("q", "cpu", "50m")
