"""What the machine itself takes, at this moment, for what the controller has to do about a gang."""

import threading
import time

from lib import manifests
from lib.course import Course

POLL_S = 0.02
GIVEN_UP_S = 120


class Place:
    """A namespace for controls beside that of the gangs, and what is seen of it."""

    def __init__(self, context, bench):
        self.cluster, self.namespace = bench.cluster, context.name("control")
        self.listed = f"/apis/batch/v1/namespaces/{bench.namespace}/jobs"
        self.path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs"
        self.cluster.request("POST", "/api/v1/namespaces", manifests.namespace(self.namespace))
        context.defer(self.cluster.clear_namespace, self.namespace)
        self.course = Course(self.cluster, self.namespace)
        context.defer(self.course.close)


class Control(threading.Thread):
    """Straight at the API server, again and again until `stop`: lists the gangs' Jobs, makes one that
    no queue knows, sees it come in a watch, lets it go, and sees that. A controller that does what is
    right at once needs as long: it lists anew after a fault, sees the Job, writes, and is seen."""

    def __init__(self, place, name):
        super().__init__(name="control", daemon=True)
        self.place, self.base = place, name
        self.slowest_s, self.trips, self.error = 0.0, 0, None
        self._began, self._is_stopping = time.monotonic(), False
        self.start()

    def delay_s(self):
        """The slowest trip so far, or the one under way if that takes longer."""
        under_way = 0.0 if self._is_stopping else time.monotonic() - self._began
        return max(self.slowest_s, under_way)

    def stop(self):
        """Once the trip under way has ended; there is always one."""
        self._is_stopping = True
        self.join()
        if self.error:
            raise self.error
        return self.slowest_s

    def run(self):
        try:
            while not self.trips or not self._is_stopping:
                self._began = time.monotonic()
                self._trip(f"{self.base}-{self.trips}")
                self.slowest_s = max(self.slowest_s, time.monotonic() - self._began)
                self.trips += 1
        except Exception as error:   # handed on to whoever judges
            self.error = error

    def _trip(self, name):
        place = self.place
        place.cluster.items(place.listed)
        place.cluster.request("POST", place.path, manifests.job(
            name, place.namespace, pods=1, cpu="10m", suspend=True, run_for="100ms",
            spec={"ttlSecondsAfterFinished": 1}))
        self._wait(place.course.jobs_seen, name)
        place.cluster.request("PATCH", f"{place.path}/{name}", {"spec": {"suspend": False}})
        self._wait(place.course.jobs_started, name)

    def _wait(self, names, name):
        deadline = time.monotonic() + GIVEN_UP_S
        while name not in names():
            assert time.monotonic() < deadline, f"control {name} wasn't seen in {GIVEN_UP_S} s"
            time.sleep(POLL_S)
