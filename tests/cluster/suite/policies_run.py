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


def test_the_default_queue_of_a_namespace_is_applied(context):
    free = Unguarded(context)
    gangs = free.gangs
    gangs.create(manifests.job("early", gangs.namespace, pods=1, cpu="500m"))
    gangs.wait_ready("early", 1)
    free.cluster.kubectl("label", "namespace", gangs.namespace, "tallyman.dev/default-queue=q")
    stays(lambda: not gangs.is_suspended("early"), 2, "what ran before is left alone")
    gangs.create(manifests.job("bare", gangs.namespace, pods=2, cpu="500m"))
    gangs.wait_ready("bare", 2)
    assert gangs.record("bare")["queue"] == "q"
    assert gangs.job("bare")["metadata"]["labels"][QUEUE] == "q"
    gangs.create(manifests.job("paused", gangs.namespace, pods=2, cpu="500m", suspend=True))
    gangs.wait_reason("paused", "QuotaExhausted")
    assert gangs.ready("early") == 1 and not gangs.record("early")


def test_a_label_that_is_taken_off_is_put_back(context):
    free = Unguarded(context)
    gangs = free.gangs
    free.cluster.kubectl("label", "namespace", gangs.namespace, "tallyman.dev/default-queue=q")
    free.job("runs", pods=2, cpu="500m")
    gangs.wait_ready("runs", 2)
    free.job("waits", pods=2, cpu="500m", suspend=True)
    gangs.wait_reason("waits", "QuotaExhausted")
    gangs.patch("waits", {"metadata": {"labels": {QUEUE: None}}})
    context.note(free.one_warning("waits", "DefaultQueue"))
    gangs.patch("waits", {"spec": {"suspend": False}})
    free.cluster.wait_for(lambda: gangs.is_suspended("waits"), 5, "suspended again")
    free.cluster.wait_for(
        lambda: gangs.job("waits")["metadata"].get("labels", {}).get(QUEUE) == "q", 5, "put back")
    gangs.wait_used("q", "cpu", "1")


def test_pods_of_an_orphan_deleted_job_hold_their_quota(context):
    free = Unguarded(context)
    gangs = free.gangs
    free.job("gone", pods=2, cpu="500m")
    gangs.wait_ready("gone", 2)
    gangs.wait_used("q", "cpu", "1")
    free.cluster.kubectl("-n", gangs.namespace, "delete", "job", "gone", "--cascade=orphan")
    free.job("next", pods=2, cpu="500m", suspend=True)
    gangs.wait_reason("next", "QuotaExhausted")
    stays(lambda: not gangs.record("next"), 3, "the quota is still taken")
    free.controller.restart()
    stays(lambda: not gangs.record("next"), 4, "taken after a restart, too")
    free.cluster.kubectl("-n", gangs.namespace, "delete", "pod", "-l",
                         "batch.kubernetes.io/job-name=gone")
    gangs.wait_ready("next", 2)
    free.cluster.wait_for(lambda: gangs.admission("gone") is None, 10, "the ghost deleted")


def test_a_queue_and_a_namespace_are_drained(context):
    free = Unguarded(context)
    gangs = free.gangs
    free.job("gang", pods=2, cpu="500m")
    gangs.wait_ready("gang", 2)
    free.cluster.kubectl("patch", "queues.tallyman.dev", "q", "--type=merge", "-p",
                         '{"spec":{"stopPolicy":"HoldAndDrain"}}')
    gangs.wait_reason("gang", "QueueStopped")
    free.cluster.wait_for(lambda: not gangs.pods("gang"), 10, "its pods gone")
    context.note(free.one_warning("gang", "QueueStopped"))
    free.cluster.kubectl("patch", "queues.tallyman.dev", "q", "--type=merge", "-p",
                         '{"spec":{"stopPolicy":"None"}}')
    gangs.wait_ready("gang", 2)
    free.cluster.kubectl("annotate", "namespace", gangs.namespace,
                         "tallyman.dev/stop-policy=q=HoldAndDrain")
    message = gangs.wait_reason("gang", "QueueStopped")
    assert "use of queue q is stopped" in message, message
    free.cluster.kubectl("annotate", "namespace", gangs.namespace, "tallyman.dev/stop-policy-")
    gangs.wait_ready("gang", 2)
