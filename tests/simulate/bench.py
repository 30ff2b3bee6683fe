"""What the cases of tests/simulate share: how the program is called, and two small inputs."""
import csv
import io
import json
import os
import subprocess

CASES = []


def case(function):
    CASES.append(function)
    return function


class Bench:
    """A directory with the case's files, and the program."""

    def __init__(self, program, directory):
        self.program = program
        self.directory = directory

    def write(self, name, text):
        path = os.path.join(self.directory, name)
        mode = "wb" if isinstance(text, bytes) else "w"
        with open(path, mode, **({} if mode == "wb" else {"encoding": "utf-8"})) as file:
            file.write(text)
        return path

    def run(self, *args):
        return subprocess.run([self.program, "simulate", *args], cwd=self.directory, timeout=120,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False)

    def good(self, *args):
        result = self.run(*args)
        assert result.returncode == 0, (result.returncode, result.stderr.decode())
        assert not result.stderr, result.stderr.decode()
        return result.stdout.decode()

    def json(self, *args):
        return json.loads(self.good(*args, "-o", "json"))

    def rows(self, *args):
        return list(csv.DictReader(io.StringIO(self.good(*args, "-o", "csv"))))

    def wrong(self, *args):
        """What it says to a wrong input, in one line."""
        result = self.run(*args)
        assert result.returncode == 2, (result.returncode, result.stdout, result.stderr)
        assert not result.stdout, result.stdout
        text = result.stderr.decode()
        assert text.startswith("tallyman simulate: ") and text.count("\n") == 1, text
        return text[len("tallyman simulate: "):-1]


def same(got, expected):
    assert got == expected, f"\n    got      {got!r}\n    expected {expected!r}"


ONE_TOO_MANY = """
cluster: {nodes: 1, devicesPerNode: 2}
queues:
- name: q
  nominalQuota: 2
  classes:
  - {name: a, jobs: 3, runFor: 100s}
"""

SWF = """\
; Version: 2.2
; MaxProcs: 4
1 0 -1 100 4 -1 -1 -1 -1 -1 1 7 1 -1 1 -1 -1 -1
2 50 -1 100 2 -1 -1 -1 300 -1 1 8 1 -1 2 -1 -1 -1
3 60 -1 -1 2 -1 -1 -1 -1 -1 5 8 1 -1 2 -1 -1 -1
"""
