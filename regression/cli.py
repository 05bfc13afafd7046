"""Command line: `python -m regression replay | contract | fuzz | emulate | faults`."""

from __future__ import annotations

import argparse
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evidence import ending, store
from regression import command, judge
from regression.emulation import command as emulation
from regression.faults import command as faults
from regression.judge import Judgement
from regression.target import ARCHITECTURES

# What isn't run on one target with one set of options.
OWN_VERBS = {"faults": faults.run, "emulate": emulation.run}


def parser() -> argparse.ArgumentParser:
    """The arguments of `python -m regression`."""
    top = ending.Parser(prog="python -m regression", description=__doc__)
    verbs = top.add_subparsers(dest="verb", required=True)
    replay = verbs.add_parser("replay", help="replay stored inputs; compare every bit with the goldens")
    target_options(replay)
    replay.add_argument("--groups", help="core (default), all, a context like 8k, or ids with commas")
    replay.add_argument("--no-partials", action="store_true", help="skip the debug operation (half the time)")
    mode = replay.add_mutually_exclusive_group()
    mode.add_argument(
        "--locate", metavar="GROUP", help="name the first differing split, row, head and quantity"
    )
    mode.add_argument("--accept", metavar="REASON", help="renew the goldens, with the table, in CHANGELOG.md")
    replay.add_argument(
        "--against", type=Path, metavar="PATH", help="with --locate: a library or artifact to trust"
    )
    _contract(verbs)
    _fuzz(verbs)
    text = "run the CUDA kernels' sources on an emulated GPU, and compare every bit with the host backend"
    emulation.add_options(verbs.add_parser("emulate", help=text, description=text))
    text = "plant faults in copies of the kernel: each must be caught, and the kernel itself pass"
    faults.add_options(verbs.add_parser("faults", help=text, description=text))
    return top


def _contract(verbs: Any) -> None:
    text = "run the contract's made-up cases, each with what must come out, or must be refused"
    verb = verbs.add_parser("contract", help=text, description=text)
    target_options(verb)
    verb.add_argument(
        "--cases", default="core", metavar="NAMES", help="core (default), all, or names with commas"
    )


def _fuzz(verbs: Any) -> None:
    text = "draw random calls, valid and wrong, and hold each against FP64 and against its variants"
    verb = verbs.add_parser("fuzz", help=text, description=text)
    target_options(verb)
    amount = verb.add_mutually_exclusive_group()
    amount.add_argument(
        "--examples", type=_count, default=200, metavar="N", help="calls to draw (default: 200)"
    )
    amount.add_argument("--minutes", type=_minutes, metavar="M", help="draw for so long instead")
    amount.add_argument(
        "--example", type=Path, metavar="FILE", help="only the calls of this file, such as one that failed"
    )
    verb.add_argument(
        "--seed", type=int, metavar="S", help="what decides the calls (default: another each time)"
    )


def _count(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: 1 or more")
    return int(text)


def _minutes(text: str) -> float:
    if not 0 < float(text) < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: more than 0, and an end")
    return float(text)


def target_options(verb: argparse.ArgumentParser) -> None:
    """What is run, and where the results go: the same for all verbs."""
    verb.add_argument("--json", type=Path, metavar="PATH", help="write the results there too")
    verb.add_argument(
        "--backend", choices=("host", "cuda"), help="default: cuda where there is a GPU, else host"
    )
    verb.add_argument("--arch", choices=ARCHITECTURES, help="default: the GPU's, or sm_70 on the host")
    one = verb.add_mutually_exclusive_group()
    one.add_argument("--library", type=Path, metavar="PATH", help="run this shared library")
    one.add_argument("--artifact", type=Path, metavar="DIR", help="run the library in this artifact folder")
    one.add_argument("--callable", metavar="MODULE:FUNCTION", dest="function", help="run a Python callable")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; print the verdict last; return the exit code."""
    try:
        options = parser().parse_args(arguments)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else ending.EXIT_CODES["usage"]
    trouble = ending.prepare(options.json) or store.trouble()
    judgement = _told(options) if trouble is None else judge.usage(trouble)
    for line in judgement.details():
        print(line)
    ending.say(judgement.line())
    return judgement.exit_code


def _told(options: argparse.Namespace) -> Judgement:
    """Run, and leave the judgement where results go."""
    judgement = _run(options)
    try:
        reasons = [(reason.code, reason.text) for reason in judgement.reasons]
        ending.write_bare(options.json, ending.CHECKED[judgement.word], reasons)
    except OSError as error:
        return judge.error("machinery", str(error))
    return judgement


def _run(options: argparse.Namespace) -> Judgement:
    """Whatever fails unforeseen is the machinery's failure: it must not look like a rejection (exit 1)."""
    if options.verb == "replay" and options.against is not None and options.locate is None:
        return judge.usage("--against belongs to --locate")
    try:
        return OWN_VERBS.get(options.verb, command.run)(options)
    except (Exception, SystemExit) as failure:
        traceback.print_exc()
        return judge.error("machinery", f"{type(failure).__name__}: {failure}")
