"""Each allocation and each system call of the kube layer fails once.

A client watches, patches, applies, deletes, writes an event and quits. Whatever fails, it either ends for
want of memory and says so, or goes on: what it lists is whole, each request gets one answer, a write that
it says hasn't happened never reached the server, and it ends when it is told to, with nothing leaked.
TORTURE=1 plays every call of every kind, TORTURE=10 every tenth, TORTURE=KIND:N one; otherwise a few of
each kind are played.
"""
import asyncio
import os
import re

from wirelib import patience
from wirelib.objects import JOBS, added, bookmark, job, job_list

LEAKS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
                     "torture", "leaks")
WORKERS = 4
SOME = 2
PARTIAL = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
           "metadata": {"name": "a", "namespace": "ns", "uid": "u1", "resourceVersion": "77"}}
COMMANDS = {
    "patch": ('patch Job ns a {"metadata":{"uid":"u1"}}', "PATCH", "/jobs/a"),
    "apply": ('apply Admission ns a {"kind":"Admission"}', "PATCH", "/admissions/a"),
    "delete": ("delete Job ns b u1", "DELETE", "/jobs/b"),
    "event": ("event ns a.1f a u1", "POST", "/events"),
    "get": ("get Job ns c", "GET", "/jobs/c"),
}
SAID = re.compile(r"tallyman: (out of memory|the system can't watch another socket)|"
                  r"abort\(\) was called by \S*libuv")
# OpenSSL doesn't get over a failure while it sets itself up: it crashes then, or has no random numbers
# and no algorithms for as long as the process lives.
OPENSSLS = re.compile(r"/libcrypto\.so|/libssl\.so|OpenSSL/3|Insufficient randomness|SSL: couldn't")
FINDINGS = re.compile(r"Sanitizer|runtime error")


async def serve(server, seen):
    """Answers as a server in good health does, for ever."""
    while True:
        request = await server.queue.get()
        seen.append((request.method, request.path))
        try:
            if request.path == JOBS and request.is_watch:
                await request.start()
                await request.chunk(added("a", 5))
                await request.chunk(bookmark(10, is_end=True))
            elif request.path == JOBS:
                await request.answer(200, job_list(10, [job("a", 5)]))
            else:
                await request.answer(200, PARTIAL)
        except (ConnectionError, OSError):
            pass  # the client has gone


class Trial:
    def __init__(self, bench, server, seen, counts=None):
        self.bench = bench
        self.server = server
        self.seen = seen
        self.counts = counts

    async def run(self, failing):
        """None, or what went wrong."""
        self.client = await self.start(failing)
        try:
            await asyncio.wait_for(self.tell(), patience.of(30))
        except AssertionError as error:
            return self.ended_well(str(error))
        except asyncio.TimeoutError:
            if any(OPENSSLS.search(line) for line in self.client.log[-3:]):
                return None
            return f"it hangs; its last words: {self.client.log[-3:]}"
        finally:
            await self.client.kill()
            self.bench.clients.remove(self.client)
        return self.check_writes()

    async def start(self, failing):
        program = os.path.join(os.path.dirname(self.bench.program), "torture_client")
        env = {"TORTURE": failing, "LSAN_OPTIONS": f"suppressions={LEAKS}:print_suppressions=0"}
        if self.counts:
            env["TORTURE_COUNTS"] = self.counts
        ordinary, self.bench.program = self.bench.program, program
        try:
            return await self.bench.run("--kubeconfig", self.kubeconfig, "--retry-base-ms", "20",
                                        "--retry-max-ms", "100", "--request-ms", "2000", "--watch",
                                        "Job", env=env)
        finally:
            self.bench.program = ordinary

    async def tell(self):
        await self.client.until("^synced Job", 30)
        assert any(line.startswith("ADDED Job ns/a ") for line in self.client.log), "Job a is lost"
        for name, (command, _, _) in COMMANDS.items():
            self.client.tell(command)
            await self.client.until(f"^{name} ", 30)
        await self.client.quit()

    def ended_well(self, error):
        """Without memory it may end, and say so; a client that can't be made says why."""
        if OPENSSLS.search(error):
            return None
        if FINDINGS.search(error):
            return error
        if SAID.search(error):
            return None
        if self.client.log and self.client.log[-1].startswith("error "):
            return None
        return error

    def check_writes(self):
        for name, (_, method, path) in COMMANDS.items():
            line = next(line for line in self.client.log if line.startswith(name + " "))
            times = sum(m == method and p.endswith(path) for m, p in self.seen)
            if " done " in line and times == 0:
                return f"{name} is said to be done, and never arrived: {line}"
            if method != "GET" and " done " not in line and "maybe=0" in line and times > 0:
                return f"{name} is said not to have happened, and arrived: {line}"
        return None


async def play(bench, failing, counts=None, tls=False):
    seen = []
    server = await bench.server(bench.certificates.context() if tls else None)
    task = asyncio.create_task(serve(server, seen))
    trial = Trial(bench, server, seen, counts)
    cluster = {"certificate-authority": bench.certificates.path("ca.crt")} if tls else None
    name = bench.kubeconfig(server.url, cluster=cluster)
    trial.kubeconfig = name + failing.replace(":", "-")
    os.rename(name, trial.kubeconfig)
    try:
        return await trial.run(failing)
    finally:
        task.cancel()
        await server.stop()
        os.unlink(trial.kubeconfig)


async def count(bench, tls):
    path = bench.path("counts")
    wrong = await play(bench, "none:0", path, tls)
    assert wrong is None, wrong
    with open(path, encoding="ascii") as file:
        return {kind: int(calls) for kind, calls in (line.split() for line in file)}


def choose(calls, wanted):
    if wanted and ":" in wanted:
        return [wanted]
    chosen = []
    for kind, number in calls.items():
        step = int(wanted) if wanted else max(1, number // SOME)
        chosen += [f"{kind}:{n}" for n in range(step, number + 1, step)]
    return chosen


async def torture(bench, tls):
    wanted = os.environ.get("TORTURE")
    left = choose(await count(bench, tls), wanted)
    if wanted:
        print(f"    {len(left)} calls fail, {'with' if tls else 'without'} TLS")
    wrongs = []

    async def work():
        while left:
            failing = left.pop()
            wrong = await play(bench, failing, None, tls)
            if wrong:
                wrongs.append(f"{failing}: {wrong}")

    await asyncio.gather(*(work() for _ in range(WORKERS)))
    assert not wrongs, f"{len(wrongs)} go wrong:\n" + "\n".join(wrongs)[:6000]


async def test_each_call_fails_once(bench):
    await torture(bench, False)


async def test_each_call_fails_once_under_tls(bench):
    if os.environ.get("TORTURE"):
        await torture(bench, True)


if os.environ.get("TORTURE"):
    test_each_call_fails_once.timeout_s = test_each_call_fails_once_under_tls.timeout_s = 4 * 3600
