"""Command line: `python -m benchmarks VERB`; `--help` lists the verbs."""

from __future__ import annotations

import argparse
import traceback
from collections.abc import Sequence

from benchmarks.abba import command as abba
from benchmarks.abba import plot
from benchmarks.bisect import command as bisect
from benchmarks.calibrate import command as calibrate
from benchmarks.calibrate import options as calibrate_options
from benchmarks.history import command as history
from benchmarks.history import dashboard
from benchmarks.latency import command as latency
from benchmarks.nightly import command as nightly
from benchmarks.peers import command as peers
from benchmarks.static import command as static
from evidence import ending, store
from evidence.ending import EXIT_CODES, Verdict

VERBS = {
    "static": static.run,
    "latency": latency.run,
    "peers": peers.run,
    "abba": abba.run,
    "calibrate": calibrate.run,
    "history": history.run,
    "dashboard": dashboard.run,
    "bisect": bisect.run,
    "nightly": nightly.run,
}


def parser() -> argparse.ArgumentParser:
    """The arguments of `python -m benchmarks`."""
    top = ending.Parser(prog="python -m benchmarks", description=__doc__)
    verbs = top.add_subparsers(dest="verb", required=True)
    text = "registers, spills, shared memory and code size of the compiled kernels, against limits and base"
    static.add_options(verbs.add_parser("static", help=text, description=text))
    text = "latency on a GPU beside a streaming read of the same bytes, cold L2"
    latency.add_options(verbs.add_parser("latency", help=text, description=text))
    text = "the kernel beside other implementations of the same work, on a GPU"
    peers.add_options(verbs.add_parser("peers", help=text, description=text))
    text = "candidate against base in time: randomised ABBA blocks, a verdict with a stated error rate"
    abba.add_options(verbs.add_parser("abba", help=text, description=text))
    text = "how often abba errs on this machine: A/A trials and planted slowdowns"
    calibrate_options.add(verbs.add_parser("calibrate", help=text, description=text))
    text = "measure commits with the asv suites, and keep the results"
    history.add_options(verbs.add_parser("history", help=text, description=text))
    text = "asv's web pages over the history"
    dashboard.add_options(verbs.add_parser("dashboard", help=text, description=text))
    text = "the first commit that is slower than a good one"
    bisect.add_options(verbs.add_parser("bisect", help=text, description=text))
    text = "everything, on each GPU or the host alone: one process a step, one verdict"
    nightly.add_options(verbs.add_parser("nightly", help=text, description=text))
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the last line is its verdict; return the exit code."""
    try:
        options = parser().parse_args(arguments)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else EXIT_CODES["usage"]
    trouble = ending.prepare(getattr(options, "json", None)) or ending.prepare(
        getattr(options, "plot", None), option="--plot", is_result=plot.is_plot
    )
    trouble = trouble or store.trouble()
    if trouble is not None:
        return ending.end(Verdict(word="unknown", code="usage", text=trouble))
    try:
        return VERBS[options.verb](options)
    except (Exception, SystemExit) as error:  # code that is measured may call sys.exit(0)
        traceback.print_exc()
        ending.say(f"verdict: unknown (machinery: {type(error).__name__}: {' '.join(str(error).split())})")
        return EXIT_CODES["error"]
