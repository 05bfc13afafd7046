"""Command line: `python -m sanitizer memcheck | racecheck | initcheck | synccheck | leakcheck`."""

from __future__ import annotations

import argparse
import traceback
from collections.abc import Sequence
from pathlib import Path

from evidence import ending, store
from evidence.ending import EXIT_CODES
from sanitizer import command, judge, leakcheck, outputs
from sanitizer.batch import MOST_FAULTS
from sanitizer.cuda import TOOLS
from sanitizer.growth import CALLS
from sanitizer.judge import Judgement


def parser() -> argparse.ArgumentParser:
    """The arguments of `python -m sanitizer`."""
    top = ending.Parser(prog="python -m sanitizer", description=__doc__)
    verbs = top.add_subparsers(dest="tool", required=True)
    for tool in TOOLS:
        text = f"the table of alignments and boundaries under {tool}"
        text += "; without a GPU under AddressSanitizer and UBSan" if tool == "memcheck" else "; needs a GPU"
        _options(verbs.add_parser(tool, help=text, description=text))
    text = f"memory that {CALLS} calls keep, on a CPU or a GPU"
    _options(verbs.add_parser(leakcheck.TOOL, help=text, description=text))
    return top


def _options(verb: argparse.ArgumentParser) -> None:
    verb.add_argument(
        "--backend", choices=("host", "cuda"), help="default: cuda where there is a GPU, else host"
    )
    verb.add_argument("--arch", help="default: the GPU's; sm_70 on the host")
    chosen = verb.add_mutually_exclusive_group()
    chosen.add_argument("--artifact", type=Path, metavar="DIR", help="an artifact, or a folder of several")
    chosen.add_argument(
        "--library",
        type=Path,
        metavar="PATH",
        help="a library; for the host built with -fsanitize=address -g",
    )
    verb.add_argument(
        "--cases", default="all", metavar="NAMES", help="core, all (default), or names with commas"
    )
    verb.add_argument(
        "--control",
        type=Path,
        metavar="CUBIN",
        help="planted kernels built elsewhere by python -m sanitizer.controls; default: beside the artifact",
    )
    verb.add_argument(
        "--suppressions", type=Path, metavar="FILE", help="TOML: findings accepted, with reason and expiry"
    )
    verb.add_argument(
        "--most-faults",
        type=int,
        default=MOST_FAULTS,
        metavar="N",
        help=f"stop after so many cases that end their process (default {MOST_FAULTS}); each costs a new one",
    )
    verb.add_argument("--json", type=Path, metavar="PATH", help="write findings and verdict there")
    verb.add_argument("--junit", type=Path, metavar="PATH", help="write JUnit XML there")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one tool; the last line is its verdict; return the exit code."""
    try:
        options = parser().parse_args(arguments)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else EXIT_CODES["usage"]
    if options.json is not None and options.json == options.junit:
        ending.say(judge.usage("--json and --junit name one file").line)
        return EXIT_CODES["usage"]
    trouble = ending.prepare(options.json) or ending.prepare(
        options.junit, option="--junit", is_result=outputs.is_junit
    )
    trouble = trouble or store.trouble()
    try:
        found = command.run(options) if trouble is None else judge.usage(trouble)
        if trouble is None:
            _state(options, found)
    except (Exception, SystemExit) as error:  # a failure of the machinery must not look like a rejection
        traceback.print_exc()
        ending.say(f"verdict: unknown (machinery: {type(error).__name__}: {' '.join(str(error).split())})")
        return EXIT_CODES["error"]
    for reason in found.reasons[1:]:
        print(f"also {reason.code}: {reason.text}")
    ending.say(found.line)
    return EXIT_CODES[found.word]


def _state(options: argparse.Namespace, found: Judgement) -> None:
    """Write the bare verdict where the command had nothing more to write."""
    if options.json is not None and not options.json.exists():
        ending.write(options.json, outputs.document(found, ()))
    if options.junit is not None and not options.junit.exists():
        outputs.write_junit(options.junit, options.tool, (), found)
