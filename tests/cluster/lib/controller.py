"""The tallyman binary as a process of its own, against a cluster: started, killed, restarted."""

import os
import pathlib
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

from .cluster import wait_for

READY_TIMEOUT_S = 30
STOP_TIMEOUT_S = 15


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Controller:
    """`BIN run --kubeconfig F --store DIR --http 127.0.0.1:PORT …`, its log appended to a file.

    The log and the store outlive a restart; `runs` counts the starts. All controllers have one
    identity unless a test gives others: a killed one is followed at once, as a StatefulSet's pod
    is by itself."""

    def __init__(self, binary, kubeconfig, store, log, arguments=(), env=None):
        self.binary, self.kubeconfig = pathlib.Path(binary), kubeconfig
        self.store, self.log = pathlib.Path(store), pathlib.Path(log)
        self.arguments, self.env = list(arguments), env
        self.port, self.process, self.runs = None, None, 0
        self._is_ended_by_us = False

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self, is_ready_awaited=True):
        assert not self.is_alive(), f"the controller runs already, as pid {self.process.pid}"
        self.store.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        command = [self.binary, "run", "--kubeconfig", self.kubeconfig, "--store", self.store,
                   "--http", f"127.0.0.1:{self.port}", "--identity", "suite", *self.arguments]
        with open(self.log, "ab") as log:
            log.write(f"---- start {self.runs + 1}: {' '.join(map(str, command))}\n".encode())
            log.flush()
            self.process = subprocess.Popen(
                [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, env={**os.environ, **(self.env or {})})
        self.runs += 1
        self._is_ended_by_us = False
        if is_ready_awaited:
            self.wait_ready()
        return self

    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def http(self, path, timeout_s=5):
        """(status, text) of the controller's own server."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=timeout_s) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def is_ready(self):
        assert self.is_alive(), (f"the controller ended with status {self.process.returncode}. "
                                 f"The end of its log:\n{self.log_tail()}")
        return self.http("/readyz")[0] == 200

    def wait_ready(self, timeout_s=READY_TIMEOUT_S):
        try:
            wait_for(self.is_ready, timeout_s, "the controller's /readyz is 200")
        except AssertionError as error:
            raise AssertionError(f"{error}. The end of its log:\n{self.log_tail()}") from None

    def kill9(self):
        """SIGKILL: no chance to put anything in order."""
        self._is_ended_by_us = self._is_ended_by_us or self.is_alive()
        if self.is_alive():
            self.process.kill()
        if self.process is not None:
            self.process.wait()

    def stop(self, timeout_s=STOP_TIMEOUT_S):
        """SIGTERM. The exit status, which is negative for a signal; it has to end in time."""
        if self.process is None:
            return 0
        if self.is_alive():
            self._is_ended_by_us = True
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill9()
            raise AssertionError(f"the controller didn't end within {timeout_s} s of SIGTERM. The "
                                 f"end of its log:\n{self.log_tail()}") from None

    def wait_ended(self, timeout_s):
        """Its exit status, when a test has brought it to end on its own."""
        status = self.process.wait(timeout_s)
        self._is_ended_by_us = True
        return status

    def finish(self):
        """Stops it at the end of a test, which fails if the controller had ended on its own, or
        ends with another status than 0: that is how a crash or a sanitizer's report shows."""
        is_running = self.is_alive()
        status = self.stop()
        if (is_running and status != 0) or (self.process and not self._is_ended_by_us):
            how = "on SIGTERM" if is_running else "on its own"
            raise AssertionError(f"the controller ended {how} with status {status}. The end of its "
                                 f"log:\n{self.log_tail()}")

    def restart(self, is_killed=False):
        if is_killed:
            self.kill9()
        else:
            self.stop()
        return self.start()

    def log_text(self):
        try:
            return self.log.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return ""

    def log_tail(self, lines=25):
        return "\n".join(line[:500] for line in self.log_text().splitlines()[-lines:])

    def metrics(self):
        """{'name{label="x"}': value}."""
        result = {}
        for line in self.http("/metrics")[1].splitlines():
            if line and not line.startswith("#"):
                key, _, value = line.rpartition(" ")
                result[key] = float(value)
        return result

    def cpu_seconds(self):
        """User and system time of the process so far."""
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def memory_bytes(self, field="VmRSS"):
        """A memory field of /proc/PID/status: VmRSS now, VmHWM the most so far."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            for line in file:
                if line.startswith(field + ":"):
                    return int(line.split()[1]) * 1024
        raise AssertionError(f"/proc/{self.process.pid}/status has no {field}")

    def idle_cpu_share(self, duration_s=5):
        """The part of one core that it uses over the next `duration_s`."""
        before = self.cpu_seconds()
        time.sleep(duration_s)
        return (self.cpu_seconds() - before) / duration_s
