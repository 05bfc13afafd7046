"""A throw-away project with asv suites of a few figures, so that history and dashboard run in seconds."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SUITE = '''
"""Figures that need no kernel."""

import os
from pathlib import Path


class Figures:
    params = ([64, 128],)
    param_names = ["context"]
    version = os.environ.get("STAND_IN_VERSION", "stand-in-1")
    unit = "us"

    def track_time(self, context):
        return {"samples": [1.0 * context, 1.1 * context, 1.2 * context], "number": 1}

    def track_count(self, context):
        if os.environ.get("STAND_IN_FAILS"):
            raise RuntimeError("no figure today")
        return context // 2


class Elsewhere:
    version = "stand-in-1"

    def setup(self):
        raise NotImplementedError("no-gpu: not on this machine")

    def track_nothing(self):
        return 1
'''
MACHINE = {
    "machine": "cpu_stand-in",
    "gpu": "none",
    "os": "Linux",
    "arch": "x86_64",
    "cpu": "stand-in",
    "num_cpu": "2",
    "ram": "not recorded",
}


class Project:
    """A git repository with this checkout's asv.conf.json and suites of its own."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        suites = folder / "benchmarks" / "history" / "suites"
        suites.mkdir(parents=True)
        (suites / "__init__.py").write_text('"""Suites."""\n')
        (suites / "figures.py").write_text(SUITE)
        shutil.copyfile(ROOT / "asv.conf.json", folder / "asv.conf.json")
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        """Output of one git command."""
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        command = ["git", *identity, *arguments]
        return subprocess.run(
            command, cwd=self.root, capture_output=True, text=True, check=True
        ).stdout.strip()

    def commit(self, text: str) -> str:
        """A commit that changes the product; its hash."""
        product = self.root / "kernels"
        product.mkdir(exist_ok=True)
        (product / "kernel.txt").write_text(text)
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", text)
        return self.git("rev-parse", "HEAD")
