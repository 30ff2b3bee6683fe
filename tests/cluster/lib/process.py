"""A process that outlives this one, known by pid and start time, so that a pid that the kernel has
given to somebody else is never mistaken for ours."""

import os
import signal
import subprocess
import time

POLL_S = 0.05


def _stat_fields(pid):
    """/proc/PID/stat after the command name, which may contain anything; None if there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


class Process:
    """One process. `started` is its start time in clock ticks since boot, as the kernel has it."""

    def __init__(self, name, pid, started):
        self.name, self.pid, self.started = name, pid, started

    @classmethod
    def spawn(cls, name, command, log_path, env=None, cwd=None):
        """Starts `command` detached in a session of its own, with its output appended to a file."""
        with open(log_path, "ab") as log:
            child = subprocess.Popen(
                [str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, env=env, cwd=cwd)
        child.returncode = 0  # we follow it by pid; Popen must not warn that it still runs
        fields = _stat_fields(child.pid)
        return cls(name, child.pid, fields[19] if fields else "gone")

    @classmethod
    def of(cls, name, pid):
        """A process that runs already."""
        return cls(name, pid, _stat_fields(pid)[19])

    def to_json(self):
        return {"name": self.name, "pid": self.pid, "started": self.started}

    @classmethod
    def from_json(cls, data):
        return cls(data["name"], data["pid"], data["started"])

    def is_alive(self):
        try:
            os.waitpid(self.pid, os.WNOHANG)  # reap it, where it is our own child
        except ChildProcessError:
            pass
        fields = _stat_fields(self.pid)
        return bool(fields) and fields[19] == self.started and fields[0] not in "ZX"

    def signal(self, number):
        if self.is_alive():
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                pass

    def wait_gone(self, timeout_s):
        """Whether it is gone within the time."""
        deadline = time.monotonic() + timeout_s
        while self.is_alive():
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL_S)
        return True

    def stop(self, term_s=10, kill_s=5):
        """SIGTERM, then SIGKILL when it hasn't ended within `term_s`. Whether that was not
        needed."""
        self.signal(signal.SIGTERM)
        if self.wait_gone(term_s):
            return True
        self.signal(signal.SIGKILL)
        if not self.wait_gone(kill_s):
            raise RuntimeError(f"{self.name} (pid {self.pid}) is still there after SIGKILL")
        return False
