"""What `python -m regression faults` does, from options to a judgement and a record."""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from artifacts.sides import from_path
from evidence import ending, places, record
from fixtures.faults import FaultError
from fixtures.faults.catalogue import FOLDER, UnknownFaultError
from grouped_attention.build import BuildError, default_store
from regression import judge, recording, target
from regression.faults import kernels, matrix, runs, trials
from regression.faults.gates import Built, Gate, Selection
from regression.faults.kernels import Kernels, Workshop
from regression.faults.matrix import Matrix, Row
from regression.faults.runs import Run
from regression.faults.trials import Plan, Trial
from regression.judge import Judgement
from regression.recording import Start

KIND = "faults"
DEFAULT_CLEAN = 20
MOST_JOBS = 12  # they share one GPU


def add_options(verb: argparse.ArgumentParser) -> None:
    """The options of `faults`."""
    verb.add_argument("--backend", choices=("host", "cuda"), help="default: cuda where there is a GPU")
    verb.add_argument("--arch", choices=target.ARCHITECTURES, help="default: the GPU's, or sm_70 on the host")
    verb.add_argument("--only", metavar="NAMES", help="only these faults, with commas")
    verb.add_argument(
        "--catalogue", type=Path, default=FOLDER, metavar="FOLDER", help="patches; default: fixtures/faults"
    )
    verb.add_argument(
        "--clean",
        type=_count,
        default=DEFAULT_CLEAN,
        metavar="N",
        help="least runs on sound kernels",
    )
    verb.add_argument(
        "--jobs",
        type=_count,
        default=_jobs(len(os.sched_getaffinity(0))),
        metavar="N",
        help="gates at once, beside a build; default: three quarters of the cores, at most 12",
    )
    where = verb.add_mutually_exclusive_group()
    where.add_argument("--built", type=Path, metavar="FOLDER", help="kernels that --build-only left there")
    where.add_argument("--build-only", action="store_true", help="build the kernels into --out, run nothing")
    verb.add_argument("--out", type=Path, metavar="FOLDER", help="with --build-only: where they go")
    verb.add_argument("--json", type=Path, metavar="PATH", help="write the record there too")


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: 1 or more")
    return int(text)


def _jobs(cores: int) -> int:
    return min(MOST_JOBS, max(1, cores * 3 // 4))


def run(options: argparse.Namespace) -> Judgement:
    """Plant, build, run the gates, print the matrix, keep the record."""
    if options.build_only == (options.out is None):
        return judge.usage("--build-only and --out belong together")
    elsewhere = options.built or options.build_only
    backend = options.backend or ("cuda" if elsewhere else target.default_backend())
    gpu = backend == "cuda" and torch.cuda.is_available()
    work = Path(tempfile.mkdtemp(prefix="faults-", dir=_runs()))
    try:
        arch = options.arch or ("sm_90" if options.build_only else target.default_arch(backend))
        if options.build_only:
            kernels.check_place(options.out)
        chosen = trials.choose(options.only, options.catalogue)
        trials.check(chosen, places.root() / "kernels", work)
        plan = trials.plan(chosen, backend=backend, arch=arch, gpu=gpu or options.build_only)
        if options.build_only:
            return _pack(plan, work, options.out)
        return _measure(options, plan, _kernels(options, work), f"{backend} {arch}")
    except (UnknownFaultError, kernels.PlaceError) as error:
        return judge.usage(str(error))
    except kernels.PackError as error:
        return judge.error("pack-unreadable", str(error))
    except (FaultError, BuildError) as error:
        return judge.error("patch-stale", str(error))
    except target.TargetError as error:
        return judge.unknown(error.code, str(error))
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _kernels(options: argparse.Namespace, work: Path) -> Kernels:
    if options.built is not None:
        return kernels.unpack(options.built, work)
    return _workshop(work)


def _pack(plan: Plan, work: Path, out: Path) -> Judgement:
    workshop = _workshop(work)
    kernels.pack(plan.trials, workshop, out, progress=lambda text: print(text, flush=True))
    size = sum(path.stat().st_size for path in out.iterdir())
    text = f"{len(plan.trials)} faults in {out}, {size / 1e6:.1f} MB: now faults --built on a GPU machine"
    return judge.unknown("built-only", text)


def _measure(options: argparse.Namespace, plan: Plan, source: Kernels, scope: str) -> Judgement:
    start = Start.now()
    print(f"{scope}: {len(plan.trials)} faults planted", flush=True)
    rows = _all(plan.trials, source, jobs=options.jobs)
    clean = _clean(plan.trials, source, least=options.clean, jobs=options.jobs)
    found = Matrix(rows=rows, clean=clean, needs_gpu=plan.needs_gpu, other_place=plan.other_place)
    judgement = matrix.decide(found, scope=scope)
    print(matrix.table(found))
    print("\n".join(matrix.complaints(found)))
    if plan.trials:
        _keep(options, plan, source, found, judgement, start)
    print(found.counts)
    return judgement


def _all(chosen: Sequence[Trial], source: Kernels, *, jobs: int) -> tuple[Row, ...]:
    """All rows: a fault's gates run while the next one is built; gates that measure time run alone, last."""
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        pending: list[tuple[Trial, Built, Future[tuple[Run, ...]]]] = []
        try:
            for trial in chosen:
                built = source.faulty(trial)
                pending.append((trial, built, pool.submit(_gates, trial, built, alone=False)))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
        shared = [(trial, built, future.result()) for trial, built, future in pending]
    return tuple(
        Row(trial=trial, runs=found + _gates(trial, built, alone=True)) for trial, built, found in shared
    )


def _gates(trial: Trial, built: Built, *, alone: bool) -> tuple[Run, ...]:
    found = []
    for gate in (gate for gate in trial.gates if gate.alone == alone):
        found.append(runs.run(gate, built, trial.selection(gate), most=trial.fault.runs))
        print(f"{trial.fault.name}: {_said(found[-1])}", flush=True)
    return tuple(found)


def _said(one: Run) -> str:
    return f"{matrix.SHOWN[one.word]} by {one.gate} in {one.seconds:.1f} s: {one.text[:160]}"


def _clean(chosen: Sequence[Trial], source: Kernels, *, least: int, jobs: int) -> tuple[Run, ...]:
    """Every gate and selection that was used, on the sound kernel; again until there are enough."""
    steps = {_key(trial, gate): (trial, gate) for trial in chosen for gate in trial.gates if not gate.alone}
    wanted = list(itertools.islice(itertools.cycle(steps.values()), max(least, len(steps)))) if steps else []
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        pending = [
            pool.submit(runs.run, gate, source.sound(trial), trial.selection(gate)) for trial, gate in wanted
        ]
        found = tuple(_told(future.result(), number) for number, future in enumerate(pending, start=1))
    return (*found, *_clean_alone(chosen, source))


def _told(one: Run, number: int) -> Run:
    print(f"sound kernel, run {number}: {one.gate} {one.word} in {one.seconds:.1f} s", flush=True)
    return one


def _clean_alone(chosen: Sequence[Trial], source: Kernels) -> Iterator[Run]:
    for trial in chosen:
        for gate in (gate for gate in trial.gates if gate.alone):
            yield runs.run(gate, source.sound(trial), trial.selection(gate))


def _key(trial: Trial, gate: Gate) -> tuple[str, str, str, Selection]:
    return gate.name, trial.backend, trial.arch, trial.selection(gate)


def _keep(
    options: argparse.Namespace,
    plan: Plan,
    source: Kernels,
    found: Matrix,
    judgement: Judgement,
    start: Start,
) -> None:
    sound = source.sound(plan.trials[0])
    side = from_path(next(path for path in (sound.artifact, sound.against) if path is not None))
    selection: dict[str, Any] = {"only": options.only, "clean": options.clean}
    made = record.make(
        kind=KIND,
        artifact=record.subject_of(side.binaries[0], revision=side.revision, dirty=None),
        inputs=places.inputs_hash(),
        selection=selection,
        outcome=ending.CHECKED[judgement.word],
        reasons=[record.Reason(code=reason.code, text=reason.text) for reason in judgement.reasons],
        results=found.as_json(),
        started_at=start.at,
        duration_s=time.perf_counter() - start.tick,
    )
    print(f"record: {recording.keep(made, options.json)}")


def _workshop(work: Path) -> Workshop:
    return Workshop(source=places.root() / "kernels", work=work, store=default_store().with_name("faults"))


def _runs() -> Path:
    folder = places.home() / "faults-work"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
