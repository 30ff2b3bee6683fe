"""The controller's own server by TLS: who may read /metrics, asked of the real API server with the
rights of the shipped role."""

import shutil
import ssl
import subprocess
import tempfile
import urllib.error
import urllib.request

METRICS_ROLE = "tallyman-metrics-reader"


def _certificate(context):
    """A certificate for 127.0.0.1 and its key; with one the server is by TLS on loopback too."""
    directory = tempfile.mkdtemp(prefix="tallyman-tls-")
    context.defer(shutil.rmtree, directory)
    certificate, key = f"{directory}/tls.crt", f"{directory}/tls.key"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", certificate,
                    "-days", "2", "-subj", "/CN=tallyman", "-addext",
                    "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    return certificate, key


class _Server:
    def __init__(self, context):
        certificate, key = _certificate(context)
        self.tls = ssl.create_default_context(cafile=certificate)
        self.controller = context.controller(
            arguments=["--tls-cert-file", certificate, "--tls-private-key-file", key],
            is_started=False)
        self.controller.start(is_ready_awaited=False)
        context.cluster.wait_for(lambda: self.ask("/readyz")[0] == 200, 30, "/readyz is 200")

    def ask(self, path, token=None):
        """(status, text); 0: nobody answers yet."""
        request = urllib.request.Request(f"https://127.0.0.1:{self.controller.port}{path}")
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=15, context=self.tls) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except urllib.error.URLError:
            return 0, ""


def test_metrics_are_for_accounts_that_may_get_them(context):
    cluster, namespace = context.cluster, context.namespace
    server = _Server(context)
    for name in ("scraper", "stranger"):
        cluster.kubectl("-n", namespace, "create", "serviceaccount", name)
    binding = context.name("scrapes")
    context.defer(cluster.kubectl, "delete", "clusterrolebinding", binding)
    cluster.kubectl("create", "clusterrolebinding", binding, f"--clusterrole={METRICS_ROLE}",
                    f"--serviceaccount={namespace}:scraper")
    scraper, stranger = (cluster.service_account_token(namespace, name)
                         for name in ("scraper", "stranger"))
    cluster.wait_for(lambda: server.ask("/metrics", scraper)[0] == 200, 15,
                     "the role lets the account read /metrics")
    assert "# TYPE tallyman_" in server.ask("/metrics", scraper)[1]
    status, text = server.ask("/metrics", stranger)
    assert status == 403 and METRICS_ROLE in text, (status, text)
    assert server.ask("/metrics")[0] == 401
    assert server.ask("/metrics", "no.such.token")[0] == 401
    assert server.ask("/healthz")[0] == 200, "a kubelet asks without a token"


def test_a_scrape_costs_the_api_server_nothing_for_a_minute(context):
    """Twenty scrapes, one TokenReview and one SubjectAccessReview."""
    cluster, namespace = context.cluster, context.namespace
    server = _Server(context)
    cluster.kubectl("-n", namespace, "create", "serviceaccount", "scraper")
    binding = context.name("scrapes")
    context.defer(cluster.kubectl, "delete", "clusterrolebinding", binding)
    cluster.kubectl("create", "clusterrolebinding", binding, f"--clusterrole={METRICS_ROLE}",
                    f"--serviceaccount={namespace}:scraper")
    token = cluster.service_account_token(namespace, "scraper")
    cluster.wait_for(lambda: server.ask("/metrics", token)[0] == 200, 15, "the account may")
    before = cluster.audit_position()
    for _ in range(20):
        assert server.ask("/metrics", token)[0] == 200
    reviews = [event["requestURI"] for event in cluster.audit_events(since=before)
               if "reviews" in event["requestURI"]]
    assert len(reviews) <= 2, reviews
