"""From intervals to words, to verdicts: every word is shown, and what is unknown never passes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.abba import decision
from benchmarks.abba.decision import Rule
from benchmarks.abba.sequence import Interval

RULE = Rule(comparisons=4)
ENOUGH = RULE.least_rounds


def between(low: float, high: float) -> Interval:
    return Interval(low=math.log(low), high=math.log(high))


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (1.0001, 1.2, "slower"),
        (1.0001, 1.0002, "slower"),  # within the margin, and still slower: the interval excludes 1
        (0.8, 0.9999, "faster"),
        (0.996, 1.004, "same"),
        (0.996, 1.006, "undecided"),
        (0.994, 1.001, "undecided"),
    ],
)
def test_words(low: float, high: float, word: str) -> None:
    assert RULE.word(between(low, high), ENOUGH) == word
    assert RULE.word(between(low, high), ENOUGH - 1) == "unknown"


def test_alpha_is_shared_by_the_family() -> None:
    assert RULE.alpha_each == pytest.approx(0.0125)


def test_a_slowdown_that_is_allowed_does_not_reject() -> None:
    lenient = Rule(comparisons=1, reject_above=0.01)
    assert RULE.rejects(between(1.001, 1.002), ENOUGH)
    assert not lenient.rejects(between(1.001, 1.002), ENOUGH)
    assert lenient.rejects(between(1.011, 1.02), ENOUGH)


def test_sampling_goes_on_until_it_is_settled() -> None:
    assert RULE.settled(between(1.001, 1.3), ENOUGH)
    assert RULE.settled(between(0.9, 0.99), ENOUGH)
    assert not RULE.settled(between(0.997, 1.003), ENOUGH), "the same, but coarser than the resolution"
    assert RULE.settled(between(0.9995, 1.0005), ENOUGH)
    assert not RULE.settled(between(0.9995, 1.0005), ENOUGH - 1)
    lenient = Rule(comparisons=1, reject_above=0.01)
    assert not lenient.settled(between(1.005, 1.02), ENOUGH), "slower, but perhaps by an allowed amount"
    assert lenient.settled(between(1.005, 1.009), ENOUGH)


@given(st.floats(0.9, 1.1), st.floats(0, 0.1), st.integers(0, 20))
def test_what_rejects_is_slower(low: float, width: float, rounds: int) -> None:
    found = between(low, low + width)
    if RULE.rejects(found, rounds):
        assert RULE.word(found, rounds) == "slower" and RULE.settled(found, rounds)


@pytest.mark.parametrize(
    ("words", "verdict", "code"),
    [
        (["same", "same"], "admitted", "same"),
        (["same", "faster"], "admitted", "no-slower"),
        (["same", "slower"], "rejected", "slower"),
        (["unknown", "slower"], "rejected", "slower"),
        (["same", "unknown"], "unknown", "too-few-samples"),
        (["undecided", "unknown"], "unknown", "too-few-samples"),
        (["same", "undecided"], "undecided", "time-undecided"),
        ([], "unknown", "too-few-samples"),
    ],
)
def test_verdicts(words: list[str], verdict: str, code: str) -> None:
    found = decision.judge([(f"case {n}", word, word == "slower") for n, word in enumerate(words)])
    assert (found.word, found.code) == (verdict, code)


def test_a_slowdown_within_what_is_allowed_is_admitted_by_its_name() -> None:
    found = decision.judge([("case", "slower", False)])
    assert (found.word, found.code) == ("admitted", "no-slower")
    assert "slower" in found.text
