"""Calibration: exact bounds, merged studies, and a textbook protocol that fails where the engine doesn't."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from simulated_machine import Noise, SimulatedMachine

from artifacts import ArtifactsError
from benchmarks import cli
from benchmarks.abba import command as abba
from benchmarks.abba.command import Sides
from benchmarks.abba.decision import Rule
from benchmarks.abba.subjects import Contender
from benchmarks.calibrate import planted, rates, summary, trials
from benchmarks.calibrate.trials import ENGINE, TEXTBOOK, Case, Trial
from benchmarks.latency.problem import Shape
from evidence import store
from evidence.record import Subject
from fixtures import faults
from grouped_attention.build import build

ROOT = Path(__file__).parents[2]
H200_8K = Noise(replay=0.0005, block=0.0005, instance=0.002, alternating=0.006)
RULE = Rule(comparisons=4)
MODULE = """
def op(q, k_cache, v_cache, block_table, row_lens, *, softmax_scale, k_scale, v_scale, out):
    out.copy_(q)


other = unslowed = op
"""
Run = Callable[..., int]


def trial(
    word: str, *, null: bool = True, kind: str = "a/a", context: int = 64, low: float = -0.001
) -> Trial:
    ends = {"low": low, "high": 0.001, "centre": 0.0}
    return Trial(kind=kind, null=null, context=context, word=word, seconds=1.0, rounds=9, **ends)


def simulated(seed: int, *, ratio: float, protocol: str) -> Trial:
    machine = SimulatedMachine(seed=seed, ratio=ratio, noise=H200_8K)
    case = Case(kind="a/a", null=ratio == 1.0, context=8192, bench=lambda: machine)
    return trials.run(case, machine, RULE, protocol=protocol, budget_s=1.0, source=random.Random(seed))


@pytest.mark.parametrize(
    ("hits", "count", "low", "high"),
    [(0, 40, 0.0, 0.0722), (40, 40, 0.9278, 1.0), (1, 400, 0.000128, 0.0118), (5, 10, 0.2224, 0.7776)],
)
def test_bounds_are_those_of_clopper_and_pearson(hits: int, count: int, low: float, high: float) -> None:
    found = rates.rate(hits, count)
    assert (found.low, found.high) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


def test_no_trials_say_nothing() -> None:
    assert (rates.rate(0, 0).low, rates.rate(0, 0).high) == (0.0, 1.0)


def test_without_scipy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(rates.StatisticsError, match="pip install scipy"):
        rates.rate(1, 2)


def test_the_textbook_protocol_errs_where_the_engine_does_not() -> None:
    by_textbook = [simulated(seed, ratio=1.0, protocol=TEXTBOOK).alarm for seed in range(30)]
    by_engine = [simulated(seed, ratio=1.0, protocol=ENGINE).alarm for seed in range(30)]
    assert sum(by_textbook) >= 15
    assert sum(by_engine) <= 1


def test_a_planted_slowdown_is_found() -> None:
    assert all(simulated(seed, ratio=1.005, protocol=ENGINE).found for seed in range(10))


def test_summaries_pool_and_split() -> None:
    many = [
        *(trial("same", context=context) for context in (64, 128) for _ in range(9)),
        trial("faster", context=64),
        trial("unknown", context=128),
        *(trial("slower", null=False, kind="planted") for _ in range(5)),
        trial("faster", null=False, kind="planted"),
        trial("unknown", null=False, kind="planted"),
    ]
    pooled, at_64, at_128, planted_ones = summary.summarise(many)
    assert [(s.rate.hits, s.rate.trials, s.unknown) for s in (pooled, at_64, at_128)] == [
        (1, 19, 1),
        (1, 10, 0),
        (0, 9, 1),
    ]
    assert (planted_ones.rate.hits, planted_ones.rate.trials) == (5, 7), "neither faster nor unknown finds it"
    assert len(summary.table([pooled, planted_ones]).splitlines()) == 3


def test_processes_that_differ_are_told_from_trials_that_scatter() -> None:
    def in_process(name: str, *centres: float) -> list[Trial]:
        return [replace(trial("same"), process=name, centre=centre) for centre in centres]

    (apart,) = summary.summarise([*in_process("a", 0.0, 0.0), *in_process("b", 0.02, 0.02)])
    assert apart.process_deviation == pytest.approx(0.02 / 2**0.5)
    (alike,) = summary.summarise([*in_process("a", -0.01, 0.01), *in_process("b", 0.01, -0.01)])
    assert alike.process_deviation == 0.0
    (single,) = summary.summarise(in_process("a", 0.0, 0.1))
    assert single.process_deviation is None


def test_the_least_ratio_is_how_far_intervals_reach_below_one() -> None:
    lows = [-0.001 * n for n in range(1, 11)]
    (found,) = summary.summarise([trial("same", low=low) for low in lows])
    assert found.least_ratio == pytest.approx(1.00904, abs=1e-5)
    (unknown,) = summary.summarise([trial("undecided", low=float("-inf"))])
    assert unknown.least_ratio is None


@pytest.mark.parametrize(
    ("alarms", "found", "missing", "word"),
    [
        (0, 60, 0, "admitted"),
        (0, 60, 5, "undecided"),
        (30, 60, 0, "rejected"),
        (0, 20, 0, "rejected"),
        (4, 60, 0, "undecided"),
    ],
)
def test_verdicts(alarms: int, found: int, missing: int, word: str) -> None:
    nulls = [trial("slower" if n < alarms else "same") for n in range(60)]
    slowed = [trial("slower" if n < found else "same", null=False, kind="planted") for n in range(60)]
    limits = {"most_false_alarms": 0.1, "least_power": 0.9}
    assert summary.judge(summary.summarise(nulls + slowed), missing=missing, **limits).word == word


def test_trials_survive_a_record() -> None:
    one = trial("undecided", low=float("-inf"))
    plain = {**trials.to_json(one), "low": "-inf"}  # as records write what JSON has no number for
    assert trials.from_json(json.loads(json.dumps(plain))) == one


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


@pytest.mark.parametrize("name", [f.name for f in faults.catalogue() if f.name.startswith("spin-")])
def test_a_kernel_with_a_planted_spin_can_be_built_and_is_another(name: str, tmp_path: Path) -> None:
    slowed = faults.build(faults.find(name), ROOT / "kernels", tmp_path, backend="cuda", arch="sm_90")
    whole = build(ROOT / "kernels", backend="cuda", arch="sm_90")
    assert slowed.manifest.code_digest != whole.manifest.code_digest
