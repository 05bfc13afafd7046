"""`python -m sanitizer.worker`: runs cases of one library in this process, which a tool watches.

A case that loses the context, or that the tool stops, ends the process: the marks tell which it was.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from sanitizer import leaks
from sanitizer.marks import Writer

CONTROL = "control:"
LOST_CONTEXT = 71
NOT_STARTED = 72

Run = Callable[[str], str | None]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the cases in order; exit status 0 when all were run, whatever came out."""
    options = _parse(arguments)
    marks = Writer(options.marks)
    names = json.loads(options.cases.read_text())
    try:
        run = _runner(options, names, marks)
    except Exception as error:
        marks.write("trouble", text=f"{type(error).__name__}: {error}")
        return NOT_STARTED
    for name in names:
        marks.write("begin", case=name)
        complaint = run(name)
        if complaint is not None and _context_is_lost(options.backend):
            return _leave(LOST_CONTEXT)
        marks.write("end", case=name, complaint=complaint)
    marks.write("finished")
    return 0


def _runner(options: argparse.Namespace, names: Sequence[str], marks: Writer) -> Run:
    """What runs a case or a control; nothing is loaded that no name needs."""
    if any(name.startswith((leaks.PREFIX, leaks.CONTROL_PREFIX)) for name in names):
        return _leaks(options, marks)
    rows = [name for name in names if not name.startswith(CONTROL)]
    run = _rows(options, rows) if rows else None
    control = None
    if len(rows) < len(names):
        from sanitizer import planting

        control = planting.runner(options.backend, options.control)

    def either(name: str) -> str | None:
        found = control if name.startswith(CONTROL) else run
        assert found is not None
        return found(name)

    return either


def _leaks(options: argparse.Namespace, marks: Writer) -> Run:
    def note(name: str, text: str) -> None:
        marks.write("note", case=name, text=text)

    return _caught(leaks.runner(options.library, options.backend, note))


def _rows(options: argparse.Namespace, names: Sequence[str]) -> Run:
    """What runs a row of the table."""
    import grouped_attention
    from fixtures.cases import boundary
    from sanitizer.rows import Rows

    rows = Rows(
        extension=grouped_attention.load(options.library), own=options.own, untouched=options.untouched
    )
    specs = {spec.name: spec for spec in boundary.select(",".join(names))}
    return _caught(lambda name: rows.complaint(specs[name]))


def _caught(run: Run) -> Run:
    """The same, with what it raises as its complaint."""

    def caught(name: str) -> str | None:
        try:
            return run(name)
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    return caught


def _context_is_lost(backend: str) -> bool:
    if backend != "cuda":
        return False
    import torch

    try:
        torch.cuda.synchronize()
    except Exception:
        return True
    return False


def _leave(status: int) -> int:
    """Without a context, tearing down may hang."""
    sys.stdout.flush()
    os._exit(status)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m sanitizer.worker", description=__doc__)
    parser.add_argument("--backend", required=True)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--cases", type=Path, required=True, help="JSON list of names")
    parser.add_argument("--marks", type=Path, required=True)
    parser.add_argument("--control", type=Path, help="the control library or cubin, where the run has one")
    parser.add_argument("--own", action="store_true", help="refusals must be worded as the table says")
    parser.add_argument("--untouched", action="store_true", help="write no poison: for initcheck")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
