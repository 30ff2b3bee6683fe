"""What can happen to the API server behind the controller, and to what it trusts."""

import json
import shutil
import time

from lib import certs, manifests
from lib.cluster import stays
from lib.runner import ROOT
from proxy.bench import Bench
from proxy.outage import Servers

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def test_a_server_that_dies_restarts_and_has_forgotten_the_past(context):
    """Killed while gangs come; etcd compacted before it is up, so that no old watch can go on."""
    cluster = context.session.server_cluster()
    bench, servers = Bench(context, cluster, is_watched=False).start(), Servers(cluster)
    lasting = bench.submit(2, pods=4, run_for="40s")
    bench.wait_started(lasting)
    coming = bench.submit(4, run_for="1s")
    servers.kill("kube-apiserver")
    time.sleep(2)
    servers.compact()
    servers.start("kube-apiserver")
    bench.wait_started(coming, 30)
    servers.restart("etcd", "kube-apiserver")
    bench.probe(30)
    bench.faults.is_down = True
    bench.faults.cut()
    waiting = bench.submit(2)
    time.sleep(3)
    servers.compact()
    bench.faults.is_down = False
    bench.wait_started(waiting, 30)
    bench.wait_finished(timeout_s=90)   # what plays the pods counts their 40 s anew after the restart
    bench.judge()


def test_an_etcd_that_is_put_back_to_an_older_revision(context):
    """What ran at the time of the backup goes on; what came later has never been, and its quota is
    free again, though all versions are smaller now than what was seen."""
    cluster = context.session.server_cluster()
    bench, servers = Bench(context, cluster, is_watched=False).start(), Servers(cluster)
    bench.wait_finished()   # whoever plays the pods doesn't always know how far these were
    kept = bench.submit(2, pods=5, run_for=None)
    bench.wait_started(kept)
    for name in kept:
        bench.gangs.wait_state(name, "Running", 60)
    servers.keep_copy()
    lost = bench.submit(2, pods=4, run_for=None)
    bench.wait_started(lost, 30)
    for _ in range(40):    # the versions shall differ by much
        bench.gangs.annotate(lost[0], "example.com/turn", str(time.monotonic()))
    servers.put_back()
    began = time.monotonic()
    assert bench.gangs.job(lost[0]) is None
    bench.wait_used("1", 90, "only what the backup has is charged")
    bench.gangs.create(*(manifests.job(f"after-{number}", bench.namespace, queue=bench.queue, pods=5,
                                       cpu="100m") for number in (1, 2)))
    for number in (1, 2):
        bench.gangs.wait_started(f"after-{number}", 90)
    context.note(f"right again {time.monotonic() - began:.1f} s after the server was up")
    for name in kept:
        assert not bench.gangs.is_suspended(name), f"{name} was stopped"


def test_kinds_that_are_removed_and_installed_again(context):
    cluster = context.session.server_cluster()
    bench = Bench(context, cluster).start()
    running = bench.submit(1, pods=3, run_for=None)
    bench.wait_started(running)
    bench.gangs.wait_state(running[0], "Running", 30)
    cluster.request("DELETE", f"{CRDS}/admissions.tallyman.dev")
    cluster.wait_for(lambda: cluster.api.get_or_none(f"{CRDS}/admissions.tallyman.dev") is None, 30,
                     "the kind Admission is gone")
    bench.wait_started(bench.submit(2), 10)    # whoever can't be told may start all the same
    cluster.kubectl("apply", "-k", ROOT / "config" / "default")
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=30s",
                    "crd/admissions.tallyman.dev")
    bench.probe(10)
    bench.gangs.wait_state(running[0], "Running", 60)
    assert not bench.gangs.is_suspended(running[0])
    bench.gangs.delete(running[0])
    bench.wait_finished(bench.expected - set(running))

    cluster.strip_finalizers("/apis/tallyman.dev/v1beta1/queues")
    cluster.kubectl("delete", "crd", "queues.tallyman.dev", "--wait=false")
    cluster.wait_for(lambda: _is_gone(cluster), 30, "the kind Queue is gone")
    bench.gangs.create(manifests.job("waits", bench.namespace, queue=bench.queue, cpu="100m"))
    bench.gangs.wait_reason("waits", "QueueNotFound", 60)
    cluster.kubectl("apply", "-k", ROOT / "config" / "default")
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=30s", "crd/queues.tallyman.dev")
    cluster.wait_for(lambda: cluster.apply(manifests.queue(bench.queue, {"cpu": "2"})), 20,
                     "the queue again")
    bench.gangs.wait_started("waits", 60)


def _is_gone(cluster):
    if cluster.api.get_or_none(f"{CRDS}/queues.tallyman.dev") is None:
        return True
    cluster.strip_finalizers("/apis/tallyman.dev/v1beta1/queues")
    return False


def test_a_token_that_ends_and_an_authority_that_is_exchanged(context):
    """The ServiceAccount is made anew, so that its old tokens are refused; then the server's
    certificate comes from another authority. Both by files that are written anew."""
    cluster = context.session.server_cluster()
    context.session.install(cluster)
    directory = context.session.scratch / f"trust-{context.suffix}"
    certs.create(directory / "old")
    certs.create(directory / "new")
    token, authority = directory / "token", directory / "ca.crt"
    token.write_text(cluster.service_account_token("tallyman-system", "tallyman"))
    shutil.copy(directory / "old" / "ca.crt", authority)
    bench = Bench(context, cluster, user={"tokenFile": str(token)}, ca_file=authority,
                  certificate=(directory / "old" / "server.crt", directory / "old" / "server.key"))
    _name_authority(bench.kubeconfig, authority)
    bench.start()

    account = "/api/v1/namespaces/tallyman-system/serviceaccounts"
    made = cluster.get_json(f"{account}/tallyman")
    cluster.request("DELETE", f"{account}/tallyman")
    cluster.request("POST", account, {"metadata": {
        "name": "tallyman", "labels": made["metadata"].get("labels", {})}})
    old = token.read_text()
    cluster.wait_for(lambda: cluster.api.exchange("GET", "/apis/batch/v1/jobs?limit=1",
                                                  token=old)[0] == 401, 30, "the old token refused")
    bench.faults.cut()
    waiting = bench.submit(2)
    stays(lambda: not set(waiting) & bench.started(), 2, "nobody started without a token")
    token.write_text(cluster.service_account_token("tallyman-system", "tallyman"))
    bench.wait_started(waiting, 15)

    bench.proxy.use_certificate(directory / "new" / "server.crt", directory / "new" / "server.key")
    waiting = bench.submit(2)
    stays(lambda: not set(waiting) & bench.started(), 2, "a stranger isn't believed")
    shutil.copy(directory / "new" / "ca.crt", authority)
    bench.wait_started(waiting, 15)
    bench.judge()


def _name_authority(kubeconfig, authority):
    """By its path: what a kubeconfig has as data can't change."""
    config = json.loads(kubeconfig.read_text())
    config["clusters"][0]["cluster"].pop("certificate-authority-data")
    config["clusters"][0]["cluster"]["certificate-authority"] = str(authority)
    kubeconfig.write_text(json.dumps(config))
