"""The options of `calibrate`."""

from __future__ import annotations

import argparse

from benchmarks.abba import options as shared
from benchmarks.calibrate import trials


def add(verb: argparse.ArgumentParser) -> None:
    """What is compared, how often, and what is demanded of it."""
    _sides(verb)
    _study(verb)
    _limits(verb)
    shared.shapes(verb)
    shared.rule(verb, budget_s=None, budget_text="of one trial; default 2.5s, on the host 5s")
    shared.target(verb)


def _sides(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--artifact", metavar="SPEC", help="what to compare with itself; default: work tree")
    verb.add_argument("--second", metavar="SPEC", help="another build of the same code: A/A of two builds")
    text = "a build with a spin patch; may be repeated"
    verb.add_argument("--slowed", metavar="SPEC", action="append", default=[], help=text)
    text = "as --slowed, but its power is shown only, not judged; may be repeated"
    verb.add_argument("--shown", metavar="SPEC", action="append", default=[], help=text)
    text = "what these are compared with, as a spin changes the code around it; default: --artifact"
    verb.add_argument("--unslowed", metavar="SPEC", help=text)
    text = "slow the host's call by this fraction; may be repeated; default there 0.1"
    verb.add_argument("--plant", type=shared.positive, action="append", metavar="FRACTION", help=text)


def _study(verb: argparse.ArgumentParser) -> None:
    text = "of each kind and context now, as far as --declared allows; default 40"
    verb.add_argument("--trials", type=shared.count, default=40, help=text)
    verb.add_argument("--study", metavar="NAME", help="merge with earlier runs of this name")
    verb.add_argument("--declared", type=shared.count, help="trials of the whole study; default: this run's")
    verb.add_argument("--protocol", choices=trials.PROTOCOLS, default=trials.ENGINE, help="default: engine")
    text = "measure nothing: print that study, its protocols side by side"
    verb.add_argument("--report", metavar="STUDY", help=text)


def _limits(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--most-false-alarms", type=shared.share, default=0.1, help="a rate; default 0.1")
    verb.add_argument("--least-power", type=shared.share, default=0.9, help="a rate; default 0.9")
    text = "median time of a trial, in every context; default: any"
    verb.add_argument("--most-median", type=shared.seconds, metavar="TIME", help=text)
