"""Runs asv, with a configuration made for one run from asv.conf.json."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.history.commits import Commit
from benchmarks.history.measure import NOTES_VARIABLE, SIDE_VARIABLE
from benchmarks.history.names import COMMIT, DATE_MS, MACHINE_FILE

CONFIG = "asv.conf.json"
TIMEOUT_S, TIMED_OUT = 7200, 124
NO_ASV = "asv is not installed: pip install asv==0.6.6, or run the session without --no-venv"


@dataclass(frozen=True, kw_only=True)
class Desk:
    """Where one run of asv works: `work` is thrown away after, `results` is the history."""

    root: Path
    work: Path
    results: Path

    @property
    def log(self) -> Path:
        """All that asv and the suites print."""
        return self.work / "asv.log"


def is_installed() -> bool:
    """True when `python -m asv` can be run."""
    return importlib.util.find_spec("asv") is not None


def measure(desk: Desk, commit: Commit, side: Path, machine: Mapping[str, str], bench: str | None) -> int:
    """Run the suites on one commit's artifacts; asv's exit status. New samples join those already kept."""
    _write_machine(desk, machine)
    environment = {
        COMMIT: commit.name,
        DATE_MS: str(commit.date_ms),
        SIDE_VARIABLE: str(side),
        NOTES_VARIABLE: str(desk.work / "notes.jsonl"),
    }
    config = configure(desk, {"dvcs": "named"})
    words = ["--environment", "prepared:same", "--set-commit-hash", commit.name, "--append-samples"]
    chosen = ["--bench", bench] if bench else []
    return call(
        desk,
        config,
        "run",
        *words,
        "--show-stderr",
        "--machine",
        machine["machine"],
        *chosen,
        extra=environment,
    )


def configure(desk: Desk, changes: Mapping[str, Any]) -> Path:
    """asv.conf.json with this run's folders, in the work folder."""
    config = json.loads(re.sub(r"^\s*//.*$", "", (desk.root / CONFIG).read_text(), flags=re.MULTILINE))
    config |= {
        "repo": str(desk.root),
        "benchmark_dir": str(desk.root / config["benchmark_dir"]),
        "results_dir": str(desk.results),
        "env_dir": str(desk.work / "env"),
        **changes,
    }
    path = desk.work / CONFIG
    path.write_text(json.dumps(config, indent=1))
    return path


def call(desk: Desk, config: Path, verb: str, *words: str, extra: Mapping[str, str] | None = None) -> int:
    """Run one asv command; its exit status, 124 when it ran too long."""
    paths = os.pathsep.join([str(desk.root), str(desk.root / "kernels"), *_own_paths()])
    environment = {
        **os.environ,
        **(extra or {}),
        MACHINE_FILE: str(desk.work / "machines.json"),
        "PYTHONPATH": paths,
        "ASV_PYTHONPATH": paths,
    }
    line = [sys.executable, "-m", "asv", verb, *words, "--config", str(config)]
    try:
        with desk.log.open("ab") as log:
            return subprocess.run(
                line, env=environment, timeout=TIMEOUT_S, check=False, stdout=log, stderr=subprocess.STDOUT
            ).returncode
    except subprocess.TimeoutExpired:
        return TIMED_OUT


def notes(desk: Desk) -> list[dict[str, Any]]:
    """Why a suite has no results: one object each."""
    path = desk.work / "notes.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _own_paths() -> Sequence[str]:
    """The caller's, whole: asv runs elsewhere."""
    found = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return [str(Path(path).absolute()) for path in found if path]


def _write_machine(desk: Desk, machine: Mapping[str, str]) -> None:
    entry = {machine["machine"]: dict(machine), "version": 1}
    (desk.work / "machines.json").write_text(json.dumps(entry, indent=1))
