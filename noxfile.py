"""Sessions of kernelgate. `nox -l` lists them; each is a thin wrapper over `python -m PACKAGE VERB`.

All sessions share one environment, `.venv`, filled group by group from pyproject.toml with the pins of
constraints.txt. With `nox --no-venv` nothing is installed and the running Python is used instead.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
import time
from pathlib import Path

import nox

nox.options.sessions = ["premerge"]
nox.options.error_on_missing_interpreters = True

ROOT = Path(__file__).parent
VENV = ROOT / ".venv"
NO_VENV = "--no-venv" in sys.argv or os.environ.get("NOX_FORCE_VENV_BACKEND") == "none"
HOME = Path(os.environ.get("KERNELGATE_HOME") or ROOT / ".kernelgate").absolute()
STEP_LIMIT_S = "1800"  # of a premerge: a kernel that hangs is ended, and said
JUDGED = (0, 1, 3, 4, 5)  # a failing step leaves its record or its absence; the verdict at the end says so
OWN_PATH = os.environ.get("PYTHONPATH") if NO_VENV else None  # where such a machine keeps its packages
ENV = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "kernels"), *filter(None, [OWN_PATH])])}
CXX = ("*.h", "*.cc", "*.cu", "*.cuh")
PACKAGES = ["kernels", "fixtures", "artifacts", "evidence", "benchmarks", "regression", "sanitizer", "tests"]


def python(session: nox.Session, *groups: str) -> str:
    """Return the Python of the shared environment, with these dependency groups installed in it."""
    if NO_VENV:
        return sys.executable
    interpreter = VENV / "bin" / "python"
    if not interpreter.exists():
        session.run(sys.executable, "-m", "venv", str(VENV), external=True)
    for group in groups:
        _install(session, interpreter, group)
    _link()
    return str(interpreter)


def _install(session: nox.Session, interpreter: Path, group: str) -> None:
    """Install one dependency group unless the stamp says that exactly these requirements are in already."""
    wanted = nox.project.dependency_groups(nox.project.load_toml(ROOT / "pyproject.toml"), group)
    constraints = ROOT / "constraints.txt"
    digest = hashlib.sha256(("\n".join(wanted) + constraints.read_text()).encode()).hexdigest()
    stamp = VENV / f".installed-{group}"
    if stamp.exists() and stamp.read_text() == digest:
        return
    pip = [str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    session.run(*pip, "--constraint", str(constraints), *wanted, external=True)
    stamp.write_text(digest)


def _link() -> None:
    """Make the packages importable, so that the commands that sessions name work as they are."""
    (site,) = (VENV / "lib").glob("python3*/site-packages")
    (site / "kernelgate.pth").write_text(f"{ROOT}\n{ROOT / 'kernels'}\n")


def module(
    session: nox.Session, interpreter: str, *args: str, codes: tuple[int, ...] = (0,), run_id: str = ""
) -> None:
    """Run `python -m ARGS` in the checkout; exit codes outside `codes` end the session."""
    env = ENV | ({"KERNELGATE_RUN": run_id, "KERNELGATE_LIMIT_S": STEP_LIMIT_S} if run_id else {})
    session.run(interpreter, "-m", *args, env=env, external=True, success_codes=list(codes))


@nox.session(venv_backend="none")
def premerge(session: nox.Session) -> None:
    """Build candidate and base, replay both, check memory, costs and GPU time, judge: `-- [--base SPEC]`."""
    interpreter = python(session, "run")
    run_id = f"premerge-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}"
    folder = HOME / "runs" / run_id
    folder.mkdir(parents=True)
    sides = {side: folder / f"{side}.json" for side in ("candidate", "base")}
    step = functools.partial(module, session, interpreter, codes=JUDGED, run_id=run_id)
    step("artifacts", "build", "--json", str(sides["candidate"]))
    step("artifacts", "base", "--json", str(sides["base"]), *session.posargs)
    measured = _measurements(sides, _controls(session, sides["base"]))
    for command in (*measured, *_gpu_measurements(sides, _gpu_arch(session, interpreter))):
        step(*command)
    step("evidence", "verdict", *(f"--{side}={path}" for side, path in sides.items()), codes=(0,))


def _measurements(sides: dict[str, Path], controls: str) -> list[list[str]]:
    """Return the commands of a premerge: host binaries' replays and contracts, memory, all static costs."""
    candidate, base = _artifacts(sides["candidate"]), _artifacts(sides["base"])
    # The base is a control: core is enough for it, and a binary that both sides share is replayed once.
    groups = {path: controls for target, path in base.items() if _has_goldens(*target)}
    groups |= {path: "all" for target, path in candidate.items() if _has_goldens(*target)}
    commands = [["regression", "replay", "--artifact", path, "--groups", g] for path, g in groups.items()]
    hosts = [path for target, path in candidate.items() if _has_goldens(*target)]
    commands += [["regression", "contract", "--artifact", path] for path in hosts]
    commands += [["sanitizer", "memcheck", "--cases", "core", "--artifact", path] for path in hosts]
    for target, path in candidate.items():
        if target[0] == "cuda":
            # A foreign library has no compiler's report to compare with.
            is_known = target in base and Path(base[target]).is_dir()
            against = ["--base", base[target]] if is_known else []
            commands.append(["benchmarks", "static", "--artifact", path, *against])
            if is_known:
                commands.append(["regression", "emulate", "--artifact", path, *against])
    return commands


def _controls(session: nox.Session, base: Path) -> str:
    """Return on what the base is replayed: on all groups where goldens were renewed, lest one go unsaid."""
    revision = json.loads(base.read_text())["revision"] if base.exists() else None
    if revision is None or not (ROOT / ".git").exists():
        return "core"
    diff = ["git", "diff", "--name-only", revision, "--", "fixtures/golden"]
    return "all" if session.run(*diff, external=True, silent=True, success_codes=[0, 128]) else "core"


def _gpu_measurements(sides: dict[str, Path], arch: str | None) -> list[list[str]]:
    """Return what a premerge does besides where there is a GPU: replay, memory and time of its own code."""
    candidate, base = (_artifacts(sides[side]).get(("cuda", arch or "")) for side in ("candidate", "base"))
    if candidate is None:
        return []
    commands = [
        ["regression", "replay", "--artifact", candidate, "--groups", "all"],
        ["regression", "contract", "--artifact", candidate, "--cases", "all"],
        ["sanitizer", "memcheck", "--cases", "core", "--artifact", candidate],
    ]
    timed = ["benchmarks", "abba", "--backend", "cuda", "--candidate", candidate]
    return [*commands, [*timed, "--base", base]] if base is not None else commands


def _gpu_arch(session: nox.Session, interpreter: str) -> str | None:
    """Return the architecture whose code this machine's GPU runs, None without such a GPU."""
    if not any(Path("/dev").glob("nvidia[0-9]*")):
        return None
    code = "import torch; from grouped_attention.load import arch_of_gpu as arch; "
    code += "print(torch.cuda.is_available() and arch() or '')"
    found = session.run(interpreter, "-c", code, env=ENV, external=True, silent=True)
    return str(found).strip() or None


def _has_goldens(backend: str, arch: str) -> bool:
    """Say whether a binary can be replayed here."""
    return backend == "host" and (ROOT / "fixtures" / "golden" / f"{arch}.safetensors").exists()


def _artifacts(side: Path) -> dict[tuple[str, str], str]:
    """Return one side's artifact folders, or foreign libraries, by (backend, architecture)."""
    if not side.exists():
        return {}
    found = json.loads(side.read_text())["artifacts"]
    return {(a["backend"], a["arch"]): a["directory"] or a["library"] for a in found}


# Sessions that are one command, `python -m PACKAGE VERB`.
COMMANDS = {
    "benchmarks nightly": "Run everything, on each GPU or the host: `-- [--base SPEC] [--results FOLDER]`.",
    "artifacts build": "Build a revision in isolation: `-- [--rev REV|worktree] [--arch …] [--backend …]`.",
    "regression replay": "Replay the stored real inputs and compare every bit with the goldens.",
    "regression contract": "Run made-up cases: NaN, exact bits, refusals: `-- [--cases core|all]`.",
    "sanitizer memcheck": "Check for memory faults, on a GPU or the CPU twin: `-- [--cases core]`.",
    "sanitizer racecheck": "Check shared memory for races, on a GPU.",
    "sanitizer initcheck": "Check for reads of memory that nothing wrote, on a GPU.",
    "sanitizer synccheck": "Check for misuse of barriers, on a GPU.",
    "sanitizer leakcheck": "Check that thousands of calls keep no memory, on a CPU or a GPU.",
    "regression emulate": "Run the CUDA sources on an emulated GPU: `-- [--source DIR] [--arch A]`.",
    "regression faults": "Plant faults in copies of the kernel, and see each caught: `-- [--only NAMES]`.",
    "benchmarks abba": "Time candidate against base: `-- --base … [--contexts …] [--budget 10s]`.",
    "benchmarks calibrate": "Measure how often abba errs here: `-- [--trials N] [--plant 0.1]`.",
    "benchmarks history": "Measure commits with the asv suites: `-- [--last N] [--results FOLDER]`.",
    "benchmarks dashboard": "Publish the history as web pages: `-- [--out FOLDER] [--results FOLDER]`.",
    "benchmarks bisect": "Find the first slower commit: `-- --good REV [--bad REV] [--context N]`.",
    "artifacts doctor": "Say what this machine can run, and why not the rest.",
    "evidence report": "Print the stored evidence as one table.",
}
GROUPS = {
    "nightly": ("test", "history", "plot"),
    "abba": ("plot",),
    "calibrate": ("calibrate",),
    "history": ("history",),
    "dashboard": ("history",),
}


def _define(package: str, verb: str, text: str) -> None:
    """Define the session of one command."""

    def session(session: nox.Session) -> None:
        module(session, python(session, "run", *GROUPS.get(verb, ())), package, verb, *session.posargs)

    session.__doc__ = text
    nox.session(name=verb, venv_backend="none", default=False)(session)


for command, text in COMMANDS.items():
    _define(*command.split(), text)


@nox.session(venv_backend="none", default=False)
def fuzz(session: nox.Session) -> None:
    """Draw random calls until one breaks a rule or time is up: `-- [--minutes M] [--seed S]`; 10 minutes."""
    given = {option.partition("=")[0] for option in session.posargs}
    amount = [] if {"--minutes", "--examples", "--example"} & given else ["--minutes", "10"]
    module(session, python(session, "run", "test"), "regression", "fuzz", *amount, *session.posargs)


@nox.session(venv_backend="none", default=False)
def bench(session: nox.Session) -> None:
    """Time the operation by pytest-benchmark, against the last saved run: `-- [--artifact DIR] [-k 8192]`."""
    saved = [f"--benchmark-storage=file://{HOME / 'benchmarks'}", "--benchmark-autosave"]
    timed = ["benchmarks/test_latency.py", *saved, *session.posargs]
    module(session, python(session, "run", "bench"), "evidence.guard", "pytest", *timed)


@nox.session(venv_backend="none", default=False)
def tests(session: nox.Session) -> None:
    """Run the tests of the suite itself, a file on one core: `-- [-n 0] [pytest's options]`."""
    interpreter = python(session, "run", "test")
    spread = () if NO_VENV else ("-n", "auto", "--maxprocesses", "4", "--dist", "loadfile")
    module(session, interpreter, "evidence.guard", "pytest", *spread, *session.posargs)


@nox.session(venv_backend="none", default=False)
def lint(session: nox.Session) -> None:
    """Check style, types, the import contracts and the C++ format."""
    interpreter = python(session, "run", "test", "lint")
    module(session, interpreter, "ruff", "check", "noxfile.py", *PACKAGES)
    module(session, interpreter, "ruff", "format", "--check", "noxfile.py", *PACKAGES)
    module(session, interpreter, "mypy")
    tools = Path(interpreter).parent
    session.run(str(tools / "lint-imports"), env=ENV, external=True)
    found = (path for top in (*PACKAGES, "docs") for kind in CXX for path in (ROOT / top).rglob(kind))
    session.run(str(tools / "clang-format"), "--dry-run", "--Werror", *map(str, sorted(found)), external=True)


@nox.session(venv_backend="none", default=False)
def dev(session: nox.Session) -> None:
    """Make `.venv` for development: every tool, for tests and style too."""
    interpreter = python(session, "run", "test", "lint")
    if NO_VENV:
        session.error("dev makes .venv; run it without --no-venv")
    session.log(f"ready: {interpreter}")
