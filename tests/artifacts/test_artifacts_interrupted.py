"""Builders side by side, and builders that are killed."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from grouped_attention.build import Artifact, build

BUILD_SCRIPT = (
    "import sys; from pathlib import Path; from grouped_attention.build import build;"
    "print(build(Path(sys.argv[1]), backend='host', arch='sm_70', store=Path(sys.argv[2])).directory)"
)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


def host(source: Path, store: Path, **options: str) -> Artifact:
    return build(source, backend="host", arch="sm_70", store=store, **options)


def names(store: Path) -> list[str]:
    return sorted(path.name for path in store.iterdir() if not path.name.startswith("."))


def spawn(source: Path, store: Path) -> subprocess.Popen[str]:
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'kernels'}"}
    command = [sys.executable, "-c", BUILD_SCRIPT, str(source), str(store)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
        # A shell that starts us in the background has SIGINT ignored, and children inherit that.
        preexec_fn=functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )


def test_two_builders_at_once_share_one_build(project: Path, store: Path) -> None:
    builders = [spawn(project, store) for _ in range(3)]
    outputs = [builder.communicate(timeout=120) for builder in builders]
    assert [builder.returncode for builder in builders] == [0, 0, 0], outputs
    assert len({out for out, _ in outputs}) == 1
    assert len(names(store)) == 1
    assert list((store / ".work").iterdir()) == []


@pytest.fixture
def stuck(project: Path, store: Path, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A builder that has linked its library and waits until the gate is removed."""
    gate = tmp_path / "gate"
    gate.touch()
    with (project / "CMakeLists.txt").open("a") as stream:
        wait = f"while test -e {gate}; do sleep 0.05; done"
        stream.write(f'add_custom_command(TARGET tiny POST_BUILD COMMAND sh -c "{wait}" VERBATIM)\n')
    with spawn(project, store) as builder:
        wait_for(lambda: any((store / ".work").glob("*/build/*.so")))
        yield builder, gate
        gate.unlink(missing_ok=True)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(builder.pid, signal.SIGKILL)


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGINT])
def test_killed_build_leaves_nothing_that_loads(
    kill: signal.Signals, stuck: tuple[subprocess.Popen[str], Path], project: Path, store: Path
) -> None:
    builder, gate = stuck
    os.killpg(builder.pid, kill)
    builder.communicate(timeout=60)
    assert builder.returncode != 0
    assert names(store) == []
    gate.unlink()
    artifact = host(project, store)
    assert names(store) == [artifact.directory.name]
    (log,) = (store / ".failed").glob("*interrupted*")
    assert "Linking" in log.read_text() or "Building" in log.read_text()
    assert list((store / ".work").iterdir()) == []


def test_compilers_that_outlive_their_builder_do_no_harm(
    stuck: tuple[subprocess.Popen[str], Path], project: Path, store: Path
) -> None:
    builder, gate = stuck
    builder.kill()
    builder.wait(timeout=60)
    gate.unlink()
    artifact = host(project, store)
    assert names(store) == [artifact.directory.name]
    assert host(project, store) == artifact


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
