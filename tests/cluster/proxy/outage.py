"""What happens to the servers themselves: restarts, compaction, an etcd that is put back."""

import http.client
import json
import shutil

from lib.cluster import wait_for
from lib.process import Process

UP_S = 60
ALL = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")


class Servers:
    """The processes of one control plane. They are stopped and started as they were started at
    first."""

    def __init__(self, cluster):
        self.cluster, self.plane = cluster, cluster.plane
        self._commands = {}
        for item in self.plane.processes:
            with open(f"/proc/{item.pid}/cmdline", encoding="utf-8") as file:
                self._commands[item.name] = file.read().split("\0")[:-1]

    def _find(self, name):
        return next(item for item in self.plane.processes if item.name == name)

    def stop(self, *names):
        for name in reversed(names):
            self._find(name).stop()

    def kill(self, name):
        item = self._find(name)
        item.signal(9)
        assert item.wait_gone(10)

    def start(self, *names):
        for name in names:
            started = Process.spawn(name, self._commands[name], self.plane.directory / f"{name}.log",
                                    cwd=self.plane.directory)
            self.plane.processes[self.plane.processes.index(self._find(name))] = started
            self.plane.save()
        wait_for(lambda: self.cluster.api.exchange("GET", "/readyz")[0] == 200, UP_S,
                 "the API server is up")

    def restart(self, *names):
        self.stop(*names)
        self.start(*names)

    def _etcd(self, path, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.plane.data["etcdPorts"][0],
                                                timeout=30)
        connection.request("POST", path, json.dumps(body))
        answer = connection.getresponse()
        text = answer.read().decode()
        assert answer.status == 200, f"etcd {path}: {answer.status} {text}"
        return json.loads(text)

    def compact(self):
        """etcd forgets everything but the present."""
        revision = self._etcd("/v3/kv/range", {"key": "AA=="})["header"]["revision"]
        self._etcd("/v3/kv/compaction", {"revision": revision, "physical": True})
        return int(revision)

    def keep_copy(self):
        """A backup of etcd, as it is now."""
        self.stop("etcd", "kube-apiserver")
        copy = self.plane.directory / "etcd.copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.plane.directory / "etcd", copy)
        self.start("etcd", "kube-apiserver")

    def put_back(self):
        """The backup takes the place of what is there. All who watch the server are started anew,
        as an operator does; the controller under test isn't."""
        self.stop(*ALL)
        shutil.rmtree(self.plane.directory / "etcd")
        (self.plane.directory / "etcd.copy").rename(self.plane.directory / "etcd")
        self.start("etcd", "kube-apiserver")
        self.start("kube-controller-manager", "kube-scheduler", "kwok")
