"""Whom the client trusts."""
import re

from wirelib.objects import JOBS, added, seen

JOB = "/apis/batch/v1/namespaces/ns/jobs/a"


async def tried(bench, certificate, cluster, url=None):
    server = await bench.server(bench.certificates.context(certificate))
    client = await bench.client(url(server) if url else server, cluster=cluster)
    client.tell("patch Job ns a {}")
    return server, client


async def accepted(bench, certificate, cluster, url=None):
    server, client = await tried(bench, certificate, cluster, url)
    await (await server.next(JOB)).answer(200, "{}")
    await client.expect(re.compile("^patch done"))
    await client.quit()


async def refused(bench, certificate, cluster, wanted, url=None):
    server, client = await tried(bench, certificate, cluster, url)
    await client.expect(re.compile(wanted))
    await server.nothing(0.05)
    await client.quit()


async def test_a_certificate_of_the_authority(bench):
    await accepted(bench, "server", {"certificate-authority": bench.certificates.path("ca.crt")})


async def test_an_authority_given_as_data(bench):
    import base64
    with open(bench.certificates.path("ca.crt"), "rb") as file:
        data = base64.b64encode(file.read()).decode()
    await accepted(bench, "server", {"certificate-authority-data": data})


async def test_a_stranger_is_refused(bench):
    authority = bench.certificates.path("stranger.crt")
    await refused(bench, "server", {"certificate-authority": authority},
                  r'^patch retry code=0 maybe=0 .*can\'t reach https://127.0.0.1:\d+ '
                  r'\(context "wire" of .*kubeconfig\): .*certificate')


async def test_without_an_authority_the_systems_count(bench):
    await refused(bench, "server", {}, "^patch retry code=0 maybe=0 .*certificate")


async def test_another_name_is_refused(bench):
    await refused(bench, "other", {"certificate-authority": bench.certificates.path("ca.crt")},
                  "^patch retry code=0 maybe=0 .*can't reach .*127.0.0.1")


async def test_the_name_that_the_certificate_must_have(bench):
    await accepted(bench, "other", {"certificate-authority": bench.certificates.path("ca.crt"),
                                    "tls-server-name": "other.test"})


async def test_insecure_must_be_said(bench):
    await accepted(bench, "other", {"insecure-skip-tls-verify": True})


async def test_a_client_certificate_is_shown(bench):
    import ssl
    certificates = bench.certificates
    context = certificates.context()
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(certificates.path("ca.crt"))
    server = await bench.server(context)
    trust = {"certificate-authority": certificates.path("ca.crt")}
    client = await bench.client(server, cluster=trust, user={
        "client-certificate": certificates.path("server.crt"),
        "client-key": certificates.path("server.key")})
    client.tell("get Job ns a")
    await (await server.next(JOB)).answer(200, "{}")
    await client.expect(re.compile("^get done"))
    await client.quit()
    bare = await bench.client(server, cluster=trust)
    bare.tell("get Job ns a")
    await bare.expect(re.compile("^get retry code=0"))
    await bare.quit()


async def test_watch_over_tls(bench):
    trust = {"certificate-authority": bench.certificates.path("ca.crt")}
    _, client, stream = await bench.synced(ssl_context=bench.certificates.context(), cluster=trust)
    await stream.chunk(added("b", 11))
    await client.expect(seen("ADDED", "b", 11))
    await client.quit()


async def test_garbage_instead_of_tls(bench):
    server = await bench.server()
    client = await bench.client(f"https://127.0.0.1:{server.port}", "--watch", "Job")
    await client.expect(re.compile("^trouble Job .*can't reach https://"))
    assert server.queue.empty() or (await server.next()).path != JOBS
    await client.quit()


async def test_an_authority_that_is_exchanged_while_it_runs(bench):
    """The file has a new authority; before, the server with the new certificate is a stranger."""
    with open(bench.certificates.path("stranger.crt"), encoding="ascii") as file:
        stranger = file.read()
    with open(bench.certificates.path("ca.crt"), encoding="ascii") as file:
        authority = file.read()
    path = bench.write("authority.crt", stranger)
    server, client = await tried(bench, "server", {"certificate-authority": path})
    await client.expect(re.compile("^patch retry code=0 maybe=0 .*certificate"))
    bench.write("authority.crt", "half of it, as it is being written")
    client.tell("patch Job ns a {}")
    await client.expect(re.compile("^patch retry code=0 maybe=0 .*certificate"))
    bench.write("authority.crt", authority)
    client.tell("patch Job ns a {}")
    await (await server.next(JOB)).answer(200, "{}")
    await client.expect(re.compile("^patch done"))
    await client.quit()
