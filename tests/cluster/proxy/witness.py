"""An observer of one namespace, with watches of its own straight at the API server: what must hold
at every instant, whatever happens to the controller."""

from lib.course import Course, is_finished, is_suspended, pod_job

BINDING_S = 8.0      # how long kube-scheduler may take over one gang, on a busy machine


class Witness(Course):
    """A Course whose judgement knows devices, records and several starts of one Job."""

    def instants(self):
        return sorted((event for follower in self.followers for event in follower.events),
                      key=lambda event: event["version"])

    def verdict(self, slots, foreign=()):
        """([what was wrong], {Job: (times started, times stopped)}). `foreign`: Jobs of no queue."""
        self.problems, jobs, counts = [], {}, {}
        for event in self.instants():
            name = event["name"] if event["type"] == "job" else event["job"]
            life = jobs.setdefault(name, _Life())
            where = f"at resourceVersion {event['version']} ({event['name']})"
            if event["type"] == "job":
                life.take_job(event)
                self._check_record(life, name, where, foreign)
            else:
                life.take_pod(event)
            charged = sum(item.charge for item in jobs.values())
            if charged > slots:
                self.problems.append(f"{where}: {charged} pods are let go or running, there is "
                                     f"room for {slots}")
        for name, life in jobs.items():
            if name not in foreign:
                counts[name] = (life.started, life.stopped)
            if life.longest_partial_s > BINDING_S:
                self.problems.append(f"{name} had some but not all of its pods bound for "
                                     f"{life.longest_partial_s:.1f} s")
        return self.problems, counts

    def _check_record(self, life, name, where, foreign):
        if name in foreign or life.is_finished or life.is_gone:
            return
        if not life.is_suspended and not life.has_record:
            self.problems.append(f"{where}: {name} runs without a record of its admission")


class _Life:
    """One Job name's life as it was seen."""

    def __init__(self):
        self.is_suspended, self.is_finished, self.is_gone = True, False, False
        self.has_record, self.pods = False, 0
        self.started = self.stopped = 0
        self.live, self.bound, self.ended = set(), set(), set()
        self.partial_since, self.longest_partial_s = None, 0.0

    @property
    def charge(self):
        if self.is_suspended or self.is_gone or self.is_finished:
            return len(self.live)
        return max(self.pods - len(self.ended), len(self.live))

    def take_job(self, event):
        if self.is_suspended and not event["is_suspended"]:
            self.started += 1
        elif not self.is_suspended and event["is_suspended"]:
            self.stopped += 1
        for key in ("is_suspended", "is_gone", "has_record", "pods"):
            setattr(self, key, event[key])
        self.is_finished = self.is_finished or event["is_finished"]
        self._time_partial(event["at"])

    def take_pod(self, event):
        name = event["name"]
        if event["is_terminal"]:
            self.ended.add(name)
        if event["is_terminal"] or event["is_gone"]:
            self.live.discard(name)
            self.bound.discard(name)
        else:
            self.live.add(name)
            if event["is_bound"]:
                self.bound.add(name)
        self._time_partial(event["at"])

    def _time_partial(self, now):
        is_partial = (not self.is_suspended and not self.is_gone and not self.ended
                      and 0 < len(self.bound) < self.pods)
        if is_partial and self.partial_since is None:
            self.partial_since = now
        elif not is_partial and self.partial_since is not None:
            self.longest_partial_s = max(self.longest_partial_s, now - self.partial_since)
            self.partial_since = None


def end_state(world):
    """What is left when a story is told, without what differs from run to run."""
    cluster, gangs, namespace = world.cluster, world.gangs, world.namespace
    jobs = {}
    for job in cluster.items(f"/apis/batch/v1/namespaces/{namespace}/jobs"):
        annotations = job["metadata"].get("annotations", {})
        jobs[job["metadata"]["name"]] = {
            "suspended": is_suspended(job), "finished": is_finished(job),
            "pods": job["spec"]["parallelism"],
            "ready": job["status"].get("ready", 0), "succeeded": job["status"].get("succeeded", 0),
            "selector": sorted(job["spec"]["template"]["spec"].get("nodeSelector", {})),
            "keys": sorted(key for key in annotations if key.startswith("tallyman.dev/"))}
    admissions = {}
    for item in cluster.items(f"/apis/tallyman.dev/v1beta1/namespaces/{namespace}/admissions"):
        status = item.get("status", {})
        admissions[item["metadata"]["name"]] = {
            key: status.get(key) for key in ("state", "reason", "evictions", "pods", "devices")}
    queues = {}
    for queue in world.queues:
        status = (gangs.cluster.api.get_or_none(f"/apis/tallyman.dev/v1beta1/queues/{queue}") or
                  {}).get("status", {})
        queues[queue.replace(f"-{namespace}", "")] = {
            "pending": status.get("pending"), "admitted": status.get("admitted"),
            "used": sorted((resource["name"], resource.get("used"))
                           for flavor in status.get("flavors", [])
                           for resource in flavor["resources"])}
    pods = sorted((pod_job(pod) or "", pod["status"].get("phase"))
                  for pod in cluster.pods(namespace))
    return {"jobs": jobs, "admissions": admissions, "queues": queues, "pods": pods}
