"""Whether a run is one that a verdict may rest on: nothing is left out of it, and its rule is the default."""

from __future__ import annotations

import argparse

from benchmarks.abba import options as shared

STANDARD, OTHER = "standard", "other"
DECISIVE = ("rows", "page", "heads", "head_dim", "l2", "alpha", "margin", "reject_above", "resolution")


def of(options: argparse.Namespace, contexts: tuple[int, ...]) -> str:
    """STANDARD when all that could hide a slowdown is as by default; `contexts` are the default ones."""
    parser = argparse.ArgumentParser()
    shared.shapes(parser)
    shared.rule(parser, budget_s=None, budget_text="")
    usual = parser.parse_args([])
    same = all(getattr(options, name) == getattr(usual, name) for name in DECISIVE)
    return STANDARD if same and options.contexts in (None, contexts) else OTHER
