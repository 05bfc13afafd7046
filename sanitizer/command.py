"""What `python -m sanitizer TOOL` does, from options to a judgement and a record."""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from evidence import ending, machine, places, record, store
from evidence.record import Reason
from fixtures.cases import boundary
from fixtures.errors import FixtureError
from grouped_attention.toolchain import ToolError as CompilerError
from sanitizer import controls, cuda, host, judge, leakcheck, leaks, outputs, subject, suppressions, tools
from sanitizer.batch import Batch, Launch
from sanitizer.growth import CALLS, FEWEST_ROUNDS
from sanitizer.judge import Judgement
from sanitizer.planting import ControlError
from sanitizer.subject import Checked, SubjectError
from sanitizer.suppressions import SuppressionError

DEFAULT_HOST_ARCH = "sm_70"
ON_HOST = ("memcheck", leakcheck.TOOL)
FOR_GPUS = "is a tool for GPUs: on a CPU (--backend host) there are memcheck and leakcheck"


def run(options: argparse.Namespace) -> Judgement:
    """Choose cases and binary, run the cases under the tool, keep a record, say what came out."""
    try:
        entries = suppressions.read(options.suppressions)
        chosen = _completed(options)
        complaint = _impossible(options.tool, chosen.backend)
        if complaint is not None:
            return complaint
        names = _names(options, chosen.backend or "host")
        checked = subject.resolve(chosen, twin=options.tool == "memcheck")
        backend = checked.subject.backend
        names = _names(options, backend, own=is_own(checked))
        return _impossible(options.tool, backend) or _measure(options, checked, names, entries)
    except (SuppressionError, FixtureError, leakcheck.SelectionError) as error:
        return judge.usage(str(error))
    except (SubjectError, tools.ToolError) as error:
        return judge.unknown(error.code, str(error))
    except (ControlError, CompilerError) as error:
        return judge.unknown("no-control", str(error))


def is_own(checked: Checked) -> bool:
    """Whether this project built the binary."""
    return checked.subject.code_digest is not None


def _names(options: argparse.Namespace, backend: str, *, own: bool = True) -> tuple[str, ...]:
    """The cases of the tool on a backend; those that this kernel alone must refuse are not for others."""
    if options.tool == leakcheck.TOOL:
        return leakcheck.select(options.cases, backend)
    return tuple(
        spec.name
        for spec in boundary.select(options.cases)
        if backend in spec.backends and (own or spec.refusal is None or spec.refusal.by_all)
    )


def _completed(options: argparse.Namespace) -> argparse.Namespace:
    """The options with a backend and an architecture, unless a path says what it is."""
    if options.artifact or options.library:
        return options
    gpu = bool(machine.gpus_seen()[0])
    backend = options.backend or ("cuda" if gpu or options.tool not in ON_HOST else "host")
    if options.backend is None and backend == "host":
        print("no GPU here: the CPU backend is checked")
    arch = options.arch or (_gpu_arch() if backend == "cuda" and gpu else DEFAULT_HOST_ARCH)
    return argparse.Namespace(**{**vars(options), "backend": backend, "arch": arch})


def _impossible(tool: str, backend: str | None) -> Judgement | None:
    """Why the tool can't run on the backend here."""
    if backend == "host" and tool not in ON_HOST:
        return judge.usage(f"{tool} {FOR_GPUS}")
    if backend == "cuda" and not machine.gpus_seen()[0]:
        return judge.unknown(
            "no-gpu", f"{tool} of a cuda library needs a GPU, and nvidia-smi lists none here"
        )
    return None


def _gpu_arch() -> str:
    capability = machine.gpus_seen()[0][0]["compute_capability"]
    return f"sm_{capability.replace('.', '')}"


def _measure(
    options: argparse.Namespace,
    checked: Checked,
    names: tuple[str, ...],
    entries: tuple[suppressions.Suppression, ...],
) -> Judgement:
    started, tick = datetime.now(UTC), time.perf_counter()
    folder = Path(tempfile.mkdtemp(prefix=f"{options.tool}-", dir=_runs()))
    launch, with_what, planted = _launch(options, checked, folder)
    scope = f"{_named(checked)} under {with_what}"
    print(f"{scope}: {len(names)} cases", flush=True)
    batch = Batch(launch=launch, folder=folder / "runs", most_faults=options.most_faults)
    attempts = batch.play((*names, *planted))
    found = judge.judge(names, planted, attempts, entries, scope=scope)
    _keep(options, checked, names, found, started, time.perf_counter() - tick)
    claimed = _claimed(found, checked.dirty)
    _report(options, names, claimed, folder)
    return claimed


def _launch(
    options: argparse.Namespace, checked: Checked, folder: Path
) -> tuple[Launch, str, tuple[str, ...]]:
    """What runs cases, its name, and the controls that it must find."""
    arch, backend = checked.subject.arch, checked.subject.backend
    if options.tool == leakcheck.TOOL:
        return _leak_launch(checked, folder)
    planted = controls.names(backend, options.tool)
    if backend == "host":
        library = subject.copy(checked.library, folder)
        launch = host.launcher(library, controls.build_host(folder), *_own(checked))
        return launch, subject.checks(checked.library), planted
    tool = tools.find(arch)
    control = options.control or controls.carried(options.artifact, arch) or controls.build_cuda(folder, arch)
    launch = cuda.launcher(tool, options.tool, checked.library, control, *_own(checked))
    return launch, f"{tool.text} {options.tool}", planted


def _named(checked: Checked) -> str:
    """A library of somebody else's is its hash."""
    if is_own(checked):
        return checked.subject.label
    return f"{checked.subject.label} (a foreign library, SHA-256 {checked.subject.sha256[:12]}…)"


def _own(checked: Checked) -> tuple[str, ...]:
    """The worker's flag for a library that this project built: others may refuse in their own words."""
    return ("--own",) if is_own(checked) else ()


def _leak_launch(checked: Checked, folder: Path) -> tuple[Launch, str, tuple[str, ...]]:
    backend = checked.subject.backend
    with_runtime = backend == "host" and subject.needs_runtime(checked.library)
    library = subject.copy(checked.library, folder) if with_runtime else checked.library
    extra = host.environment() if with_runtime else cuda.CACHING_OFF
    launch = leakcheck.launcher(backend, library, extra)
    return (
        launch,
        f"{leakcheck.TOOL}, at least {FEWEST_ROUNDS * CALLS} calls each",
        leaks.controls(backend, with_runtime),
    )


def _keep(
    options: argparse.Namespace,
    checked: Checked,
    names: tuple[str, ...],
    found: Judgement,
    started: datetime,
    duration_s: float,
) -> None:
    running = {"sha256": checked.running.sha256, "code_digest": checked.running.code_digest}
    made = record.make(
        kind=options.tool,
        artifact=checked.subject,
        inputs=places.inputs_hash(),
        selection={"cases": options.cases},
        # What edits leave undecided has passed: the verdict asks for edits itself.
        outcome=ending.OUTCOMES[found.word],
        reasons=found.reasons,
        results={**outputs.as_json(found, names), "ran": running},
        started_at=started,
        duration_s=duration_s,
    )
    print(f"record: {store.append(made)}")


def _report(options: argparse.Namespace, names: tuple[str, ...], found: Judgement, folder: Path) -> None:
    if found.findings:
        print(outputs.table(found.findings))
    for name, text in found.complaints:
        print(f"{name}: {text}")
    ending.write(options.json, outputs.document(found, names))
    if options.junit is not None:
        outputs.write_junit(options.junit, options.tool, names, found)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        print("\n".join(outputs.github(found)))
    if found.word == "admitted":
        shutil.rmtree(folder)  # a failed run's logs are kept
    else:
        print(f"logs: {folder}")


def _claimed(found: Judgement, dirty: tuple[str, ...]) -> Judgement:
    """A dirty tree can be measured, never admitted."""
    if found.word != "admitted" or not dirty:
        return found
    text = f"{found.reasons[0].text}, but {dirty[0]} differs from the commit: commit, and run again"
    return replace(found, word="undecided", reasons=(Reason(code="dirty-tree", text=text),))


def _runs() -> Path:
    folder = places.home() / "sanitizer"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
