"""Starts and stops one control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler
and kwok as processes of this machine, on loopback ports that were free, with their files in one
directory. Several run side by side.

State is kept in run_dir()/NAME.json, so that any later process can find it and take it down.
"""

import contextlib
import dataclasses
import fcntl
import json
import os
import secrets
import shutil
import socket
import sys
import time

from . import certs, fixtures, paths
from .api import Api, ApiError
from .process import Process

START_ATTEMPTS = 3       # a port that was free may be taken before we bind it
READY_TIMEOUT_S = 400      # a machine may be very busy
LOG_TAIL_LINES = 15
ISSUER = "https://kubernetes.default.svc"
IDENTITIES = {  # user name, groups: the names that a real cluster's components have
    "admin": ("admin", "system:masters"),
    "kube-controller-manager": ("system:kube-controller-manager", ""),
    "kube-scheduler": ("system:kube-scheduler", ""),
    "kwok": ("kwok", "system:masters"),
}
CONTROLLERS = (
    "job-controller", "cronjob-controller", "namespace-controller", "garbage-collector-controller",
    "resourceclaim-controller", "pod-garbage-collector-controller", "ttl-after-finished-controller",
    "disruption-controller", "serviceaccount-controller", "node-lifecycle-controller",
    "taint-eviction-controller", "device-taint-eviction-controller",
    "clusterrole-aggregation-controller", "validatingadmissionpolicy-status-controller",
    "podgroup-protection-controller")  # the last one runs with the gate GenericWorkload only
AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  nonResourceURLs: ["/healthz*", "/readyz*", "/livez*"]
- level: Metadata
"""


class PlaneError(Exception):
    """The control plane can't be started or used; the message says what and where to look."""


class PortTaken(PlaneError):
    """Somebody took a port between our choosing and our binding it."""


@dataclasses.dataclass
class Options:
    """What `cluster up` can be told."""

    name: str = "default"
    nodes: int = 3
    devices: int = 2
    cpu: str = "8"
    memory: str = "32Gi"
    pods: str = "110"
    gates: str = ""
    runtime_config: str = "api/all=true"
    is_audited: bool = False
    directory: str = ""
    labels: list = dataclasses.field(default_factory=list)
    is_owned: bool = False       # taken down by `sweep` once the process that started it has ended


def state_file(name):
    return paths.run_dir() / f"{name}.json"


@contextlib.contextmanager
def locked(name):
    """Holds off anybody else who would start, stop or sweep away the cluster of this name. The
    lock's file goes with the cluster, so a lock counts only on the file that still has the name."""
    paths.run_dir().mkdir(parents=True, exist_ok=True)
    path = paths.run_dir() / f"{name}.lock"
    while True:
        with open(path, "w", encoding="ascii") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise PlaneError(f"another command is working on cluster '{name}'; "
                                 "wait until it has ended") from None
            if not path.exists() or not os.path.samestat(os.fstat(file.fileno()), path.stat()):
                continue
            try:
                yield
            finally:
                if not state_file(name).exists():
                    path.unlink(missing_ok=True)
            return


def _free_ports(count):
    """Different ports that were free a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for item in sockets:
            item.bind(("127.0.0.1", 0))
        return [item.getsockname()[1] for item in sockets]
    finally:
        for item in sockets:
            item.close()


def log_tail(path, lines=LOG_TAIL_LINES):
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return "(no log)"
    return "\n".join(line[:500] for line in text.splitlines()[-lines:])


class Plane:
    """One running (or once running) control plane, as its state file describes it."""

    def __init__(self, data):
        self.data = data
        self.name = data["name"]
        self.processes = [Process.from_json(item) for item in data["processes"]]
        self.owner = Process.from_json(data["owner"]) if data.get("owner") else None

    @property
    def directory(self):
        return paths.pathlib.Path(self.data["directory"])

    @property
    def binaries(self):
        return paths.pathlib.Path(self.data["binaries"])

    @property
    def kubeconfig(self):
        return self.directory / "kubeconfig"

    @property
    def audit_log(self):
        return self.directory / "audit.log" if self.data["isAudited"] else None

    @property
    def server(self):
        return f"https://127.0.0.1:{self.data['port']}"

    @property
    def ports(self):
        return [self.data["port"], *self.data["etcdPorts"]]

    def api(self):
        return Api(self.data["port"], self.directory / "pki" / "ca.crt", self.data["token"])

    def is_complete(self):
        """Whether it got as far as being ready, and nothing of it has ended since."""
        return self.data["isReady"] and all(item.is_alive() for item in self.processes)

    def is_left_over(self):
        """Whether nobody needs it: all its processes have ended, or the one that owned it."""
        if self.owner is not None and not self.owner.is_alive():
            return True
        return not any(item.is_alive() for item in self.processes)

    def save(self):
        self.data["processes"] = [item.to_json() for item in self.processes]
        file = state_file(self.name)
        temporary = file.with_suffix(".new")
        with open(os.open(temporary, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w",
                  encoding="utf-8") as stream:
            json.dump(self.data, stream, indent=1)
        temporary.rename(file)

    def adopt(self, name, pid):
        """A process that isn't part of the cluster is to end with it."""
        self.data.setdefault("adopted", []).append(Process.of(name, pid).to_json())
        self.save()

    def stop_processes(self):
        """Last started, first stopped: nobody is left talking to a server that has gone."""
        adopted = [Process.from_json(item) for item in self.data.get("adopted", [])]
        for item in reversed(self.processes + adopted):
            item.stop()

    def remove(self):
        self.stop_processes()
        shutil.rmtree(self.directory, ignore_errors=True)
        state_file(self.name).unlink(missing_ok=True)


def load(name):
    """The cluster of this name, or None."""
    try:
        return Plane(json.loads(state_file(name).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None


def load_running(name):
    plane = load(name)
    if plane is None or not plane.is_complete():
        raise PlaneError(f"no cluster '{name}' runs; start it with: tests/cluster/cluster up "
                         f"--name {name}")
    return plane


def names():
    return sorted(file.stem for file in paths.run_dir().glob("*.json"))


def sweep():
    """Removes what is left of clusters that nobody needs any more, as after a reboot."""
    for name in names():
        try:
            with locked(name):
                plane = load(name)
                if plane is not None and plane.is_left_over():
                    plane.remove()
        except PlaneError:
            continue  # somebody is starting or stopping it


def write_kubeconfig(path, server, ca_file, user):
    """A kubeconfig with one context; readable by the owner alone, for it holds a credential."""
    config = {
        "apiVersion": "v1", "kind": "Config", "current-context": "tallyman-test",
        "clusters": [{"name": "tallyman-test", "cluster": {
            "server": server, "certificate-authority-data": fixtures.base64_of(ca_file)}}],
        "users": [{"name": "user", "user": user}],
        "contexts": [{"name": "tallyman-test", "context": {
            "cluster": "tallyman-test", "user": "user"}}],
    }
    with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w",
              encoding="utf-8") as stream:
        json.dump(config, stream, indent=1)
        stream.write("\n")


class _Starter:
    """One attempt to start a control plane."""

    def __init__(self, plane, options, say):
        self.plane, self.options, self.say = plane, options, say
        self.directory = plane.directory
        self.gates = [f"--feature-gates={options.gates}"] if options.gates else []
        self.tokens = {name: secrets.token_hex(16) for name in IDENTITIES}
        self.etcd_port, self.peer_port, port = _free_ports(3)
        plane.data.update(port=port, token=self.tokens["admin"],
                          etcdPorts=[self.etcd_port, self.peer_port])

    def write_files(self):
        certs.create(self.directory / "pki")
        lines = [f'{self.tokens[name]},{user},{name},"{group}"\n'
                 for name, (user, group) in IDENTITIES.items()]
        tokens = self.directory / "tokens.csv"
        tokens.touch(mode=0o600)
        tokens.write_text("".join(lines), encoding="ascii")
        (self.directory / "audit-policy.yaml").write_text(AUDIT_POLICY, encoding="ascii")
        ca_file = self.directory / "pki" / "ca.crt"
        for name in IDENTITIES:
            file = "kubeconfig" if name == "admin" else f"{name}.kubeconfig"
            write_kubeconfig(self.directory / file, self.plane.server, ca_file,
                             {"token": self.tokens[name]})
        write_kubeconfig(self.directory / "client-certificate.kubeconfig", self.plane.server,
                         ca_file, {
                             "client-certificate": str(self.directory / "pki" / "admin.crt"),
                             "client-key": str(self.directory / "pki" / "admin.key")})
        scheduler = {
            "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(self.directory / "kube-scheduler.kubeconfig"),
                                 "qps": 1000, "burst": 2000}}
        (self.directory / "scheduler.yaml").write_text(json.dumps(scheduler), encoding="utf-8")

    def spawn(self, name, *arguments):
        log = self.directory / f"{name}.log"
        log.unlink(missing_ok=True)
        self.plane.processes.append(Process.spawn(
            name, [self.plane.binaries / name, *arguments], log, cwd=self.directory))
        self.plane.save()  # at once: whatever happens next, `down` finds it

    def start_etcd(self):
        client, peer = (f"http://127.0.0.1:{port}" for port in (self.etcd_port, self.peer_port))
        self.spawn("etcd", "--data-dir=etcd", "--unsafe-no-fsync", "--log-level=warn",
                   "--name=default", f"--initial-cluster=default={peer}",
                   f"--initial-advertise-peer-urls={peer}", f"--listen-peer-urls={peer}",
                   f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
                   "--quota-backend-bytes=4294967296")

    def start_apiserver(self):
        pki = self.directory / "pki"
        audit = ["--audit-log-path=audit.log", "--audit-policy-file=audit-policy.yaml",
                 "--audit-log-maxsize=10000"] if self.options.is_audited else []
        self.spawn("kube-apiserver", f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
                   f"--secure-port={self.plane.data['port']}", "--bind-address=127.0.0.1",
                   "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
                   f"--tls-cert-file={pki}/server.crt", f"--tls-private-key-file={pki}/server.key",
                   f"--client-ca-file={pki}/ca.crt", "--token-auth-file=tokens.csv",
                   "--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount",
                   f"--service-account-issuer={ISSUER}",
                   f"--service-account-key-file={pki}/sa.pub",
                   f"--service-account-signing-key-file={pki}/sa.key",
                   "--service-cluster-ip-range=10.96.0.0/16", "--cert-dir=pki",
                   f"--runtime-config={self.options.runtime_config}",
                   "--max-requests-inflight=5000", "--max-mutating-requests-inflight=2500",
                   *self.gates, *audit)

    def start_clients(self):
        """Everything that talks to the API server."""
        self.spawn("kube-controller-manager",
                   "--kubeconfig=kube-controller-manager.kubeconfig", "--leader-elect=false",
                   "--secure-port=0", "--use-service-account-credentials=true",
                   "--service-account-private-key-file=pki/sa.key", "--root-ca-file=pki/ca.crt",
                   "--kube-api-qps=1000", "--kube-api-burst=2000", "--concurrent-job-syncs=25",
                   f"--controllers={','.join(CONTROLLERS)}", *self.gates)
        self.spawn("kube-scheduler", "--config=scheduler.yaml", "--secure-port=0", *self.gates)
        self.spawn("kwok", "--kubeconfig=kwok.kubeconfig", "--manage-all-nodes",
                   "--node-lease-duration-seconds=40", f"--config={paths.STAGES_FILE}")

    def check_alive(self):
        for item in self.plane.processes:
            if item.is_alive():
                continue
            tail = log_tail(self.directory / f"{item.name}.log")
            if "address already in use" in tail:
                raise PortTaken(f"{item.name} found its port taken")
            raise PlaneError(f"{item.name} ended while the cluster was starting. The end of its "
                             f"log, {self.directory}/{item.name}.log:\n{tail}")

    def wait(self, what, suspect, probe):
        """Until `probe` is true; on a timeout the message shows the log of `suspect`."""
        started = time.monotonic()
        while True:
            self.check_alive()
            try:
                if probe():
                    return
            except (OSError, ApiError) as error:
                last = str(error)
            else:
                last = "not yet"
            if time.monotonic() - started > READY_TIMEOUT_S:
                log = self.directory / f"{suspect}.log"
                raise PlaneError(f"{what}: not within {READY_TIMEOUT_S} s ({last}). The end of "
                                 f"{suspect}'s log, {log}:\n{log_tail(log)}")
            time.sleep(0.1)

    def run(self):
        api = self.plane.api
        self.say("starting etcd and kube-apiserver")
        self.write_files()
        self.start_etcd()
        self.start_apiserver()
        server = api()
        self.wait("kube-apiserver ready", "kube-apiserver",
                  lambda: server.exchange("GET", "/readyz")[0] == 200)
        self.say("starting kube-controller-manager, kube-scheduler and kwok")
        self.start_clients()
        fixtures.create_all(server, self.options)
        self.say(f"waiting for {self.options.nodes} nodes")
        self.wait("namespace default with its service account", "kube-controller-manager",
                  lambda: server.get_or_none(
                      "/api/v1/namespaces/default/serviceaccounts/default") is not None)
        self.wait("all nodes Ready", "kwok", lambda: fixtures.are_nodes_ready(server, self.options))
        self.plane.data["isReady"] = True
        self.plane.save()


def _prepare_directory(options):
    if not options.directory:
        directory = paths.run_dir() / options.name
        shutil.rmtree(directory, ignore_errors=True)
    else:
        directory = paths.pathlib.Path(options.directory).absolute()
        if directory.exists() and any(directory.iterdir()):
            raise PlaneError(f"--dir {directory}: it exists and is not empty; name a new directory")
    directory.mkdir(parents=True, exist_ok=True)
    directory.chmod(0o700)
    return directory


def _attempt(options, binaries, say):
    directory = _prepare_directory(options)
    owner = Process.of("owner", os.getpid()).to_json() if options.is_owned else None
    plane = Plane({"name": options.name, "directory": str(directory), "binaries": str(binaries),
                   "isAudited": options.is_audited, "options": dataclasses.asdict(options),
                   "owner": owner, "isReady": False, "processes": [], "port": 0, "etcdPorts": [],
                   "token": ""})
    try:
        _Starter(plane, options, say).run()
        return plane
    except PortTaken:
        plane.remove()
        raise
    except BaseException:  # an interrupt too must leave no process; the logs stay for reading
        plane.stop_processes()
        raise


def start(options, say=lambda text: print(text, file=sys.stderr)):
    """Starts a control plane and waits until its nodes are Ready. PlaneError says why it can't."""
    binaries = paths.bin_dir()
    sweep()
    with locked(options.name):
        old = load(options.name)
        if old is not None and old.is_complete():
            raise PlaneError(f"cluster '{options.name}' runs already; take it down first with: "
                             f"tests/cluster/cluster down --name {options.name}")
        if old is not None:
            old.remove()
        for attempt in range(1, START_ATTEMPTS + 1):
            try:
                return _attempt(options, binaries, say)
            except PortTaken as error:
                if attempt == START_ATTEMPTS:
                    raise
                say(f"{error}; trying other ports")
    raise AssertionError("unreachable")


def stop(name):
    """Stops the cluster and removes its files. Whether there was one."""
    with locked(name):
        plane = load(name)
        if plane is None:
            return False
        plane.remove()
        return True
