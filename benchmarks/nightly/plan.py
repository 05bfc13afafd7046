"""What a night consists of, from what was built and which GPUs are here. Runs nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HOST_ARCHITECTURES = ("sm_70", "sm_90")
MEMORY_TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck", "leakcheck")
FUZZ_MINUTES = 5.0
HOUR_S = 3600
FAULTS_TIMEOUT_S = 6 * HOUR_S  # a hundred kernels are built
HOST, GPU = "host", "gpu"


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One GPU by its index, and the architecture whose library it runs."""

    index: int
    arch: str


@dataclass(frozen=True, kw_only=True)
class Built:
    """Artifact folders of one side by (backend, architecture), and the JSON that lists them."""

    listing: Path
    folders: dict[tuple[str, str], str]


@dataclass(frozen=True, kw_only=True)
class Night:
    """What a plan is made for. `revision`: the commit of the candidate where there is git, else None.

    `faults`: kernels with planted faults that were built elsewhere, for a GPU machine without compilers.
    `control`: the memory tools' planted kernels, built elsewhere too. `fuzz`: minutes of it on each backend.
    """

    candidate: Built
    base: Built
    gpus: tuple[Gpu, ...]
    folder: Path
    revision: str | None
    results: Path | None
    budget: str
    faults: Path | None = None
    control: Path | None = None
    fuzz: float = FUZZ_MINUTES

    @property
    def fuzzed(self) -> tuple[str, ...]:
        """Options of `regression fuzz`."""
        return ("--minutes", f"{self.fuzz:g}")


@dataclass(frozen=True, kw_only=True)
class Step:
    """One command, `python -m …`. `scope` says whether it is of a GPU; `gpu` which one it may see.

    `verdict`: its last line must be one. A step that only files things away ends well with exit status 0.
    `control`: what it finds of the base is for the verdict over all records; alone it rejects nothing.
    """

    name: str
    arguments: tuple[str, ...]
    scope: str = HOST
    gpu: int | None = None
    timeout_s: int = 2 * HOUR_S
    verdict: bool = True
    control: bool = False


@dataclass(frozen=True, kw_only=True)
class Missing:
    """A step that this machine or these artifacts can't have, and why. `is_gap`: it should be there."""

    name: str
    why: str
    is_gap: bool


def steps(night: Night) -> tuple[list[Step], list[Missing]]:
    """All steps in order, and what is not run."""
    found: list[Step | Missing] = [*_host(night), *_gpus(night), *_end(night)]
    return [x for x in found if isinstance(x, Step)], [x for x in found if isinstance(x, Missing)]


def _host(night: Night) -> Iterator[Step | Missing]:
    """The CPU twin's bits and memory, static costs, and CUDA code on an emulated GPU."""
    for arch in HOST_ARCHITECTURES:
        folder = night.candidate.folders.get(("host", arch))
        if folder is None:
            yield Missing(name=f"replay host {arch}", why=f"no library for host {arch}", is_gap=True)
            continue
        chosen = ("--artifact", folder)
        yield Step(name=f"replay host {arch}", arguments=("regression", "replay", *chosen, "--groups", "all"))
        yield Step(
            name=f"contract host {arch}", arguments=("regression", "contract", *chosen, "--cases", "all")
        )
        base = night.base.folders.get(("host", arch))
        if base is not None and base != folder:
            yield _control(arch, base)
        memory = ("sanitizer", "memcheck", "--backend", "host", "--artifact", folder)
        yield Step(name=f"memcheck host {arch}", arguments=memory)
        if arch == HOST_ARCHITECTURES[0]:
            yield Step(name=f"fuzz host {arch}", arguments=("regression", "fuzz", *chosen, *night.fuzzed))
            yield _host_faults(night, arch)
    for (backend, arch), folder in night.candidate.folders.items():
        if backend == "cuda":
            base = night.base.folders.get((backend, arch))
            against = ("--base", base) if base else ()
            yield Step(
                name=f"static cuda {arch}",
                arguments=("benchmarks", "static", "--artifact", folder, *against),
            )
            if not night.gpus:  # a machine with one may have no compiler, and runs the code itself
                emulated = ("regression", "emulate", "--artifact", folder, "--cases", "all")
                yield Step(name=f"emulate cuda {arch}", arguments=emulated)


def _host_faults(night: Night, arch: str) -> Step | Missing:
    name = f"faults host {arch}"
    if night.faults is not None:
        why = "faulty kernels were built elsewhere, for the GPU: the host's run where compilers are"
        return Missing(name=name, why=why, is_gap=False)
    return _faults(("--backend", "host", "--arch", arch), name, HOST, None)


def _faults(target: tuple[str, ...], name: str, scope: str, gpu: int | None) -> Step:
    command = ("regression", "faults", *target)
    return Step(name=name, arguments=command, scope=scope, gpu=gpu, timeout_s=FAULTS_TIMEOUT_S)


def _control(arch: str, base: str) -> Step:
    command = ("regression", "replay", "--artifact", base, "--groups", "core")
    return Step(name=f"replay base host {arch}", arguments=command, control=True)


def _gpus(night: Night) -> Iterator[Step | Missing]:
    if not night.gpus:
        why = "there is no GPU"
        names = (
            "replay cuda",
            "contract cuda",
            *(f"{tool} cuda" for tool in MEMORY_TOOLS),
            "fuzz cuda",
            "faults cuda",
            "latency",
            "abba",
        )
        yield from (Missing(name=name, why=why, is_gap=False) for name in names)
    for gpu in night.gpus:
        yield from _on(gpu, night)


def _on(gpu: Gpu, night: Night) -> Iterator[Step | Missing]:
    """One GPU's steps; its own library is all that can be run on it."""
    where = f"gpu{gpu.index} {gpu.arch}"
    folder = night.candidate.folders.get(("cuda", gpu.arch))
    if folder is None:
        yield Missing(name=where, why=f"no library for cuda {gpu.arch}", is_gap=True)
        return
    chosen = ("--artifact", folder)
    planted = ("--control", str(night.control)) if night.control else ()
    commands = {
        "replay": ("regression", "replay", *chosen, "--groups", "all"),
        "contract": ("regression", "contract", *chosen, "--cases", "all"),
        **{tool: ("sanitizer", tool, *chosen, *planted) for tool in MEMORY_TOOLS},
        "fuzz": ("regression", "fuzz", *chosen, *night.fuzzed),
        "latency": ("benchmarks", "latency", *chosen),
    }
    for name, arguments in commands.items():
        yield Step(name=f"{name} {where}", arguments=arguments, scope=GPU, gpu=gpu.index)
    built = ("--built", str(night.faults)) if night.faults else ()
    target = ("--backend", "cuda", "--arch", gpu.arch, *built)
    yield _faults(target, f"faults {where}", GPU, gpu.index)
    yield _abba(gpu, night, folder, where)
    yield _history(night, f"history {where}", gpu.index)


def _abba(gpu: Gpu, night: Night, folder: str, where: str) -> Step | Missing:
    base = night.base.folders.get(("cuda", gpu.arch))
    if base is None:
        return Missing(name=f"abba {where}", why=f"the base has no library for cuda {gpu.arch}", is_gap=True)
    sides = ("--base", base, "--candidate", folder, "--budget", night.budget)
    return Step(name=f"abba {where}", arguments=("benchmarks", "abba", *sides), scope=GPU, gpu=gpu.index)


def _history(night: Night, name: str, gpu: int | None) -> Step:
    if night.revision is not None:
        which: tuple[str, ...] = ("--rev", night.revision)
    else:
        which = ("--artifact", str(night.candidate.listing.parent / "artifacts"))
    results = ("--results", str(night.results)) if night.results else ()
    scope = HOST if gpu is None else GPU
    return Step(name=name, arguments=("benchmarks", "history", *which, *results), scope=scope, gpu=gpu)


def _end(night: Night) -> Iterator[Step | Missing]:
    """History, pages, the verdict over all records, the report and the pack."""
    if not night.gpus:
        yield _history(night, "history", None)
    results = ("--results", str(night.results)) if night.results else ()
    if night.revision is not None:
        yield Step(name="dashboard", arguments=("benchmarks", "dashboard", *results))
    else:
        yield Missing(
            name="dashboard",
            why="the candidate is of no commit here: take the results elsewhere",
            is_gap=False,
        )
    sides = ("--candidate", str(night.candidate.listing), "--base", str(night.base.listing))
    yield Step(name="verdict", arguments=("evidence", "verdict", *sides))
    report = ("evidence", "report", "--markdown", str(night.folder / "report.md"))
    yield Step(name="report", arguments=report, verdict=False)
    run = ("--run", night.folder.name)
    yield Step(
        name="pack", arguments=("evidence", "pack", str(night.folder / "records.zip"), *run), verdict=False
    )


def names(found: Sequence[Missing]) -> str:
    """What is not run, with each reason once."""
    reasons = dict.fromkeys(one.why for one in found)
    return "; ".join(f"{', '.join(m.name for m in found if m.why == why)}: {why}" for why in reasons)
