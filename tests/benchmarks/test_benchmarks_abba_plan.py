"""Only a run with the default family and rule can carry a verdict."""

from __future__ import annotations

import argparse

import pytest

from benchmarks.abba import command, plan

CONTEXTS = command.CONTEXTS["cuda"]


def plan_of(*arguments: str) -> str:
    parser = argparse.ArgumentParser()
    command.add_options(parser)
    return plan.of(parser.parse_args(arguments), CONTEXTS)


@pytest.mark.parametrize("arguments", [(), ("--budget", "99s"), ("--contexts", "8192,65536,131072,262144")])
def test_more_time_and_the_same_contexts_are_standard(arguments: tuple[str, ...]) -> None:
    assert plan_of(*arguments) == plan.STANDARD


@pytest.mark.parametrize(
    "loosened",
    [
        "--contexts 8192",
        "--rows 2",
        "--page 16",
        "--heads 3",
        "--head-dim 64",
        "--l2 hot",
        "--alpha 0.000001",
        "--margin 0.5",
        "--reject-above 0.1",
        "--resolution 0.1",
    ],
)
def test_what_could_hide_a_slowdown_is_not(loosened: str) -> None:
    assert plan_of(*loosened.split()) == plan.OTHER
