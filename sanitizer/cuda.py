"""Cases under compute-sanitizer, on a GPU."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from artifacts.places import PRODUCT, root
from evidence.record import Reason
from sanitizer import marks, planting, progress, xml_report
from sanitizer.batch import Attempt, Launch
from sanitizer.findings import Finding, merged
from sanitizer.host import FOUND, worker_command, worker_environment
from sanitizer.marks import Marks
from sanitizer.process import Ended, Limits, run
from sanitizer.tools import Tool
from sanitizer.worker import LOST_CONTEXT
from sanitizer.xml_report import Report, ReportError

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
NO_DEVICE = 255
WHOLE_LIMIT_S, QUIET_LIMIT_S = 1200.0, 120.0
PRINT_LIMIT = 1000
EXTRA = {
    "memcheck": ("--padding", "64", "--track-stream-ordered-races", "all"),
    "racecheck": ("--racecheck-report", "analysis"),
}
SOURCES = ("src", "include", "src/cuda")
UNTOUCHED = {"initcheck": ("--untouched",)}
# Memory out of a pool is never out of bounds for the tool: neither torch's, nor one that it is told to take.
CACHING_OFF = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
OTHER_POOLS = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
_SUMMARY = re.compile(r"ERROR SUMMARY: (\d+) errors?\b|RACECHECK SUMMARY: (\d+) hazards? displayed")
_NOTHING_SEEN = "terminated before first instrumented API call"


@dataclass(frozen=True, kw_only=True)
class Signs:
    """All that one run of the tool left."""

    ended: Ended
    marks: Marks
    log: str
    report: Report | None
    damage: str = ""


def launcher(tool: Tool, name: str, library: Path, control: Path, *flags: str) -> Launch:
    """What runs cases of a library under one tool in a process of its own; `flags` are the worker's."""
    env = {key: value for key, value in worker_environment().items() if key not in OTHER_POOLS}
    env |= CACHING_OFF

    def launch(names: tuple[str, ...], folder: Path) -> Attempt:
        worker = [*worker_command("cuda", library, control, folder), *flags, *UNTOUCHED.get(name, ())]
        command = [*arguments(tool, name, folder), *worker]
        watched = folder / "marks.jsonl"
        limits = Limits(
            whole_s=WHOLE_LIMIT_S,
            quiet_s=QUIET_LIMIT_S,
            watched=watched,
            grown=progress.meter(watched, len(names)),
        )
        ended = run(command, log=folder / "log.txt", limits=limits, env=env)
        return attempt(names, collect(ended, name, folder), name)

    return launch


def arguments(tool: Tool, name: str, folder: Path) -> list[str]:
    """The tool's own arguments; without an exit status of its own it always gives 0."""
    return [
        str(tool.path), "--tool", name, "--error-exitcode", str(FOUND), "--print-limit", str(PRINT_LIMIT),
        "--xml", "--save", str(folder / "report.xml"), "--log-file", str(folder / "tool.txt"),
        *EXTRA.get(name, ()),
    ]  # fmt: skip


def collect(ended: Ended, name: str, folder: Path) -> Signs:
    """Read what a run left in its folder."""
    log = folder / "tool.txt"
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    seen = marks.read(folder / "marks.jsonl")
    try:
        report = xml_report.read(folder / "report.xml", name)
    except ReportError as error:
        return Signs(ended=ended, marks=seen, log=text, report=None, damage=str(error))
    return Signs(ended=ended, marks=seen, log=text, report=report)


def attempt(names: tuple[str, ...], signs: Signs, tool: str) -> Attempt:
    """Findings with the case that each belongs to, and where the signs disagree."""
    found = signs.report.findings if signs.report else ()
    findings = merged(replace(one, case=_case(one, signs.marks, tool), file=_file(one.file)) for one in found)
    return Attempt(
        names=names, marks=signs.marks, findings=findings, problems=problems(signs), signs=_told(signs)
    )


def _file(name: str) -> str:
    """A source of the product by its path in the repository: line tables name it as #include does."""
    if name and not Path(name).is_file():
        for folder in SOURCES:
            if (root() / PRODUCT / folder / name.lstrip("/")).is_file():
                return f"{PRODUCT}/{folder}/{name.lstrip('/')}"
    return name


def problems(signs: Signs) -> tuple[Reason, ...]:
    """Everything that keeps a run from being believed."""
    ended, seen, report = signs.ended, signs.marks, signs.report
    if ended.status is None:
        return (Reason(code="time-limit", text=f"the tool {ended.text} in {seen.open or 'no case'}"),)
    if ended.status == NO_DEVICE:
        return (Reason(code="no-gpu", text=f"the tool found no device: {_last(signs)}"),)
    if seen.trouble is not None or not (seen.ended or seen.open):
        return (Reason(code="not-started", text=seen.trouble or f"no case began: {_last(signs)}"),)
    if report is None:
        return (Reason(code="no-report", text=signs.damage),)
    return tuple(Reason(code=code, text=text) for code, text in _disagreements(signs, report))


def errors_counted(log: str) -> int | None:
    """Errors of the last summary in the log; None without one."""
    found = _SUMMARY.findall(log)
    return None if not found else int(found[-1][0] or found[-1][1])


def _disagreements(signs: Signs, report: Report) -> list[tuple[str, str]]:
    status, counted = signs.ended.status, errors_counted(f"{signs.log}\n{signs.ended.output}")
    found: list[tuple[str, str]] = []
    if report.unknown:
        found.append(
            ("unknown-kind", f"records of kinds never seen: {', '.join(sorted(set(report.unknown)))}")
        )
    if _NOTHING_SEEN in signs.log + signs.ended.output:
        found.append(("not-instrumented", "the tool saw no CUDA call"))
    if counted is None:
        found.append(("no-summary", "the tool's log ends without a summary"))
    elif not report.placed <= counted <= report.count:
        found.append(("signs-disagree", f"the log counts {counted} errors, the XML holds {_size(report)}"))
    if report.count >= PRINT_LIMIT:
        found.append(("print-limit", f"{report.count} records: the tool may have left out more"))
    if report.following and not report.findings:
        found.append(("api-error", f"an API call failed and no record says why: {report.following[0]}"))
    if status not in ((0,) if report.empty else (FOUND, LOST_CONTEXT)):
        found.append(("signs-disagree", f"{signs.ended.text}, but the XML holds {_size(report)}"))
    if not signs.marks.finished and not (signs.marks.open and report.findings):
        found.append(("died-without-report", f"{signs.ended.text} in {signs.marks.open or 'no case'}"))
    return found


def _case(finding: Finding, seen: Marks, tool: str) -> str:
    """A planted kernel names its control; else the case that never ended, or the only one."""
    if finding.kernel.startswith(planting.PREFIX):
        return f"control:{finding.kernel.removeprefix(planting.PREFIX).split('(')[0]}"
    real = [name for name in seen.ended if not name.startswith("control:")]
    if seen.open and not seen.open.startswith("control:") and tool == "memcheck":
        return seen.open
    return real[0] if len(real) == 1 and seen.open is None else ""


def _size(report: Report) -> str:
    return f"{report.placed} records with a place of {report.count}"


def _told(signs: Signs) -> str:
    """All signs of one process in a line, for the record."""
    counted = errors_counted(f"{signs.log}\n{signs.ended.output}")
    xml = signs.damage if signs.report is None else _size(signs.report)
    ended = f"{len(signs.marks.ended)} cases ended, {signs.marks.open or 'none'} left open"
    return f"{signs.ended.text}; log: {counted} errors; XML: {xml}; {ended}"


def _last(signs: Signs) -> str:
    lines = [line for line in f"{signs.log}\n{signs.ended.output}".splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else signs.ended.text
