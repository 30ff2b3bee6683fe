"""wire_client as a child process: its lines are expected one by one."""
import asyncio
import re

from . import patience


class Client:
    def __init__(self, process, name):
        self.process = process
        self.name = name
        self.log = []

    @classmethod
    async def start(cls, program, arguments, env):
        process = await asyncio.create_subprocess_exec(
            program, *arguments, env=env, limit=1 << 24, stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
        return cls(process, program)

    async def line(self, timeout=5):
        raw = await asyncio.wait_for(self.process.stdout.readline(), patience.of(timeout))
        if not raw:
            error = (await self.process.stderr.read()).decode(errors="replace")
            raise AssertionError(f"wire_client ended: {error[-3000:]}")
        text = raw.decode().rstrip("\n")
        self.log.append(text)
        return text

    async def expect(self, *wanted, timeout=5):
        """The next lines, each equal to a text or matched by a compiled pattern."""
        got = ""
        for want in wanted:
            try:
                got = await self.line(timeout)
            except asyncio.TimeoutError:
                raise AssertionError(f"no line came; wanted {want}") from None
            is_good = want.search(got) if isinstance(want, re.Pattern) else got == want
            assert is_good, f"wanted {want}\n     got  {got}"
        return got

    async def until(self, wanted, timeout=5):
        """Skips lines up to one that a pattern matches; returns what it matched."""
        pattern = re.compile(wanted)
        deadline = asyncio.get_running_loop().time() + patience.of(timeout)
        while True:
            left = deadline - asyncio.get_running_loop().time()
            try:
                got = await self.line(max(left, 0.001) / patience.of(1))
            except asyncio.TimeoutError:
                raise AssertionError(f"no line came that matches {wanted}") from None
            match = pattern.search(got)
            if match:
                return match

    async def silence(self, seconds):
        try:
            got = await self.line(seconds / patience.of(1))
        except asyncio.TimeoutError:
            return
        raise AssertionError(f"unexpected line: {got}")

    def tell(self, command):
        self.process.stdin.write(command.encode() + b"\n")

    async def metric(self, kind, field):
        self.tell("metrics")
        value = int((await self.until(rf"^metric {kind} .*\b{field}=(\d+)")).group(1))
        if kind != "client":
            await self.until("^metric client ")
        return value

    async def quit(self, timeout=10):
        """All is given back, and a sanitizer or an open handle has had nothing to say."""
        self.tell("quit")
        await self.until("^closed$", timeout)
        error = await asyncio.wait_for(self.process.stderr.read(), patience.of(timeout))
        status = await asyncio.wait_for(self.process.wait(), patience.of(timeout))
        assert not error, error.decode(errors="replace")[-3000:]
        assert status == 0, f"exit status {status}"

    async def ended(self, timeout=5):
        status = await asyncio.wait_for(self.process.wait(), patience.of(timeout))
        return status

    async def kill(self):
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()
