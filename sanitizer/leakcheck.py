"""Leaks: the cases of `sanitizer.leaks` in a process of its own, without a tool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from evidence.record import Reason
from sanitizer import leaks, marks, progress
from sanitizer.batch import Attempt, Launch
from sanitizer.findings import Finding
from sanitizer.growth import WORD
from sanitizer.host import worker_command, worker_environment
from sanitizer.marks import Marks
from sanitizer.process import Ended, Limits, run

TOOL = "leakcheck"
WHOLE_LIMIT_S, QUIET_LIMIT_S = 3600.0, 300.0


class SelectionError(ValueError):
    """No such case."""


def select(text: str, backend: str) -> tuple[str, ...]:
    """All cases for "core" and "all", else those named, with commas; SelectionError for an unknown one."""
    there = leaks.names(backend)
    if text in ("core", "all"):
        return there
    wanted = [f"{leaks.PREFIX}{name.removeprefix(leaks.PREFIX)}" for name in text.split(",") if name]
    unknown = [name for name in wanted if name not in there]
    if unknown or not wanted:
        known = ", ".join(name.removeprefix(leaks.PREFIX) for name in there)
        raise SelectionError(f"{TOOL} has no case {', '.join(unknown) or text}: give all, or some of {known}")
    return tuple(dict.fromkeys(wanted))


def launcher(backend: str, library: Path, extra: Mapping[str, str]) -> Launch:
    """What measures cases of a library in a process of its own, with these further variables."""
    env = {**worker_environment(), **extra}

    def launch(names: tuple[str, ...], folder: Path) -> Attempt:
        watched = folder / "marks.jsonl"
        limits = Limits(
            whole_s=WHOLE_LIMIT_S,
            quiet_s=QUIET_LIMIT_S,
            watched=watched,
            grown=progress.meter(watched, len(names)),
        )
        command = worker_command(backend, library, None, folder)
        return attempt(
            names, run(command, log=folder / "log.txt", limits=limits, env=env), marks.read(watched)
        )

    return launch


def attempt(names: tuple[str, ...], ended: Ended, seen: Marks) -> Attempt:
    """Complaints of memory that was kept are findings; all others stay complaints."""
    kept = {name: text for name, text in seen.ended.items() if text is not None and text.startswith(WORD)}
    findings = tuple(Finding(tool=TOOL, kind="leak", text=text, case=name) for name, text in kept.items())
    rest = {name: None if name in kept else text for name, text in seen.ended.items()}
    signs = "; ".join((ended.text, *(f"{name}: {text}" for name, text in seen.notes.items())))
    return Attempt(
        names=names,
        marks=replace(seen, ended=rest),
        findings=findings,
        problems=_problems(ended, seen),
        signs=signs,
    )


def _problems(ended: Ended, seen: Marks) -> tuple[Reason, ...]:
    if seen.trouble is not None:
        return (Reason(code="not-started", text=seen.trouble),)
    if ended.status is None:
        return (Reason(code="time-limit", text=f"the process {ended.text} in {seen.open or 'no case'}"),)
    if ended.status == 0 and seen.finished:
        return ()
    text = f"{ended.text} in {seen.open or 'no case'}, finished: {seen.finished}"
    return (Reason(code="signs-disagree", text=text),)
