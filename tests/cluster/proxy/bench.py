"""A controller behind the proxy, and gangs that show whether it decides as it should."""

import itertools
import time

from lib import manifests, plane as plane_module
from lib.cluster import WaitTimeout
from lib.course import Course, is_finished, is_suspended
from lib.gangs import Gangs

from .faults import Faults
from .relay import Relay

JOBS = "/apis/batch/v1/namespaces/{}/jobs"
SLOTS = 20
TOKEN_S = 86400
SOON_S = 5.0      # within so long after a fault has ended decisions have to be right again


class Bench:
    """Faults between one controller and the cluster, and a queue of SLOTS pods."""

    def __init__(self, context, cluster=None, user=None, relay=None, arguments=(), quota=SLOTS,
                 ca_file=None, certificate=None, is_watched=True):
        """Not watched: the server will forget its past, and no watch can go on over that. What
        became of the gangs is then read from them in the end."""
        # One that is surely alone: a lease that a busy machine renews too late is another test's.
        arguments = arguments or ["--no-leader-election"]
        self.context, self.cluster = context, cluster or context.cluster
        context.session.install(self.cluster)
        self.namespace = context.namespace_in(self.cluster)
        self.gangs, self.queue = Gangs(self.cluster, self.namespace), context.name("q")
        pki = self.cluster.plane.directory / "pki"
        self.ca_file = ca_file or pki / "ca.crt"
        certificate = certificate or (pki / "server.crt", pki / "server.key")
        self.faults = Faults()
        self.proxy = relay or Relay(self.cluster.plane.data["port"], pki / "ca.crt", *certificate,
                                    self.faults).start()
        context.defer(self.proxy.stop)
        self.user = user or {"token": self.cluster.service_account_token("tallyman-system",
                                                                         "tallyman", TOKEN_S)}
        self.kubeconfig = context.session.scratch / f"{context.suffix}.kubeconfig"
        plane_module.write_kubeconfig(self.kubeconfig, f"https://127.0.0.1:{self.proxy.port}",
                                      self.ca_file, self.user)
        self.controller = context.controller(self.cluster, arguments, is_started=False)
        self.controller.kubeconfig = self.kubeconfig
        self.expected, self._numbers, self.slack_s = set(), itertools.count(1), 0.0
        context.apply(manifests.queue(self.queue, {"cpu": f"{quota * 100}m"}), cluster=self.cluster)
        self.course = Course(self.cluster, self.namespace) if is_watched else None
        if self.course:
            context.defer(self.course.close)

    def start(self):
        """Starts the controller, and takes the time of a gang on a good connection, which on a busy
        machine may be long: it is granted besides."""
        self.controller.start()
        begun = time.monotonic()
        self.wait_started(self.submit(), 60)
        self.slack_s = 3 * (time.monotonic() - begun)
        return self

    def submit(self, count=1, pods=2, run_for="500ms", **more):
        """Creates gangs; their names."""
        names = [f"gang-{next(self._numbers)}" for _ in range(count)]
        self.cluster.create_many(JOBS.format(self.namespace), [
            manifests.job(name, self.namespace, queue=self.queue, pods=pods, cpu="100m",
                          run_for=run_for, **more) for name in names])
        self.expected |= set(names)
        return names

    def _jobs(self):
        return self.cluster.items(JOBS.format(self.namespace))

    def started(self):
        """Names of gangs that were let go so far."""
        return self.course.jobs_started() if self.course else \
            {job["metadata"]["name"] for job in self._jobs() if not is_suspended(job)}

    def finished(self):
        return self.course.jobs_finished() if self.course else \
            {job["metadata"]["name"] for job in self._jobs() if is_finished(job)}

    def wait_started(self, names, timeout_s=SOON_S):
        self.cluster.wait_for(lambda: set(names) <= self.started(),
                              timeout_s + self.slack_s,
                              f"{', '.join(names)} started")

    def wait_finished(self, names=None, timeout_s=30):
        names = set(names or self.expected)
        self.cluster.wait_for(lambda: names <= self.finished(),
                              timeout_s + 2 * self.slack_s,
                              f"{len(names)} gangs finished")

    def wait_used(self, amount, timeout_s, what):
        """So much cpu is charged in the queue; who else is, where it isn't so in time."""
        try:
            self.cluster.wait_for(lambda: self.gangs.used(self.queue, "cpu") == amount, timeout_s,
                                  what)
        except WaitTimeout as error:
            jobs = {job["metadata"]["name"]: job.get("status") for job in self._jobs()}
            told = {name: self.gangs.summary(name) for name in jobs}
            numbers = {key: value for key, value in self.controller.metrics().items()
                       if value and key.startswith("tallyman_") and "_bucket" not in key}
            raise AssertionError(f"{error}: {self.gangs.queue(self.queue)['status']}, {jobs}, "
                                 f"{told}, {numbers}") from None

    def probe(self, timeout_s=SOON_S):
        """A gang that comes now starts soon."""
        self.wait_started(self.submit(), timeout_s)

    def judge(self):
        """Each gang was started once and never stopped, and no more than SLOTS pods at once."""
        self.wait_finished()
        if self.course is None:
            stopped = [name for name in self.expected if self.gangs.status(name).get("evictions")]
            assert not stopped, f"gangs that were stopped: {stopped}"
            return
        self.course.close()
        lives, _, _ = self.course.judge(SLOTS)
        odd = {name: (lives[name].started, lives[name].stopped) for name in self.expected
               if (lives[name].started, lives[name].stopped) != (1, 0)}
        assert not odd, f"gangs (times started, times stopped), each should be (1, 0): {odd}"
