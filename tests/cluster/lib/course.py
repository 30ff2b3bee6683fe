"""What happened to a namespace's Jobs and pods, told from their watches and judged afterwards.

Both streams are put in the order of their resourceVersions, which is the order in which etcd took
the writes: so "at every moment" means at every write that anybody made."""

import threading
import time

TERMINAL = ("Succeeded", "Failed")
CONSUMER_POLL_S = 0.5
SETTLE_S = 0.3


def pod_job(pod):
    return pod["metadata"].get("labels", {}).get("batch.kubernetes.io/job-name")


def is_terminal(pod):
    return pod["status"].get("phase") in TERMINAL


def is_suspended(job):
    return bool(job["spec"].get("suspend"))


def is_finished(job):
    return any(item["type"] in ("Complete", "Failed") and item["status"] == "True"
               for item in job["status"].get("conditions", []))


class _Follower(threading.Thread):
    """Reads a watch and keeps of each event only what is judged."""

    def __init__(self, watch, digest):
        super().__init__(name=f"course {watch.path}", daemon=True)
        self.watch, self.digest = watch, digest
        self.events, self.error, self.is_stopping = [], None, False

    def run(self):
        try:
            while not self.is_stopping:
                event = self.watch.next(CONSUMER_POLL_S)
                if event is not None:
                    self.watch.seen.clear()
                    self.events.append(self.digest(*event))
        except Exception as error:  # handed on to whoever judges
            self.error = error


def _job_digest(kind, job):
    meta = job["metadata"]
    return {"at": time.monotonic(), "version": int(meta["resourceVersion"]), "type": "job",
            "is_gone": kind == "DELETED", "name": meta["name"], "uid": meta["uid"],
            "is_suspended": is_suspended(job), "is_finished": is_finished(job),
            "has_record": "tallyman.dev/admission" in meta.get("annotations", {}),
            "pods": job["spec"]["parallelism"]}


def _pod_digest(kind, pod):
    meta = pod["metadata"]
    return {"at": time.monotonic(), "version": int(meta["resourceVersion"]), "type": "pod",
            "is_gone": kind == "DELETED", "name": meta["name"], "job": pod_job(pod),
            "is_bound": bool(pod["spec"].get("nodeName")), "is_terminal": is_terminal(pod)}


class JobLife:
    """What was seen of one Job."""

    def __init__(self, name, pods):
        self.name, self.pods = name, pods
        self.is_suspended, self.is_gone, self.is_finished = True, False, False
        self.started, self.stopped = 0, 0  # suspend true->false, and back
        self.started_at = None
        self.bound_at = {}                 # pod name: when it was first seen bound
        self.live, self.ended = set(), set()

    @property
    def charge(self):
        """Pods that it may hold: those that run or are still to come."""
        if self.is_suspended or self.is_gone:
            return len(self.live)
        return max(self.pods - len(self.ended), len(self.live))

    def binding_s(self):
        """From its first pod bound to its last one; None if not all were."""
        if len(self.bound_at) < self.pods:
            return None
        times = self.bound_at.values()
        return max(times) - min(times)


class Course:
    """Follows the namespace from its making to close(); then `judge` tells."""

    def __init__(self, cluster, namespace):
        self.watches = [cluster.watch(f"/apis/batch/v1/namespaces/{namespace}/jobs"),
                        cluster.watch(f"/api/v1/namespaces/{namespace}/pods")]
        # Kept, since a long run has very many events.
        self._seen, self._started, self._finished = set(), set(), set()
        self.followers = [_Follower(self.watches[0], self._job_digest),
                          _Follower(self.watches[1], _pod_digest)]
        for follower in self.followers:
            follower.start()

    def _job_digest(self, kind, job):
        digest = _job_digest(kind, job)
        self._seen.add(digest["name"])
        if digest["is_finished"]:
            self._finished.add(digest["name"])
        if not digest["is_suspended"]:
            self._started.add(digest["name"])
        return digest

    def jobs_seen(self):
        return self._seen.copy()

    def jobs_finished(self):
        """Names of Jobs seen finished so far."""
        return self._finished.copy()

    def jobs_started(self):
        return self._started.copy()

    def close(self):
        time.sleep(SETTLE_S)
        for follower in self.followers:
            follower.is_stopping = True
        for follower in self.followers:
            follower.join(5)
        for watch in self.watches:
            watch.close()
        for follower in self.followers:
            if follower.error:
                raise follower.error

    def judge(self, slots):
        """Plays all events in order. Fails if ever more than `slots` pods were running, or charged
        to the Jobs that had been let go. Returns ({job name: JobLife}, most pods, most charged)."""
        lives, owner = {}, {}
        running = charged = most_running = most_charged = 0
        events = sorted((event for follower in self.followers for event in follower.events),
                        key=lambda event: event["version"])
        assert events, "nothing was seen"
        for event in events:
            life = self._life_of(lives, event)
            if life is None:
                continue
            before_running, before_charge = len(life.live), life.charge
            if event["type"] == "job":
                self._take_job(life, event)
            else:
                owner[event["name"]] = life.name
                self._take_pod(life, event)
            running += len(life.live) - before_running
            charged += life.charge - before_charge
            most_running, most_charged = max(most_running, running), max(most_charged, charged)
            what = f"at resourceVersion {event['version']}, an event of {event['name']}"
            assert running <= slots, f"{what}: {running} pods run, the quota is {slots}"
            assert charged <= slots, f"{what}: {charged} pods are let go, the quota is {slots}"
        return lives, most_running, most_charged

    @staticmethod
    def _life_of(lives, event):
        if event["type"] == "pod":
            return lives.get(event["job"])
        if event["name"] not in lives:
            lives[event["name"]] = JobLife(event["name"], event["pods"])
            lives[event["name"]].is_suspended = event["is_suspended"]
        return lives[event["name"]]

    @staticmethod
    def _take_job(life, event):
        if life.is_suspended and not event["is_suspended"]:
            life.started += 1
            life.started_at = event["at"]
        elif not life.is_suspended and event["is_suspended"]:
            life.stopped += 1
        life.is_suspended, life.is_gone = event["is_suspended"], event["is_gone"]
        life.is_finished = life.is_finished or event["is_finished"]

    @staticmethod
    def _take_pod(life, event):
        name = event["name"]
        if event["is_bound"]:
            life.bound_at.setdefault(name, event["at"])
        if event["is_terminal"] or event["is_gone"]:
            life.live.discard(name)
            if event["is_terminal"]:
                life.ended.add(name)
        else:
            life.live.add(name)
