"""`benchmarks calibrate`: merged studies, what they compare, their reports."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from simulated_machine import SimulatedMachine

from artifacts import ArtifactsError
from benchmarks import cli
from benchmarks.abba import citation
from benchmarks.abba import command as abba
from benchmarks.abba.command import Sides
from benchmarks.abba.subjects import Contender
from benchmarks.calibrate import judging, planted
from benchmarks.calibrate.judging import Limits
from benchmarks.latency.problem import Shape
from evidence import store
from evidence.record import Subject

ROOT = Path(__file__).parents[2]
MODULE = """
def op(q, k_cache, v_cache, block_table, row_lens, *, softmax_scale, k_scale, v_scale, out):
    out.copy_(q)


other = unslowed = op
"""
Run = Callable[..., int]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Runs `calibrate` on a simulated machine: the slowed side really is slower."""
    (tmp_path / "calibrate_side.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("KERNELGATE_HOME", str(tmp_path / "home"))
    monkeypatch.delitem(sys.modules, "calibrate_side", raising=False)

    def bench(sides: Sides, _shape: Shape, source: random.Random, *, hot: bool) -> SimulatedMachine:
        ratio = 1.1 if "slowed" in sides.candidate.label else 1.0
        return SimulatedMachine(seed=source.randrange(10**6) + hot, ratio=ratio)

    monkeypatch.setattr(abba, "bench", bench)
    fixed = (
        "--artifact",
        "calibrate_side:op",
        "--backend",
        "host",
        "--contexts",
        "64",
        "--seed",
        "3",
        "--alpha",
        "0.005",
    )
    yield lambda *options: cli.main(["calibrate", *fixed, "--budget", "300ms", *options])


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().out.splitlines()[-1]


def test_a_machine_is_calibrated(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--trials", "40", "--json", str(tmp_path / "c.json")) == 0
    expected = "calibrated: a/a called different: 0 of 40; planted 10.00% called slower: 40 of 40"
    assert last_line(capsys) == f"verdict: admitted ({expected})"
    (kept,) = store.load().records
    assert (kept.kind, kept.outcome, kept.selection["declared"]) == ("calibration", "pass", 40)
    assert len(kept.results["trials"]) == 80
    assert json.loads((tmp_path / "c.json").read_text())["id"] == kept.id


def test_slowed_sides_are_timed_against_the_unslowed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    simulated = abba.bench

    def bench(sides: Sides, shape: Shape, source: random.Random, *, hot: bool) -> object:
        seen.append((sides.base.label, sides.candidate.label))
        return simulated(sides, shape, source, hot=hot)

    monkeypatch.setattr(abba, "bench", bench)
    run("--trials", "1", "--slowed", "calibrate_side:other", "--unslowed", "calibrate_side:unslowed")
    run("--trials", "1", "--slowed", "calibrate_side:other")
    compared = [base for base, candidate in seen if candidate == "calibrate_side:other"]
    assert compared == ["calibrate_side:unslowed", "calibrate_side:op"]


def test_runs_merge_until_what_was_declared_is_there(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    study = ("--study", "nightly", "--declared", "40")
    assert run("--trials", "15", *study) == 3
    assert "undecided (too-few-trials: 25 more were declared" in last_line(capsys)
    assert run("--trials", "25", *study) == 0
    assert "0 of 40" in last_line(capsys)
    assert run("--trials", "1", *study) == 4
    assert "no-study: study nightly has its 40 trials" in last_line(capsys)
    assert len(store.load().records) == 2


def test_a_report_sets_protocols_side_by_side(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    study = ("--study", "both", "--declared", "40", "--trials", "40")
    assert run(*study) == 0
    run(*study, "--protocol", "textbook")
    capsys.readouterr()
    assert cli.main(["calibrate", "--report", "both"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "engine: called" in lines[0] and "textbook: called" in lines[0]
    assert lines[1].split()[:4] == ["a/a", "all", "0", "of"]
    assert lines[-3].startswith("engine: admitted") and lines[-2].startswith("textbook: ")
    assert lines[-1].startswith("verdict: admitted (calibrated: ")
    assert cli.main(["calibrate", "--report", "nothing"]) == 4


def test_studies_of_one_name_on_other_terms_are_reported_apart(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--study", "again", "--trials", "40") == 0
    (kept,) = store.load().records
    terms = {**kept.selection["terms"], "machine": "another machine"}
    other = {"study": "again", "declared": 80, "terms": terms}
    store.append(replace(kept, selection=other, started_at="2020-01-01T00:00:00.000+00:00"))
    capsys.readouterr()
    assert cli.main(["calibrate", "--report", "again"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("2 studies are named again")
    titles, words = ([line for line in lines if line.startswith(s)] for s in ("instrument", "engine:"))
    assert "another machine, 80 declared" in titles[0] and "40 declared" in titles[1]
    assert words[0].startswith("engine: undecided (too-few-trials: 40 more were declared")
    assert words[1].startswith("engine: admitted") and lines[-1].startswith("verdict: admitted (calibrated: ")


@pytest.mark.parametrize(
    "option",
    [
        "--trials=0",
        "--trials=-3",
        "--declared=0",
        "--most-false-alarms=nan",
        "--most-false-alarms=1",
        "--least-power=0",
        "--most-median=0",
        "--plant=0",
        "--plant=-0.1",
        "--plant=nan",
    ],
)
def test_numbers_out_of_range_are_usage_errors(run: Run, option: str) -> None:
    assert run(option) == 2
    assert store.load().records == ()


def test_no_trial_is_run_beyond_what_was_declared(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    study = ("--study", "short", "--declared", "3")
    run(*study, "--trials", "2")
    run(*study, "--trials", "9")
    assert "2 of 18 trials: 3 of each were declared" in capsys.readouterr().out
    assert [len(record.results["trials"]) for record in store.load().records] == [4, 2]


def test_a_study_without_trials_is_unknown_and_never_cited(run: Run) -> None:
    run("--study", "empty", "--trials", "1")
    (kept,) = store.load().records
    store.append(
        replace(kept, results={"trials": [], "summaries": []}, started_at="2999-01-01T00:00:00.000+00:00")
    )
    records = store.load().records
    assert len(records) == 2
    assert kept.id[:12] in citation.line(records, kept.machine, backend="host")
    assert "another version" not in citation.line(records, kept.machine, backend="host")
    older = [replace(kept, instrument=replace(kept.instrument, digest="older"))]
    assert "another version of the instrument" in citation.line(older, kept.machine, backend="host")
    assert "none; run" in citation.line(records[1:], kept.machine, backend="host")
    found = judging.judge([], Limits(), missing=0)
    assert (found.word, found.code) == ("unknown", "no-trials")


def test_what_is_shown_only_decides_nothing(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--trials", "40", "--shown", "calibrate_side:other") == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split()[:2] == ["slowed", "calibrate_side:other"] for line in lines)
    assert "calibrate_side:other" not in lines[-1]


def test_limits_are_declared_with_the_study(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    study = ("--study", "strict", "--declared", "10", "--trials", "2")
    run(*study)
    assert run(*study, "--most-false-alarms", "0.5") == 4
    assert "begun with another limits" in last_line(capsys)


def test_a_study_is_not_mixed(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    study = ("--study", "mine", "--declared", "10", "--trials", "2")
    run(*study)
    assert run(*study, "--margin", "0.01") == 4
    assert "begun with another rule" in last_line(capsys)
    assert run("--study", "mine", "--declared", "20", "--trials", "2") == 4
    assert "begun with another declared" in last_line(capsys)


def test_abba_cites_the_calibration_of_its_machine(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    compare = ["abba", "--base", "calibrate_side:op", "--candidate", "calibrate_side:op", "--aa"]
    compare += ["--backend", "host", "--contexts", "64", "--budget", "200ms"]
    cli.main(compare)
    assert "calibration of this machine: none; run python -m benchmarks calibrate" in capsys.readouterr().out
    run("--trials", "3")
    cli.main(compare)
    assert "calibration of this machine: a/a 0 of 3, planted 10.00% 3 of 3" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "complaint", "code"),
    [
        (("--second", "calibrate_side:missing"), "no-target", 4),
        (("--rows", "5,8"), "usage: one number of rows", 2),
        (("--artifact", "peer:nobody"), "no-target", 4),
    ],
)
def test_what_cannot_be_calibrated_is_said(
    run: Run, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], complaint: str, code: int
) -> None:
    assert run("--trials", "1", *options) == code
    assert last_line(capsys).startswith(f"verdict: unknown ({complaint}")


def contender(backend: str) -> Contender:
    subject = Subject(backend=backend, arch="sm_90", sha256="a" * 64, code_digest="b" * 64)
    return Contender(label="kernel", subject=subject, attend=lambda x, *, out: out.append(x))


def test_the_planted_wrapper_calls_through_and_is_another_binary() -> None:
    made, out = planted.slowed(contender("host"), 0.5), []  # type: ignore[var-annotated]
    made.attend(7, out=out)
    assert out == [7]
    assert made.subject.code_digest is None and made.subject.sha256 != "a" * 64
    with pytest.raises(ArtifactsError, match="--slowed FOLDER"):
        planted.slowed(contender("cuda"), 0.5)


def test_a_second_build_of_other_code_is_refused(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "calibrate_other.py").write_text(MODULE)
    assert run("--second", "calibrate_other:op", "--trials", "1") == 2
    assert "isn't a build of the same code" in last_line(capsys)
