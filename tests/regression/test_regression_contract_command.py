"""`python -m regression contract`: what it prints, writes and returns."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evidence import store
from fixtures import cases
from regression import progress

Command = Callable[..., Any]
ROOT = Path(__file__).resolve().parents[2]
FEW = "nan-v-late-3x64,over-capacity-3x64,small-residual-one-3x64,page-16-over-3x64,refused-page-24-3x64"


def test_a_kept_contract_leaves_a_record(command: Command, artifact: Path) -> None:
    done = command("contract", "--artifact", artifact, "--cases", FEW)
    assert done.code in (0, 3)  # undecided from a dirty tree
    assert "5 cases as they must be" in done.verdict
    assert done.json is not None
    assert (done.json["kind"], done.json["outcome"]) == ("contract", "pass")
    assert done.json["selection"] == {"cases": FEW, "partials": True}
    assert done.json["results"]["first_violation"] is None
    assert [case["name"] for case in done.json["results"]["cases"]] == FEW.split(",")
    (kept,) = store.load().records
    assert (kept.id, kept.artifact.arch) == (done.json["id"], "sm_70")


def test_a_broken_contract_names_the_first_case(command: Command, callables: str) -> None:
    done = command("contract", "--callable", f"{callables}:rough", "--arch", "sm_70", "--cases", FEW)
    assert done.code == 1
    assert done.verdict.startswith("verdict: rejected (over-budget: ")
    assert "nan-v-late-3x64" in done.verdict
    assert done.json is not None
    first = done.json["results"]["first_violation"]
    assert (first["case"], first["gate"]) == ("nan-v-late-3x64", "budget")
    assert any("small-residual-one-3x64" in line and "budget" in line for line in done.lines)


def test_without_partials_their_gates_are_said_to_be_not_covered(command: Command, callables: str) -> None:
    done = command("contract", "--callable", f"{callables}:honest", "--arch", "sm_70", "--cases", FEW)
    assert "5 cases as they must be; not covered: partial-bound (1 cases)" in done.verdict
    assert done.json is not None
    assert done.json["selection"]["partials"] is False


@pytest.mark.parametrize("function", ["broken", "leaving"])
def test_a_kernel_that_raises_or_exits_breaks_each_case(
    command: Command, callables: str, function: str
) -> None:
    done = command("contract", "--callable", f"{callables}:{function}", "--arch", "sm_70", "--cases", FEW)
    assert done.code == 1
    assert "kernel-failed: 4 of 5 cases, first nan-v-late-3x64" in " ".join(done.lines)


def test_a_crash_leaves_no_record_and_says_where(tmp_path: Path) -> None:
    (tmp_path / "crashing.py").write_text(
        "import ctypes\ndef attend(*tensors, out, **scales):\n    ctypes.string_at(0)\n"
    )
    path = os.pathsep.join([str(ROOT), str(ROOT / "kernels"), str(tmp_path)])
    done = subprocess.run(
        [sys.executable, "-m", "regression", "contract", "--callable=crashing:attend", "--cases=nan-q-3x64"],
        env={**os.environ, "PYTHONPATH": path, "KERNELGATE_HOME": str(tmp_path / "home")},
        capture_output=True, text=True, timeout=120, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == -signal.SIGSEGV
    last = done.stdout.splitlines()[-1]
    assert last == "verdict: unknown (process-died: ended by SIGSEGV before it could judge)"
    assert "crashing.py" in done.stderr
    assert not list((tmp_path / "home").rglob("*.json"))


@pytest.mark.parametrize("names", ["nan-q-3x65", ",", "nan-q-3x64,never"])
def test_an_unknown_case_is_a_matter_of_usage(command: Command, artifact: Path, names: str) -> None:
    done = command("contract", "--artifact", artifact, "--cases", names)
    assert done.code == 2
    assert "no case is called" in done.verdict


def test_core_is_the_default(command: Command, artifact: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr(cases, "select", lambda text: (seen.append(text), ("nan-q-3x64",))[1])
    command("contract", "--artifact", artifact)
    assert seen == ["core"]


def test_progress_without_a_terminal_is_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from rich.console import Console

    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    console = Console(force_terminal=False)
    assert list(progress.bar(range(3), total=3, title="replay", console=console)) == [0, 1, 2]
    said = capsys.readouterr()
    assert [line.split(",")[0] for line in said.err.splitlines()] == ["replay: 1 of 3", "replay: 2 of 3"]
    assert said.out == ""
