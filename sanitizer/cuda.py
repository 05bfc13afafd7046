"""Cases under compute-sanitizer, on a GPU."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from artifacts.places import PRODUCT, root
from sanitizer import agreement, marks, planting, progress, xml_report
from sanitizer.agreement import PRINT_LIMIT, Signs
from sanitizer.batch import Attempt, Launch
from sanitizer.findings import Finding, merged
from sanitizer.host import FOUND, worker_command, worker_environment
from sanitizer.marks import Marks
from sanitizer.process import Ended, Limits, run
from sanitizer.tools import Tool
from sanitizer.xml_report import ReportError

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
WHOLE_LIMIT_S, QUIET_LIMIT_S = 1200.0, 120.0
EXTRA = {
    "memcheck": ("--padding", "64", "--track-stream-ordered-races", "all"),
    "racecheck": ("--racecheck-report", "analysis"),
}
SOURCES = ("src", "include", "src/cuda")
UNTOUCHED = {"initcheck": ("--untouched",)}
# Memory out of a pool is never out of bounds for the tool: neither torch's, nor one that it is told to take.
CACHING_OFF = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
OTHER_POOLS = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")


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
        return Signs(tool=name, ended=ended, marks=seen, log=text, report=None, damage=str(error))
    return Signs(tool=name, ended=ended, marks=seen, log=text, report=report)


def attempt(names: tuple[str, ...], signs: Signs, tool: str) -> Attempt:
    """Findings with the case that each belongs to, and where the signs disagree."""
    found = signs.report.findings if signs.report else ()
    findings = merged(replace(one, case=_case(one, signs.marks, tool), file=_file(one.file)) for one in found)
    return Attempt(
        names=names,
        marks=signs.marks,
        findings=findings,
        problems=agreement.problems(signs, {finding.case for finding in findings}),
        signs=agreement.told(signs),
    )


def _file(name: str) -> str:
    """A source of the product by its path in the repository: line tables name it as #include does."""
    if name and not Path(name).is_file():
        for folder in SOURCES:
            if (root() / PRODUCT / folder / name.lstrip("/")).is_file():
                return f"{PRODUCT}/{folder}/{name.lstrip('/')}"
    return name


def _case(finding: Finding, seen: Marks, tool: str) -> str:
    """The planted kernel's own name is its control's; else the case that never ended, or the only one."""
    if finding.kernel.split("(")[0] == planting.PREFIX + tool:
        return f"control:{tool}"
    real = [name for name in seen.ended if not name.startswith("control:")]
    if seen.open and not seen.open.startswith("control:") and tool in agreement.LOSING:
        return seen.open
    return real[0] if len(real) == 1 and seen.open is None else ""
