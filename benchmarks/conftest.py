"""Options, machine key, saved runs and the verdict of the timed tests; the suite's own are in tests/."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import torch

import artifacts
import grouped_attention as ga
from artifacts.errors import ArtifactsError
from benchmarks.bench import ending
from benchmarks.history import machine_key
from evidence.ending import EXIT_CODES, say

THREADS = 1  # neighbours disturb one thread less than many
MACHINE = pytest.StashKey[dict[str, str]]()
REPORTS = pytest.StashKey[list[ending.Timed]]()
VERDICT = pytest.StashKey[str]()
STARTED = pytest.StashKey[datetime]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """What is timed, and against which run."""
    group = parser.getgroup("kernelgate")
    group.addoption("--artifact", type=Path, help="artifact folder or library; default: the work tree, built")
    group.addoption("--backend", choices=("host", "cuda"), help="default: cuda where there is a GPU")
    group.addoption("--reference", default="", metavar="NUMBER", help="a saved run; default: the newest good")


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker, and the machine for the saved runs."""
    config.addinivalue_line("markers", "threshold(gpu, host): how much slower than the saved run, median:5%")
    config.stash[MACHINE] = machine_key.describe()
    config.stash[REPORTS] = []
    config.stash[STARTED] = datetime.now(UTC)


def pytest_benchmark_update_machine_info(config: pytest.Config, machine_info: dict[str, Any]) -> None:
    """Saved runs name the GPU and its driver."""
    machine: dict[str, str] = config.stash[MACHINE]
    machine_info.update(machine)


@pytest.fixture(scope="session")
def extension(request: pytest.FixtureRequest) -> Any:
    """The library whose operation is timed."""
    torch.set_num_threads(THREADS)
    path, backend = request.config.getoption("--artifact"), request.config.getoption("--backend")
    try:
        if path is None:
            return ga.load(backend=backend)
        side = artifacts.candidate(source=path)
        return artifacts.load_extension(ending.fitting(side, backend))
    except (ArtifactsError, RuntimeError, ValueError) as error:
        pytest.fail(f"nothing to time: {error}", pytrace=False)


@pytest.fixture
def judge(request: pytest.FixtureRequest, benchmark: Any, extension: Any) -> Callable[[int], None]:
    """Ends a timed test: given the count of wrong elements, compare with the saved run and fail, or not."""

    def end(wrong: int) -> None:
        timed = ending.judge(request, benchmark, extension, wrong, request.config.stash[MACHINE]["machine"])
        request.config.stash[REPORTS].append(timed)
        if not timed.passed:
            pytest.fail(timed.text, pytrace=False)

    return end


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """The exit status is the verdict's."""
    if session.config.option.collectonly:
        return
    reports: list[ending.Timed] = session.config.stash[REPORTS]
    word, reason = ending.conclude(reports, int(exitstatus))
    session.config.stash[VERDICT] = f"verdict: {word} ({reason})"
    if reports:
        print(f"\nrecord: {ending.keep(reports, word, reason, session.config.stash[STARTED])}")
    session.exitstatus = EXIT_CODES[word]


def pytest_unconfigure(config: pytest.Config) -> None:
    """The verdict is the last line."""
    if VERDICT in config.stash:
        say(config.stash[VERDICT])
