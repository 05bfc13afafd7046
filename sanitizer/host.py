"""Cases under AddressSanitizer and UndefinedBehaviorSanitizer, on a CPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from artifacts.places import PRODUCT, root
from evidence.record import Reason
from grouped_attention import toolchain
from sanitizer import asan, marks, progress
from sanitizer.batch import Attempt, Launch
from sanitizer.findings import Finding, merged
from sanitizer.marks import Marks
from sanitizer.process import Ended, Limits, run

FOUND = 99
WHOLE_LIMIT_S, QUIET_LIMIT_S = 1200.0, 120.0
# Fresh memory is full of 0xFF: a NaN of every type of float here, which shows in an output.
FILLED = f"malloc_fill_byte=255:max_malloc_fill_size={1 << 28}"
# A crash is a finding with a place, whoever else in the process would like to handle it.
HANDLED = ":".join(f"handle_{signal}=2" for signal in ("segv", "sigbus", "sigfpe", "sigill"))
OPTIONS = {
    "ASAN_OPTIONS": f"detect_leaks=0:halt_on_error=1:exitcode={FOUND}:{FILLED}:{HANDLED}",
    "UBSAN_OPTIONS": f"print_stacktrace=1:halt_on_error=1:exitcode={FOUND}",
    "PYTHONMALLOC": "malloc",
}


def launcher(library: Path, control: Path, *flags: str) -> Launch:
    """What runs cases of an instrumented library in a process of its own; `flags` are the worker's."""
    env = {**worker_environment(), **environment()}

    def launch(names: tuple[str, ...], folder: Path) -> Attempt:
        command = [*worker_command("host", library, control, folder), *flags]
        watched = folder / "marks.jsonl"
        limits = Limits(
            whole_s=WHOLE_LIMIT_S,
            quiet_s=QUIET_LIMIT_S,
            watched=watched,
            grown=progress.meter(watched, len(names)),
        )
        ended = run(command, log=folder / "log.txt", limits=limits, env=env)
        seen = marks.read(watched)
        findings = merged(one.of(seen.open or "") for one in asan.parse(ended.output))
        problems = _problems(ended, seen, findings)
        signs = f"{ended.text}, {len(findings)} findings, {len(seen.ended)} cases ended"
        return Attempt(names=names, marks=seen, findings=findings, problems=problems, signs=signs)

    return launch


def environment() -> dict[str, str]:
    """What an instrumented library needs to be loaded, and to end the process at the first fault."""
    return {**OPTIONS, "LD_PRELOAD": _runtimes()}


def worker_environment() -> dict[str, str]:
    """The caller's environment, with this checkout importable."""
    folders = [str(root()), str(root() / PRODUCT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))}


def worker_command(backend: str, library: Path, control: Path | None, folder: Path) -> list[str]:
    """The argument list of a worker that reads and writes in the folder."""
    files = {
        "--library": library,
        "--cases": folder / "cases.json",
        "--marks": folder / "marks.jsonl",
        **({} if control is None else {"--control": control}),
    }
    pairs = [text for name, path in files.items() for text in (name, str(path))]
    return [sys.executable, "-m", "sanitizer.worker", "--backend", backend, *pairs]


def _problems(ended: Ended, seen: Marks, findings: tuple[Finding, ...]) -> tuple[Reason, ...]:
    """Where exit status, report and marks disagree."""
    where = f"in {seen.open}" if seen.open else f"after {len(seen.ended)} cases"
    if seen.trouble is not None:
        return (Reason(code="not-started", text=seen.trouble),)
    if ended.status is None:
        return (Reason(code="time-limit", text=f"the process {ended.text} {where}"),)
    agreed = {
        0: seen.finished and not findings,
        FOUND: seen.open is not None and bool(findings),
    }
    if agreed.get(ended.status, False):
        return ()
    text = f"{ended.text} {where}, {len(findings)} findings, finished: {seen.finished}"
    return (Reason(code="signs-disagree", text=text),)


def _runtimes() -> str:
    """The compiler's own sanitizer runtime first, and the C++ library whose exceptions it intercepts."""
    compiler = str(toolchain.find().cxx)
    return " ".join(_file_of(compiler, name) for name in ("libasan.so", "libstdc++.so"))


def _file_of(compiler: str, name: str) -> str:
    done = subprocess.run(
        [compiler, f"-print-file-name={name}"], capture_output=True, text=True, timeout=60, check=False
    )
    path = Path(done.stdout.strip())
    if done.returncode != 0 or not path.is_absolute():
        raise toolchain.ToolError(f"{compiler} has no {name}: install its sanitizer runtime")
    return str(path)
