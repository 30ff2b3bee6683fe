"""A short run of tests/compare-scheduler: what `tallyman plan` admits, the real kube-scheduler
places whole. `make test-scheduler` is the long one."""

import os
import subprocess
import sys

from lib import paths

WORLDS = os.environ.get("TALLYMAN_SCHEDULER_WORLDS", "60")
TIMEOUT_S = 600
RUN = paths.SUITE_DIR.parent / "compare-scheduler" / "run"


def test_what_is_planned_is_placed_whole(context):
    if context.session.binary is None:
        context.skip("needs the tallyman binary: give its path with --bin")
    result = subprocess.run(
        [sys.executable, RUN, "--bin", context.session.binary, "--worlds", WORLDS, "--cluster",
         context.cluster.options.name], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    for line in result.stdout.splitlines():
        context.note(line)
    assert result.returncode == 0, result.stderr
