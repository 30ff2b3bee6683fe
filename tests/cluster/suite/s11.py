"""S11, the first three minutes: the commands of docs/first-steps.md as they stand, on a cluster
where Tallyman is installed and nothing else, with the time that reading the page takes."""

import os
import re
import subprocess
import tempfile
import time

from lib import runner
from lib.gangs import Gangs

PAGE = runner.ROOT / "docs" / "first-steps.md"
STARTED_STEP = "## 5."         # by then the newcomer has seen a Job wait, and start
READING_WORDS_PER_S = 200 / 60
LIMIT_S = 180
FIGURES_AGE_S = 5
# A block of commands, and the table that it prints, where the page shows one.
BLOCK = re.compile(r"```sh\n(.*?)```\n(?:\n```\n(NAME.*?)```)?", re.DOTALL)


def _run(cluster, script, directory):
    """What a newcomer's shell does with one block; its output."""
    environment = {**os.environ, "KUBECONFIG": str(cluster.plane.kubeconfig),
                   "PATH": f"{cluster.plane.binaries}:{os.environ['PATH']}"}
    result = subprocess.run(["bash", "-euc", script], cwd=directory, env=environment, text=True,
                            capture_output=True, timeout=LIMIT_S, check=False)
    assert result.returncode == 0, f"{script}\n{result.stdout}{result.stderr}"
    return result.stdout


def _cells(table):
    """The rows of kubectl's table by name, without the ages."""
    return {line.split()[0]: tuple(re.split(r"\s{2,}", line.strip())[:-1])
            for line in table[table.index("NAME"):].strip().splitlines()}


def _run_and_compare(cluster, script, expected, directory):
    """The last command prints the table. It is asked for again if it isn't yet as the page shows
    it: a Queue's figures are some seconds old at most. It may have more rows: the Admission of a
    deleted Job is collected a while later on a cluster whose collector hasn't met the kind yet."""
    *commands, table = script.strip().splitlines()
    _run(cluster, "\n".join(commands), directory)
    deadline = time.monotonic() + FIGURES_AGE_S
    wanted = _cells(expected).items()
    while not wanted <= _cells(actual := _run(cluster, table, directory)).items():
        assert time.monotonic() < deadline, f"the page shows\n{expected}\nbut\n{actual}"
        time.sleep(0.5)


def test_a_newcomer_sees_a_job_wait_and_start_within_three_minutes(context):
    cluster = context.own_cluster()
    context.controller(cluster=cluster)
    gangs = Gangs(cluster, "default")
    page = PAGE.read_text(encoding="utf-8")
    tour = page[:page.index(STARTED_STEP)]
    reading_s = len(tour.split()) / READING_WORDS_PER_S
    with tempfile.TemporaryDirectory(prefix="tallyman-first-steps-") as directory:
        began = time.monotonic()
        for block, expected in BLOCK.findall(tour):
            if expected:
                _run_and_compare(cluster, block, expected, directory)
            else:
                _run(cluster, block, directory)
        commands_s = time.monotonic() - began
        gangs.wait_ready("train-b", 3)
        for block, _ in BLOCK.findall(page[len(tour):]):
            _run(cluster, block, directory)
        assert not os.listdir(directory), "the tour leaves files behind"
    assert gangs.job("train-b") is None
    context.note(f"{commands_s:.1f} s of commands and {reading_s:.0f} s of reading "
                 f"({len(tour.split())} words, those of the manifests too)")
    assert commands_s + reading_s < LIMIT_S
