"""Where things are: the built binaries, and the state of clusters that run."""

import os
import pathlib
import subprocess

SUITE_DIR = pathlib.Path(__file__).resolve().parent.parent
STAGES_FILE = SUITE_DIR / "stages.yaml"


def cache_dir():
    """The cache that `build` uses too: $TALLYMAN_CACHE, else below $XDG_CACHE_HOME or ~/.cache."""
    explicit = os.environ.get("TALLYMAN_CACHE")
    if explicit:
        return pathlib.Path(explicit)
    home_cache = pathlib.Path(os.environ.get("HOME", "/root")) / ".cache"
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or home_cache) / "tallyman"


def run_dir():
    """Holds NAME.json (what runs), NAME.lock and NAME/ (its files) for each cluster."""
    return cache_dir() / "run"


def bin_dir():
    """The directory with the binaries, which are built first where they are missing."""
    result = subprocess.run([SUITE_DIR / "build"], stdout=subprocess.PIPE, text=True, check=False)
    if result.returncode != 0:
        raise SystemExit("the control plane could not be built: see the message above")
    return pathlib.Path(result.stdout.splitlines()[-1])
