"""What the signs of one run under compute-sanitizer must agree on before it is believed: one table.

Four signs: the exit status, the marks, the XML and the tool's log. What they tell must be one story.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from evidence.record import Reason
from sanitizer.host import FOUND
from sanitizer.marks import Marks
from sanitizer.process import Ended
from sanitizer.worker import LOST_CONTEXT
from sanitizer.xml_report import Report

NO_DEVICE = 255
PRINT_LIMIT = 1000
LOSING = ("memcheck", "synccheck")  # their findings cost the context, and the case stays open
RACES = "racecheck"
_SUMMARIES = {
    False: re.compile(r"ERROR SUMMARY: (\d+) errors?\b"),
    True: re.compile(r"RACECHECK SUMMARY: (\d+) hazards? displayed"),
}
_NOTHING_SEEN = "terminated before first instrumented API call"
_OWN_ERROR = re.compile(r"^=+\s*((?:Internal|Fatal|Error)\b.*)$|(Internal Sanitizer Error.*)$", re.M)
# A race's report in words; and what is said of a worker that left because its context was gone.
_REPORTED = ("Error: Race reported",)
_LEFT = ("Error: process didn't terminate successfully",)


@dataclass(frozen=True, kw_only=True)
class Signs:
    """All that one run of the tool left."""

    tool: str
    ended: Ended
    marks: Marks
    log: str
    report: Report | None
    damage: str = ""

    @property
    def text(self) -> str:
        """Log and output."""
        return f"{self.log}\n{self.ended.output}"


@dataclass(frozen=True, kw_only=True)
class Ending:
    """One way for a process to end. `found`: the XML holds records. `lost`: the context went with a case,
    which is left open and has a record of its own.
    """

    statuses: tuple[int, ...]
    found: bool
    lost: bool = False
    tools: tuple[str, ...] = ("memcheck", "racecheck", "initcheck", "synccheck")
    excused: tuple[str, ...] = ()  # the tools under which API errors follow of themselves


ENDINGS = (
    Ending(statuses=(0,), found=False),
    Ending(statuses=(FOUND,), found=True),
    Ending(statuses=(FOUND, LOST_CONTEXT), found=True, lost=True, tools=LOSING, excused=("memcheck",)),
)


@dataclass(frozen=True, kw_only=True)
class _Run:
    """The signs, with the cases that findings belong to and the ending that fits, if one does."""

    signs: Signs
    report: Report
    cases: Collection[str]

    @property
    def ending(self) -> Ending | None:
        seen, status = self.signs.marks, self.signs.ended.status
        lost = not seen.finished and seen.open in self.cases
        if not (seen.finished or lost):
            return None
        fitting = (
            one
            for one in ENDINGS
            if (one.lost, one.found) == (lost, not self.report.empty)
            and status in one.statuses
            and self.signs.tool in one.tools
        )
        return next(fitting, None)


def problems(signs: Signs, cases: Collection[str]) -> tuple[Reason, ...]:
    """Everything that keeps a run from being believed; `cases` are those that its findings belong to."""
    ended, seen, report = signs.ended, signs.marks, signs.report
    if ended.status is None:
        return (Reason(code="time-limit", text=f"the tool {ended.text} in {seen.open or 'no case'}"),)
    if ended.status == NO_DEVICE:
        return (Reason(code="no-gpu", text=f"the tool found no device: {_last(signs)}"),)
    if seen.trouble is not None or not (seen.ended or seen.open):
        return (Reason(code="not-started", text=seen.trouble or f"no case began: {_last(signs)}"),)
    if report is None:
        return (Reason(code="no-report", text=signs.damage),)
    run = _Run(signs=signs, report=report, cases=cases)
    return tuple(Reason(code=code, text=text) for code, rule in RULES for text in rule(run))


def errors_counted(log: str, tool: str) -> int | None:
    """Errors of the last summary of the tool in the log; None without one."""
    found = _SUMMARIES[tool == RACES].findall(log)
    return int(found[-1]) if found else None


def told(signs: Signs) -> str:
    """All signs of one process in a line, for the record."""
    counted = errors_counted(signs.text, signs.tool)
    xml = signs.damage if signs.report is None else _size(signs.report)
    ended = f"{len(signs.marks.ended)} cases ended, {signs.marks.open or 'none'} left open"
    return f"{signs.ended.text}; log: {counted} errors; XML: {xml}; {ended}"


def _kinds(run: _Run) -> Iterator[str]:
    if run.report.unknown:
        yield f"records of kinds never seen: {', '.join(sorted(set(run.report.unknown)))}"


def _blind(run: _Run) -> Iterator[str]:
    if _NOTHING_SEEN in run.signs.text:
        yield "the tool saw no CUDA call"


def _own_errors(run: _Run) -> Iterator[str]:
    """The tool's own troubles: a count after them may be of what it still saw."""
    known: tuple[str, ...] = _REPORTED if run.signs.tool == RACES else ()
    known += _LEFT if run.ending is not None and run.ending.lost else ()
    for whole, part in _OWN_ERROR.findall(run.signs.text):
        text = (whole or part).strip()
        if not text.startswith(known) and _NOTHING_SEEN not in text:
            yield f"the tool says: {text[:200]}"
            return


def _silence(run: _Run) -> Iterator[str]:
    if errors_counted(run.signs.text, run.signs.tool) is None:
        yield f"the log ends without a summary of {run.signs.tool}"


def _foreign_summary(run: _Run) -> Iterator[str]:
    if _SUMMARIES[run.signs.tool != RACES].search(run.signs.text):
        yield f"the log holds a summary that isn't of {run.signs.tool}"


def _count(run: _Run) -> Iterator[str]:
    counted, report = errors_counted(run.signs.text, run.signs.tool), run.report
    if counted is not None and not report.count - report.uncounted <= counted <= report.count:
        yield f"the log counts {counted} errors, the XML holds {_size(report)}"


def _limit(run: _Run) -> Iterator[str]:
    if run.report.count >= PRINT_LIMIT:
        yield f"{run.report.count} records: the tool may have left out more"


def _calls(run: _Run) -> Iterator[str]:
    """An API error is excused only after the fault that cost the context, in the case that it ended."""
    report, ending = run.report, run.ending
    excused = ending is not None and run.signs.tool in ending.excused and not report.leading
    if report.following and not excused:
        yield f"an API call failed and no record says why: {report.following[0]}"


def _unborn(run: _Run) -> Iterator[str]:
    began = {*run.signs.marks.ended, run.signs.marks.open}
    for case in sorted({case for case in run.cases if case} - began):
        yield f"a record of {case}, which never began"


def _end(run: _Run) -> Iterator[str]:
    seen = run.signs.marks
    if run.ending is None and (seen.finished or seen.open in run.cases):
        where = f"{seen.open} is left open" if seen.open else "all cases ended"
        yield f"{run.signs.ended.text}, but the XML holds {_size(run.report)}, and {where}"


def _death(run: _Run) -> Iterator[str]:
    seen = run.signs.marks
    if not seen.finished and seen.open not in run.cases:
        yield f"{run.signs.ended.text} in {seen.open or 'no case'}"


RULES: tuple[tuple[str, Callable[[_Run], Iterator[str]]], ...] = (
    ("unknown-kind", _kinds),
    ("not-instrumented", _blind),
    ("tool-error", _own_errors),
    ("no-summary", _silence),
    ("signs-disagree", _foreign_summary),
    ("signs-disagree", _count),
    ("print-limit", _limit),
    ("api-error", _calls),
    ("signs-disagree", _unborn),
    ("signs-disagree", _end),
    ("died-without-report", _death),
)


def _size(report: Report) -> str:
    return f"{report.placed} records with a place of {report.count}"


def _last(signs: Signs) -> str:
    lines = [line for line in signs.text.splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else signs.ended.text
