"""A night: its plan, its steps in processes of their own, and that no failure is lost."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import cli
from benchmarks.nightly import command, ending, perform, plan
from benchmarks.nightly.perform import Ended
from benchmarks.nightly.plan import Built, Gpu, Missing, Night, Step

SUPPORT = Path(__file__).parent / "support"
PASS = "verdict: admitted (same-bits: all)"


def night(folder: Path, *, gpus: tuple[Gpu, ...] = (), revision: str | None = "a" * 40) -> Night:
    sides = {}
    for side in ("candidate", "base"):
        names = [(backend, arch) for backend in ("host", "cuda") for arch in ("sm_70", "sm_90")]
        folders = {name: f"/{side}/{'-'.join(name)}" for name in names}
        sides[side] = Built(listing=folder / f"{side}.json", folders=folders)
    return Night(**sides, gpus=gpus, folder=folder, revision=revision, results=None, budget="9s")


def test_without_a_gpu_the_hosts_parts_run_and_the_rest_is_named(tmp_path: Path) -> None:
    steps, missing = plan.steps(night(tmp_path))
    assert all(step.gpu is None for step in steps)
    names = [step.name for step in steps]
    assert names[:2] == ["replay host sm_70", "contract host sm_70"]
    assert {
        "memcheck host sm_70",
        "fuzz host sm_70",
        "faults host sm_70",
        "static cuda sm_90",
        "emulate cuda sm_70",
        "history",
        "dashboard",
        "verdict",
        "pack",
    } <= set(names)
    assert [one.name for one in missing][:3] == ["replay cuda", "contract cuda", "memcheck cuda"]
    assert not any(one.is_gap for one in missing)
    word, reason = ending.conclude([ended(steps[0])], missing, [], partial=False)
    assert word == "admitted" and "not run: replay cuda, " in reason and reason.endswith("there is no GPU")


def test_each_gpu_runs_everything_on_its_own_library(tmp_path: Path) -> None:
    gpus = (Gpu(index=0, arch="sm_90"), Gpu(index=1, arch="sm_70"))
    steps, missing = plan.steps(night(tmp_path, gpus=gpus))
    assert not missing
    for gpu in gpus:
        mine = {step.name.split()[0]: step for step in steps if step.gpu == gpu.index}
        others = {"replay", "contract", "fuzz", "faults", "latency", "abba", "history"}
        assert set(mine) == others | set(plan.MEMORY_TOOLS)
        assert f"/candidate/cuda-{gpu.arch}" in mine["racecheck"].arguments
        assert f"/base/cuda-{gpu.arch}" in mine["abba"].arguments
        assert "all" in mine["replay"].arguments


def test_a_library_that_was_not_built_is_a_gap(tmp_path: Path) -> None:
    made = night(tmp_path, gpus=(Gpu(index=0, arch="sm_90"),))
    candidate = replace(made.candidate, folders={})
    steps, missing = plan.steps(replace(made, candidate=candidate))
    gaps = [one.name for one in missing if one.is_gap]
    assert gaps == ["replay host sm_70", "replay host sm_90", "gpu0 sm_90"]
    word, reason = ending.conclude([ended(steps[-1])], missing, [], partial=False)
    assert word == "unknown" and reason.startswith("not-run: replay host sm_70: ")


def test_a_tree_without_git_uses_the_carried_artifacts(tmp_path: Path) -> None:
    made = night(tmp_path, gpus=(Gpu(index=0, arch="sm_90"),), revision=None)
    carried = replace(made, faults=tmp_path / "faults", control=tmp_path / "control", fuzz=0.5)
    steps, missing = plan.steps(carried)
    for tool in plan.MEMORY_TOOLS:
        (found,) = [step for step in steps if step.name == f"{tool} gpu0 sm_90"]
        assert found.arguments[-2:] == ("--control", str(tmp_path / "control"))
    (faults,) = [step for step in steps if step.name == "faults gpu0 sm_90"]
    assert faults.arguments[-2:] == ("--built", str(tmp_path / "faults"))
    (history,) = [step for step in steps if step.name.startswith("history")]
    assert history.arguments[2:4] == ("--artifact", str(tmp_path / "artifacts"))
    assert [one.name for one in missing] == ["faults host sm_70", "dashboard"]
    drawn = [step.arguments[-2:] for step in steps if step.name.startswith("fuzz")]
    assert drawn == [("--minutes", "0.5")] * 2


STEP = Step(name="step", arguments=())


@pytest.mark.parametrize(
    ("status", "last", "word"),
    [
        (0, PASS, "passed"),
        (1, "verdict: rejected (bits-differ: 1)", "rejected"),
        (3, "verdict: undecided (dirty-tree: x)", "undecided"),
        (4, "verdict: unknown (no-gpu: none)", "unknown"),
        (0, "verdict: rejected (bits-differ: 1)", "failed"),
        (1, PASS, "failed"),
        (5, "verdict: unknown (machinery: x)", "failed"),
        (2, "error: no such option", "failed"),
        (0, "no output", "failed"),
        (1, "Traceback", "failed"),
        (-11, PASS, "failed"),
        (None, PASS, "failed"),
    ],
)
def test_exit_status_and_last_line_must_agree(status: int | None, last: str, word: str) -> None:
    assert perform.conclude(STEP, status, last) == word


def test_a_step_without_verdict_ends_well_only_with_status_0() -> None:
    filing = replace(STEP, verdict=False)
    assert perform.conclude(filing, 0, "3 records") == "passed"
    assert perform.conclude(filing, 4, "no records to pack") == "failed"


def ended(step: Step = STEP, word: str = "passed") -> Ended:
    return Ended(step=step, word=word, last=PASS, status=0, seconds=1.0, log=Path("log"))


@pytest.mark.parametrize(
    ("words", "verdict"),
    [
        (("passed", "passed"), "admitted"),
        (("passed", "failed", "passed"), "unknown"),
        (("undecided", "unknown"), "unknown"),
        (("failed", "rejected"), "rejected"),
        (("passed", "undecided"), "undecided"),
        ((), "unknown"),
    ],
)
def test_the_worst_step_decides(words: tuple[str, ...], verdict: str) -> None:
    found, reason = ending.conclude([ended(word=word) for word in words], [], [], partial=False)
    assert found == verdict
    assert words != ("failed", "rejected") or "also 1 failed" in reason


def test_a_part_of_a_night_admits_nothing() -> None:
    assert ending.conclude([ended()], [], [], partial=True)[0] == "undecided"


def test_a_control_rejects_nothing_alone_but_must_run() -> None:
    control = replace(STEP, control=True)
    assert ending.conclude([ended(), ended(control, "rejected")], [], [], partial=False)[0] == "admitted"
    assert ending.conclude([ended(), ended(control, "failed")], [], [], partial=False)[0] == "unknown"


def test_no_step_stops_another_and_none_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    monkeypatch.setenv("KERNELGATE_HOME", str(tmp_path / "home"))
    chosen = {
        "good": ("0", "words", PASS),
        "bad": ("1", "verdict: rejected (bits-differ: 3 groups)"),
        "crash": ("crash", PASS),
        "hang": ("hang", PASS),
        "silent": ("0",),
        "last": ("0", PASS),
    }
    steps = [
        Step(name=name, arguments=("night_steps", *words), timeout_s=2 if name == "hang" else 60)
        for name, words in chosen.items()
    ]
    monkeypatch.setattr(command, "_builds", lambda *_: [])
    monkeypatch.setattr(command, "gpus", lambda: ())
    monkeypatch.setattr(
        command.plan, "steps", lambda _night: (steps, [Missing(name="x", why="y", is_gap=False)])
    )
    assert cli.main(["nightly", "--json", str(tmp_path / "night.json")]) == 1
    text = capsys.readouterr().out
    first = "first bad: rejected (bits-differ: 3 groups); also 3 failed"
    assert text.splitlines()[-1].startswith(f"verdict: rejected (step-rejected: 1 of 6 steps, {first}")
    assert "not run: x: y" in text
    stated = json.loads((tmp_path / "night.json").read_text())
    words = ["passed", "rejected", "failed", "failed", "failed", "passed"]
    assert [one["word"] for one in stated["steps"]] == words
    logs = [Path(one["log"]) for one in stated["steps"]]
    assert len(set(logs)) == 6 and logs[0].read_text() == f"words\n{PASS}\n"


def test_listing_a_night_admits_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KERNELGATE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(command, "_builds", lambda *_: [])
    monkeypatch.setattr(command, "gpus", lambda: ())
    assert cli.main(["nightly", "--list", "--only", "dash,pack"]) == 4
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines[-3:-1]] == ["dashboard", "pack"]
