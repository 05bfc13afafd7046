"""The matrix of planted faults: what counts as caught, what is missed, a false alarm, a stale patch."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from fixtures import faults
from fixtures.faults import FaultError
from regression.faults import command, gates, matrix, runs, trials
from regression.faults.gates import GATES, Built, Selection
from regression.faults.kernels import Workshop
from regression.faults.matrix import Matrix, Row
from regression.faults.runs import BROKEN, CAUGHT, SILENT, Run
from regression.faults.trials import Trial

CONFTEST_COMMAND = Any
REAL = "v-scale-ignored"
HARMLESS = (
    "What: only a comment changes\nGates: replay\nBackends: host\n\n"
    "--- a/include/grouped/kahan.h\n+++ b/include/grouped/kahan.h\n"
    "@@ -1,2 +1,2 @@\n"
    "-// Compensated sum of the tensor-core products of one score.\n"
    "+// Sum of the tensor-core products of one score.\n"
    " #pragma once\n"
)
ONE_CASE = "Cases: rows-2-3x64"
STALE = HARMLESS.replace("-// Compensated", "-// Uncompensated")


@pytest.fixture
def patches(tmp_path: Path) -> Path:
    folder = tmp_path / "patches"
    folder.mkdir()
    return folder


def trial(name: str, *gate_names: str, **more: Any) -> Trial:
    chosen = tuple(GATES[gate] for gate in gate_names)
    return Trial(fault=faults.find(name), backend="host", arch="sm_70", gates=chosen, **more)


def made(gate: str, word: str, text: str = "why") -> Run:
    return Run(gate=gate, word=word, text=text, seconds=1.0)


@pytest.mark.parametrize(
    ("gate", "status", "output", "word"),
    [
        ("replay", 1, "verdict: rejected (bits-differ: 4 of 4)", CAUGHT),
        ("replay", 0, "verdict: admitted (same-bits: fine)", SILENT),
        ("replay", 3, "verdict: undecided (no-revision: fine, but)", SILENT),
        *(("replay", -number, "no verdict at all", CAUGHT) for number in (11, 7, 4, 8, 6)),
        *(("replay", -number, "no verdict at all", BROKEN) for number in (9, 15, 2, 1, 13, 40)),
        ("replay", 4, "verdict: unknown (no-target: refused)", BROKEN),
        ("load", 4, "verdict: unknown (no-target: refused)", CAUGHT),
        ("load", 1, "verdict: rejected (bits-differ: 4 of 4)", BROKEN),
        ("load", 0, "verdict: admitted (same-bits: fine)", SILENT),
        ("replay", 5, "verdict: unknown (machinery: ImportError)", BROKEN),
        ("replay", 1, "Traceback (most recent call last):", BROKEN),
        ("replay", 0, "", BROKEN),
        ("replay", None, "verdict: rejected (bits-differ: 4 of 4)", BROKEN),
    ],
)
def test_only_a_gates_own_rejection_is_a_catch(gate: str, status: int | None, output: str, word: str) -> None:
    assert runs.judged(GATES[gate], status, output)[0] == word


def test_a_fault_is_caught_when_every_gate_that_must_catch_it_did() -> None:
    both = trial("empty-row-unwritten", "replay", "contract")
    assert Row(trial=both, runs=(made("replay", CAUGHT), made("contract", CAUGHT))).caught
    assert not Row(trial=both, runs=(made("replay", CAUGHT), made("contract", SILENT))).caught
    assert not Row(trial=both, runs=(made("replay", CAUGHT), made("contract", BROKEN))).caught
    assert not Row(trial=both, runs=()).caught


def test_the_verdict_of_a_matrix() -> None:
    good = Row(trial=trial(REAL, "replay"), runs=(made("replay", CAUGHT),))
    bad = Row(trial=trial("k-scale-twice", "replay"), runs=(made("replay", SILENT),))
    quiet, loud = made("replay", SILENT), made("replay", CAUGHT, "bits-differ")
    all_well = Matrix(rows=(good,), clean=(quiet,), needs_gpu=("empty-capture",))
    assert matrix.decide(all_well, scope="host").line() == (
        "verdict: admitted (all-caught: host: 1 faults, each by every gate that must catch it, 1 need a GPU)"
    )
    assert all_well.counts == "caught 1/1, false alarms 0/1"
    missed = Matrix(rows=(good, bad), clean=(quiet,))
    assert matrix.decide(missed, scope="host").exit_code == 1
    assert missed.counts == "caught 1/2, false alarms 0/1"
    assert "k-scale-twice: MISSED by replay: why" in matrix.complaints(missed)
    alarm = Matrix(rows=(good,), clean=(quiet, loud))
    assert matrix.decide(alarm, scope="host").line() == (
        "verdict: rejected (false-alarm: 1 of 2, first replay: bits-differ)"
    )
    assert alarm.counts == "caught 1/1, false alarms 1/2"
    broke = Matrix(rows=(good,), clean=(made("replay", BROKEN),))
    assert matrix.decide(broke, scope="host").exit_code == 5
    assert matrix.decide(Matrix(rows=(), clean=()), scope="host").exit_code == 4


def test_the_table_shows_what_was_asked_and_what_was_not() -> None:
    here = Row(
        trial=trial("wide-loader-behind-narrow-guard", "memcheck", elsewhere=(GATES["time"],)),
        runs=(made("memcheck", SILENT),),
    )
    other = Row(
        trial=trial(REAL, "replay"),
        runs=(Run(gate="replay", word=CAUGHT, text="", seconds=1.0, runs=3),),
    )
    head, *lines = matrix.table(Matrix(rows=(here, other), clean=())).splitlines()
    assert head.split() == ["fault", "planted", "in", "replay", "memcheck", "time"]
    assert lines[0].split()[-3:] == ["·", "MISSED", "gpu"]
    assert lines[1].split()[-4:] == ["caught", "3.", "·", "·"]


def test_a_machine_without_a_gpu_judges_what_it_can_and_names_the_rest() -> None:
    chosen = trials.choose(None, command.FOLDER)
    plan = trials.plan(chosen, backend="host", arch="sm_70", gpu=False)
    judged = {each.fault.name for each in plan.trials}
    assert len(judged) >= 40
    assert not judged & set(plan.needs_gpu)
    assert {"empty-capture", "default-stream", "spin-percent"} <= set(plan.needs_gpu)
    cuda = {each.fault.name: each for each in plan.trials if each.backend == "cuda"}
    static = {name for name, each in cuda.items() if [gate.name for gate in each.gates] == ["static"]}
    assert static == {"spilled-registers", "too-much-shared-memory"}
    emulated = {name for name, each in cuda.items() if [gate.name for gate in each.gates] == ["emulated"]}
    assert emulated == set(cuda) - static
    assert {"copies-not-awaited", "barrier-in-a-branch", "carried-accumulator"} <= emulated
    assert (cuda["copies-not-awaited"].arch, cuda["barrier-in-a-branch"].arch) == ("sm_80", "sm_70")


def test_on_a_gpu_every_cuda_fault_of_the_architecture_is_judged() -> None:
    chosen = trials.choose(None, command.FOLDER)
    plan = trials.plan(chosen, backend="cuda", arch="sm_90", gpu=True)
    assert plan.needs_gpu == ()
    assert {each.fault.name for each in plan.trials} == {f.name for f in chosen if f.fits("cuda", "sm_90")}
    assert all(each.gates and not each.elsewhere for each in plan.trials)


def test_every_fault_names_gates_that_exist_and_cases_that_do() -> None:
    from fixtures import cases, groups

    known = {*cases.names(), *cases.rows()}
    for fault in faults.catalogue():
        assert all(gates.of(fault, backend) for backend in fault.backends) or gates.TIME_BASE in fault.gates
        assert set(fault.cases) <= known, fault.name
        assert not fault.groups or groups.load(",".join(fault.groups))
        on_cases = {"memcheck", "racecheck", "initcheck", "synccheck", "contract", "emulated"}
        assert fault.cases or not on_cases & set(fault.gates), f"{fault.name} would run all core cases"


def test_a_fault_on_both_sides_is_judged_on_the_host_and_emulated() -> None:
    plan = trials.plan([faults.find("carried-accumulator")], backend="host", arch="sm_90", gpu=False)
    judged = [(each.backend, each.arch, [gate.name for gate in each.gates]) for each in plan.trials]
    assert judged == [("host", "sm_90", ["replay", "contract"]), ("cuda", "sm_90", ["emulated"])]
    assert [each.binary for each in plan.trials] == [True, False]
    assert [gate.name for gate in plan.trials[1].elsewhere] == ["replay", "contract"]


def test_an_unknown_gate_is_an_error(patches: Path) -> None:
    (patches / "odd.patch").write_text(HARMLESS.replace("Gates: replay", "Gates: seance"))
    with pytest.raises(FaultError, match="no gate is called 'seance'"):
        trials.plan(trials.choose(None, patches), backend="host", arch="sm_70", gpu=False)


def test_a_caught_fault_and_a_harmless_one(command: CONFTEST_COMMAND, patches: Path) -> None:
    real = faults.find(REAL).patch
    (patches / real.name).write_text(real.read_text())
    (patches / "harmless.patch").write_text(HARMLESS)
    done = command("faults", "--backend", "host", "--arch", "sm_70", "--catalogue", patches, "--clean", 1)
    assert done.code == 1
    assert done.verdict == "verdict: rejected (fault-missed: 1 of 2, first harmless)"
    assert done.lines[-2] == "caught 1/2, false alarms 0/1"
    assert done.json["kind"] == "faults" and done.json["outcome"] == "fail"
    words = {row["fault"]: row["caught"] for row in done.json["results"]["matrix"]}
    assert words == {"harmless": False, REAL: True}


def test_a_fault_in_cuda_code_alone_is_caught_without_a_gpu(command: CONFTEST_COMMAND, patches: Path) -> None:
    real = faults.find("copies-not-awaited").patch
    (patches / real.name).write_text(real.read_text())
    harmless = HARMLESS.replace(
        "Gates: replay\nBackends: host", f"Gates: emulated\nBackends: cuda\n{ONE_CASE}"
    )
    (patches / "harmless.patch").write_text(harmless)
    done = command("faults", "--backend", "host", "--arch", "sm_90", "--catalogue", patches, "--clean", 1)
    assert done.code == 1
    assert done.verdict == "verdict: rejected (fault-missed: 1 of 2, first harmless)"
    assert done.lines[-2] == "caught 1/2, false alarms 0/2"
    (caught, _) = done.json["results"]["matrix"]
    assert caught["runs"][0]["text"].startswith("emulation-differs: cuda sm_90")
    assert (done.json["artifact"]["backend"], done.json["artifact"]["arch"]) == ("host", "sm_90")


def test_a_gate_that_cries_over_the_sound_kernel(
    command: CONFTEST_COMMAND, patches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = faults.find(REAL).patch
    (patches / real.name).write_text(real.read_text())
    monkeypatch.setattr(Workshop, "sound", lambda self, trial: self.faulty(trial))
    done = command("faults", "--backend", "host", "--arch", "sm_70", "--catalogue", patches, "--clean", 1)
    assert done.code == 1
    assert done.lines[-2] == "caught 1/1, false alarms 1/1"
    assert done.verdict.startswith("verdict: rejected (false-alarm: 1 of 1, first replay: bits-differ")


def test_a_patch_that_no_longer_applies_is_an_error(command: CONFTEST_COMMAND, patches: Path) -> None:
    (patches / "stale.patch").write_text(STALE)
    done = command("faults", "--backend", "host", "--arch", "sm_70", "--catalogue", patches)
    assert done.code == 5
    assert done.verdict.startswith("verdict: unknown (patch-stale: stale no longer applies")


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("Gates: racecheck\nBackends: host", "none of its gates can run in the backend host"),
        ("Gates: emulated\nBackends: host, cuda", "none of its gates can run in the backend host"),
        ("Gates: replay, racecheck\nBackends: host", "racecheck can't run in the backend host"),
        ("Gates: ,\nBackends: host", "header lacks Gates"),
        ("Gates: replay\nBackends: ,", "header lacks Backends"),
    ],
)
def test_a_fault_that_no_gate_can_catch_is_an_error(
    command: CONFTEST_COMMAND, patches: Path, header: str, words: str
) -> None:
    (patches / "idle.patch").write_text(HARMLESS.replace("Gates: replay\nBackends: host", header))
    done = command("faults", "--backend", "host", "--arch", "sm_70", "--catalogue", patches)
    assert done.code == 5
    assert done.verdict.startswith("verdict: unknown (patch-stale: idle") and words in done.verdict


@pytest.mark.parametrize(
    "header", ["Backends: host\nArchitectures: sm_90", "Backends: cuda", "Backends: cuda\nRuns: 2"]
)
def test_a_stale_patch_is_an_error_where_no_gate_of_it_runs(
    command: CONFTEST_COMMAND, patches: Path, header: str
) -> None:
    (patches / "stale.patch").write_text(STALE.replace("Backends: host", header))
    done = command("faults", "--backend", "host", "--arch", "sm_70", "--catalogue", patches)
    assert done.code == 5 and "stale no longer applies" in done.verdict


def test_a_fault_of_another_place_is_named_and_needs_no_gpu() -> None:
    fault = dataclasses.replace(faults.find(REAL), architectures=("sm_90",), backends=("host",))
    plan = trials.plan([fault], backend="host", arch="sm_70", gpu=False)
    assert (plan.trials, plan.needs_gpu) == ((), ())
    assert plan.other_place == (f"{REAL} (host/sm_90)",)
    found = Matrix(rows=(), clean=(), needs_gpu=("a",), other_place=plan.other_place)
    assert matrix.complaints(found)[-1] == f"1 are of another architecture or backend: {REAL} (host/sm_90)"
    judged = matrix.decide(found, scope="host")
    assert judged.word == "unknown"
    assert "1 need a GPU, 1 are of another architecture or backend" in judged.line()
    both = trials.plan([fault], backend="cuda", arch="sm_90", gpu=True)
    assert both.other_place == plan.other_place and both.needs_gpu == ()


def test_a_faults_own_python_package_is_the_one_that_runs(tmp_path: Path) -> None:
    package = tmp_path / "grouped_attention"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit(7)\n")
    built = Built(artifact=tmp_path, package=tmp_path)
    found = runs.run(GATES["replay"], built, Selection())
    assert found.word == BROKEN and found.text.endswith("SystemExit: 7")


def test_commands_name_what_each_gate_is_run_on(tmp_path: Path) -> None:
    built = Built(
        artifact=tmp_path / "a", twin=tmp_path / "t.so", control=tmp_path / "c", base=tmp_path / "b"
    )
    fault = faults.find("wide-loader-behind-narrow-guard")
    arguments = gates.command(GATES["memcheck"], built, gates.selection_for(GATES["memcheck"], fault))
    assert arguments[2:6] == ["sanitizer", "memcheck", "--library", str(built.twin)]
    assert arguments[arguments.index("--cases") + 1] == fault.cases[0]
    assert arguments[-2:] == ["--control", str(built.control)]
    emulated = Built(emulator=tmp_path / "e.so", against=tmp_path / "h")
    fault = faults.find("copies-not-awaited")
    arguments = gates.command(GATES["emulated"], emulated, gates.selection_for(GATES["emulated"], fault))
    assert arguments[2:] == [
        "regression", "emulate", "--emulator", str(emulated.emulator), "--against", str(emulated.against),
        "--cases", ",".join(fault.cases),
    ]  # fmt: skip
    timed = gates.command(GATES["time"], built, Selection())
    assert timed[2:8] == ["benchmarks", "abba", "--base", str(built.base), "--candidate", str(built.artifact)]
