"""Runs the suite: functions named test_* in suite/*.py, each called with a Context.

A test gets a namespace of its own in a cluster that all share, or starts a cluster of its own. What
it makes through its Context is taken away when it ends, whether it passed or not.
"""

import contextlib
import fnmatch
import importlib.util
import inspect
import os
import pathlib
import shutil
import sys
import tempfile
import time
import traceback

from . import manifests, paths
from .cluster import Cluster
from .controller import Controller
from .plane import PlaneError

ROOT = paths.SUITE_DIR.parent.parent
CONTROLLER_NAMESPACE = "tallyman-system"
LOG_LINES_ON_FAILURE = 30


class Skip(Exception):
    """Raised by a test that can't run here; the message says what is missing."""


class Session:
    """What the tests of one run share: the cluster, the binary under test, a scratch directory."""

    def __init__(self, binary=None, cluster_name=None, is_kept=False):
        self.binary = pathlib.Path(binary).absolute() if binary else None
        self.cluster_name, self.is_kept = cluster_name, is_kept
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="tallyman-suite-"))
        self.shared_cluster, self._installed = None, set()
        self._server_cluster = None
        self.cleared_namespaces = []   # of the shared cluster: deleted, but perhaps not gone yet

    def cluster(self):
        """The shared cluster: 3 nodes with 2 devices each and an audit log. Started when first
        asked for."""
        if self.shared_cluster is None:
            try:
                self.shared_cluster = self._start_cluster()
            except PlaneError as error:  # without it no test can run: the end of the whole run
                raise SystemExit(f"the cluster for the tests: {error}") from error
        return self.shared_cluster

    def server_cluster(self):
        """Another, shared by those tests that stop its servers and put back its etcd."""
        if self._server_cluster is None:
            self._server_cluster = Cluster.attach(self.cluster_name) if self.cluster_name else \
                Cluster(devices=0).start()
        return self._server_cluster

    def is_shared(self, cluster):
        return cluster is self.shared_cluster

    def _start_cluster(self):
        if self.cluster_name:
            return Cluster.attach(self.cluster_name)
        if self.is_kept:
            return Cluster(name="suite", is_audited=True, is_owned=False).start()
        return Cluster(is_audited=True).start()

    def install(self, cluster):
        """What `kubectl apply -k config/default` installs, once per cluster."""
        name = cluster.options.name
        if name not in self._installed:
            install_tallyman(cluster)
            self._installed.add(name)

    def close(self):
        if self._server_cluster is not None:
            self._server_cluster.stop()
        if self.is_kept:
            print(f"kept: the cluster, and the logs in {self.scratch}", file=sys.stderr)
            return
        if self.shared_cluster is not None:
            if self.cluster_name:  # it goes on without us, so nothing of ours may stay in it
                self.shared_cluster.wait_namespaces_gone(self.cleared_namespaces)
            self.shared_cluster.stop()
        shutil.rmtree(self.scratch, ignore_errors=True)


def install_tallyman(cluster):
    """What a user does, `kubectl apply -k config/default`, and then waits until it is in effect:
    the kinds are served, and a labelled Job comes out suspended (a policy takes a second)."""
    cluster.kubectl("apply", "-k", ROOT / "config" / "default")
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd",
                    *(f"{kind}.tallyman.dev" for kind in
                      ("queues", "cohorts", "resourceflavors", "admissions")))
    probe = manifests.job("tallyman-install-probe", "default", pods=1, queue="none")
    cluster.wait_for(lambda: cluster.request(
        "POST", "/apis/batch/v1/namespaces/default/jobs?dryRun=All", probe)["spec"].get("suspend"),
        20, "the policy that suspends labelled Jobs in effect")


class Context:
    """What a test is called with.

    cluster    the shared cluster
    namespace  of this test alone, made when first used
    name(x)    a name for a cluster-scoped object: x with the test's own suffix"""

    def __init__(self, session, test_name, number):
        self.session, self.test_name = session, test_name
        words = test_name.removeprefix("test_").replace("_", "-").lower()
        self.suffix = f"{words[:40]}-{number}-{os.getpid()}"
        self.notes, self.controllers = [], []
        self._namespaces = {}                       # cluster name: the test's namespace there
        self._cleanup = contextlib.ExitStack()
        self._own_clusters = contextlib.ExitStack()

    @property
    def cluster(self):
        return self.session.cluster()

    @property
    def namespace(self):
        return self.namespace_in(self.cluster)

    def namespace_in(self, cluster):
        key = cluster.options.name
        if key not in self._namespaces:
            self._namespaces[key] = name = f"t-{self.suffix}"
            cluster.request("POST", "/api/v1/namespaces", manifests.namespace(name))
        return self._namespaces[key]

    def name(self, base):
        return f"{base}-{self.suffix}"

    def note(self, text):
        """A line of what was seen, printed below the test's result."""
        self.notes.append(text)

    def skip(self, reason):
        raise Skip(reason)

    def apply(self, *objects, cluster=None):
        """Applies objects or YAML text, and takes them away when the test ends."""
        cluster = cluster or self.cluster
        if self.session.is_shared(cluster):
            self._cleanup.callback(cluster.delete, *objects)
        return cluster.apply(*objects)

    def defer(self, function, *arguments):
        """Called when the test ends, last deferred first."""
        self._cleanup.callback(function, *arguments)

    def own_cluster(self, **options):
        """A cluster for this test alone, taken down when it ends. Options: see plane.Options."""
        return self._own_clusters.enter_context(Cluster(**options))

    def controller(self, cluster=None, arguments=(), is_started=True):
        """Tallyman, installed into the cluster and run there under the rights of its own
        ServiceAccount; stopped when the test ends."""
        if self.session.binary is None:
            self.skip("needs the tallyman binary: give its path with --bin")
        cluster = cluster or self.cluster
        self.session.install(cluster)
        directory = self.session.scratch / self.suffix
        directory.mkdir(exist_ok=True)
        number = len(self.controllers)
        controller = Controller(
            self.session.binary, cluster.service_account_kubeconfig(CONTROLLER_NAMESPACE),
            directory / f"store-{number}", directory / f"controller-{number}.log", arguments)
        self.controllers.append(controller)
        return controller.start() if is_started else controller

    def close(self):
        """Takes away what the test made. The order matters: a Queue goes only after the Jobs that
        use it, and only a controller that runs lets it go."""
        with self._own_clusters, contextlib.ExitStack() as controllers:
            for controller in self.controllers:
                controllers.callback(controller.finish)
            with self._cleanup:
                self._clear_shared_cluster()

    def _clear_shared_cluster(self):
        shared = self.session.shared_cluster
        if shared is None:
            return
        namespace = self._namespaces.get(shared.options.name)
        if namespace:
            shared.clear_namespace(namespace)
            self.session.cleared_namespaces.append(namespace)
        if self.controllers and not any(item.is_alive() for item in self.controllers):
            shared.strip_finalizers("/apis/tallyman.dev/v1beta1/queues")


def load_tests(suite_dir):
    """[(file name, test name, function)], files by name, tests in the order of their source."""
    tests = []
    for file in sorted(pathlib.Path(suite_dir).glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"suite_{file.stem}", file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found = [(name, item) for name, item in vars(module).items()
                 if name.startswith("test_") and inspect.isfunction(item)
                 and item.__module__ == module.__name__]
        tests += [(file.stem, name, function) for name, function in found]
    return tests


def is_selected(file, name, pattern):
    return pattern is None or any(
        fnmatch.fnmatch(text, pattern) for text in (file, name, f"{file}.{name}"))


def _failure_report(context, error):
    lines = "".join(traceback.format_exception(error)).splitlines()
    for controller in context.controllers:
        lines += [f"--- the end of {controller.log} ---",
                  *controller.log_tail(LOG_LINES_ON_FAILURE).splitlines()]
    return lines


def run_one(session, file, name, function, number):
    """"passed", "failed" or "skipped"; prints the line about it."""
    context = Context(session, name, number)
    started = time.monotonic()
    outcome, details = "passed", []
    try:
        function(context)
    except Skip as reason:
        outcome, details = "skipped", [str(reason)]
    except Exception as error:  # whatever a test raises is that test's failure
        outcome, details = "failed", _failure_report(context, error)
    try:
        context.close()
    except Exception as error:
        outcome = "failed"
        details += ["it left something behind, or couldn't take it away:",
                    *_failure_report(context, error)]
    word = {"passed": "ok  ", "failed": "FAIL", "skipped": "skip"}[outcome]
    print(f"{word}  {file}.{name}  ({time.monotonic() - started:.1f}s)")
    for line in context.notes + details:
        print(f"      {line}")
    sys.stdout.flush()
    return outcome


def run(suite_dir, pattern, session):
    """Runs the tests; the last line is `N passed, N failed`. The exit status: 0 only if at least
    one test passed and none failed."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    try:
        tests = [test for test in load_tests(suite_dir) if is_selected(test[0], test[1], pattern)]
        if not tests:
            print(f"no test in {suite_dir} matches '{pattern}'", file=sys.stderr)
        for number, (file, name, function) in enumerate(tests, 1):
            counts[run_one(session, file, name, function, number)] += 1
    finally:
        session.close()
    skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    print(f"{counts['passed']} passed, {counts['failed']} failed{skipped}")
    return 0 if counts["passed"] and not counts["failed"] else 1
