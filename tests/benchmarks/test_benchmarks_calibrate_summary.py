"""What many trials say: exact bounds, and a textbook protocol that fails where the engine doesn't."""

from __future__ import annotations

import json
import random
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from simulated_machine import Noise, SimulatedMachine

from benchmarks.abba.decision import Rule
from benchmarks.abba.sampling import BASE, CANDIDATE, Instance
from benchmarks.calibrate import judging, rates, summary, table, textbook, trials
from benchmarks.calibrate.judging import Limits
from benchmarks.calibrate.trials import ENGINE, TEXTBOOK, Case, Trial

ROOT = Path(__file__).parents[2]
H200_8K = Noise(replay=0.0005, block=0.0005, instance=0.002, alternating=0.006)
RULE = Rule(comparisons=4)


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


def test_the_textbook_gives_each_side_a_workspace_of_its_own() -> None:
    """Captures 0 and 1 share one, 2 and 3 the next."""
    sides = []

    class Watched(SimulatedMachine):
        def capture(self, side: str) -> Instance:
            sides.append(side)
            return super().capture(side)

    instances = textbook._instances(Watched(seed=1))
    assert sides == [BASE, CANDIDATE, BASE, CANDIDATE]
    assert [instances[side].side for side in (BASE, CANDIDATE)] == [BASE, CANDIDATE]


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
    lines = table.text({"engine": [pooled, planted_ones], "textbook": [pooled]}).splitlines()
    assert len(lines) == 3
    assert lines[0].split()[:4] == ["trials", "of", "context", "engine:"]
    assert lines[1].count("1 of 19") == 2 and lines[2].count("5 of 7") == 1


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
    limits = Limits(most_false_alarms=0.1, least_power=0.9)
    assert judging.judge(summary.summarise(nulls + slowed), limits, missing=missing).word == word


def test_identical_code_is_judged_together_and_what_is_shown_only_is_not() -> None:
    nulls = [
        trial("slower" if n == 0 else "same", kind=kind) for kind in ("a/a", "builds") for n in range(99)
    ]
    weak = [replace(trial("same", null=False, kind="weak"), judged=False) for _ in range(99)]
    rows = summary.summarise([*nulls, *weak])
    assert [(s.kind, s.judged, s.rate.trials) for s in rows] == [
        ("identical code", True, 198),
        ("a/a", False, 99),
        ("builds", False, 99),
        ("weak", False, 99),
    ]
    # 2 of 198 are shown below 4 %, 1 of 99 isn't.
    verdict = judging.judge(rows, Limits(most_false_alarms=0.04, least_power=0.9), missing=0)
    assert (verdict.word, verdict.text) == ("admitted", "identical code called different: 2 of 198")


def test_a_slow_calibration_is_rejected() -> None:
    rows = summary.summarise([trial("same", context=context) for context in (64, 128) for _ in range(60)])
    assert judging.judge(rows, Limits(most_median_s=1.0), missing=0).word == "admitted"
    slow = judging.judge(rows, Limits(most_median_s=0.9), missing=0)
    assert (slow.word, slow.code) == ("rejected", "calibration-bad")
    assert "a/a at 64 takes 1.0 s in the median" in slow.text


def test_trials_survive_a_record() -> None:
    one = trial("undecided", low=float("-inf"))
    plain = {**trials.to_json(one), "low": "-inf"}  # as records write what JSON has no number for
    assert trials.from_json(json.loads(json.dumps(plain))) == one
