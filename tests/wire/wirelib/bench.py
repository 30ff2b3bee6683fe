"""What one test is given: servers, clients, files, certificates; all of it is taken down behind it."""
import asyncio
import json
import os
import shutil
import ssl
import subprocess
import tempfile

from . import patience
from .client import Client
from .server import Server

def fast():
    """Short pauses; time-outs that only the tests of time-outs meet."""
    idle_ms = str(int(patience.of(3000)))
    return ("--retry-base-ms", "20", "--retry-max-ms", "200", "--idle-ms", idle_ms, "--initial-ms",
            idle_ms, "--absent-retry-ms", "100", "--absent-grace-ms", "400")


class Certificates:
    """One authority, one certificate for `wire.test` and 127.0.0.1, one for another name, and an
    authority that nobody trusts. Made once per run."""

    def __init__(self, directory):
        self.directory = directory
        self.make_authority("ca")
        self.make_authority("stranger")
        self.make_server("server", "ca", "DNS:wire.test,IP:127.0.0.1")
        self.make_server("other", "ca", "DNS:other.test")

    def path(self, name):
        return os.path.join(self.directory, name)

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], check=True, cwd=self.directory,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def make_authority(self, name):
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                     "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.crt", "-days", "2",
                     "-subj", f"/CN={name}")

    def make_server(self, name, authority, names):
        with open(self.path(f"{name}.ext"), "w", encoding="ascii") as out:
            out.write(f"subjectAltName={names}\n")
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                     "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.crt", "-CAkey",
                     f"{authority}.key", "-CAcreateserial", "-days", "2", "-extfile",
                     f"{name}.ext", "-out", f"{name}.crt")

    def context(self, name="server", protocols=("http/1.1",)):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.path(f"{name}.crt"), self.path(f"{name}.key"))
        context.set_alpn_protocols(list(protocols))
        return context


class Bench:
    def __init__(self, program, certificates):
        self.program = program
        self.certificates = certificates
        self.directory = tempfile.mkdtemp(prefix="tallyman-wire-")
        self.servers = []
        self.clients = []

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, text, mode=0o600):
        with open(self.path(name), "w", encoding="utf-8") as out:
            out.write(text)
        os.chmod(self.path(name), mode)
        return self.path(name)

    async def server(self, ssl_context=None, port=0, kind=Server):
        server = await kind(ssl_context, port).start()
        self.servers.append(server)
        return server

    def kubeconfig(self, url, user=None, cluster=None):
        config = {
            "apiVersion": "v1", "kind": "Config", "current-context": "wire",
            "clusters": [{"name": "c", "cluster": {"server": url, **(cluster or {})}}],
            "users": [{"name": "u", "user": user or {}}],
            "contexts": [{"name": "wire", "context": {"cluster": "c", "user": "u"}}],
        }
        return self.write("kubeconfig", json.dumps(config))

    async def client(self, server, *arguments, user=None, cluster=None):
        url = server if isinstance(server, str) else server.url
        return await self.run("--kubeconfig", self.kubeconfig(url, user, cluster), *fast(),
                              *arguments)

    async def run(self, *arguments, env=None):
        env = {**os.environ, "ASAN_OPTIONS": "detect_leaks=1:detect_stack_use_after_return=1",
               **(env or {})}
        client = await Client.start(self.program, arguments, env)
        self.clients.append(client)
        return client

    async def synced(self, *arguments, ssl_context=None, **more):
        """A server and a client that has Job a at version 5, list complete at version 10; and the
        stream that it came by."""
        from .objects import JOBS, added, bookmark, seen
        server = await self.server(ssl_context)
        client = await self.client(server, "--watch", "Job", *arguments, **more)
        stream = await server.next(JOBS)
        assert stream.is_watch_list
        await stream.start()
        await stream.chunk(added("a", 5))
        await stream.chunk(bookmark(10, is_end=True))
        await client.expect("sync_start Job", seen("ADDED", "a", 5), "synced Job")
        return server, client, stream

    async def take_down(self):
        for client in self.clients:
            await client.kill()
        for server in self.servers:
            await server.stop()
        shutil.rmtree(self.directory, ignore_errors=True)
        await asyncio.sleep(0)
