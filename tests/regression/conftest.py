"""A built kernel, records in a temporary home, goldens made on the spot, and callables that misbehave."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fixtures.golden import Golden
from grouped_attention.build import build, default_store
from regression import cli, replay, stored, target
from regression.selection import select

ROOT = Path(__file__).resolve().parents[2]
SMALL = ("3x64-8k-00", "6x256-8k-01")


@dataclass(frozen=True, kw_only=True)
class Done:
    """One command: its exit code, what it printed, and the JSON that it wrote, if any."""

    code: int
    lines: list[str]
    json: dict[str, Any] | None

    @property
    def verdict(self) -> str:
        return self.lines[-1]

    @property
    def groups(self) -> dict[str, dict[str, Any]]:
        assert self.json is not None
        return {group["id"]: group for group in self.json["results"]["groups"]}


Command = Callable[..., Done]


@pytest.fixture(scope="session")
def artifact() -> Path:
    """The folder of this checkout's host kernel for sm_70."""
    return host_artifact("sm_70")


def host_artifact(arch: str) -> Path:
    """The folder of this checkout's host kernel, built if need be."""
    return build(ROOT / "kernels", backend="host", arch=arch, store=default_store()).directory


@pytest.fixture(scope="session", params=["sm_70", "sm_90"])
def kernel(request: pytest.FixtureRequest) -> target.Target:
    """This checkout's host kernel, for two architectures."""
    return target.from_path(host_artifact(request.param))


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """`python -m regression` in this process, with records in a home of its own; the store is shared."""
    monkeypatch.setenv("GROUPED_ATTENTION_STORE", str(default_store()))
    monkeypatch.setenv("KERNELGATE_HOME", str(tmp_path / "home"))

    def run(*arguments: object) -> Done:
        path = tmp_path / "results.json"
        code = cli.main([*map(str, arguments), "--json", str(path)])
        content = json.loads(path.read_text()) if path.exists() else None
        return Done(code=code, lines=capsys.readouterr().out.splitlines(), json=content)

    return run


@pytest.fixture(scope="session")
def fresh(artifact: Path) -> Mapping[str, Golden]:
    """Goldens of two small groups, as this checkout's kernel gives them."""
    kernel = target.from_path(artifact)
    plays = replay.replay(select(",".join(SMALL)), kernel, lambda _id: None, check_partials=True)
    return {play.result.id: play.fresh for play in plays if play.fresh is not None}


@pytest.fixture
def goldens(fresh: Mapping[str, Golden], monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Golden]]:
    """Goldens in place of the stored ones; a test may change or remove some."""
    changeable = dict(fresh)
    monkeypatch.setattr(stored, "reader", lambda _arch: changeable.get)
    yield changeable


CALLABLES = """
import grouped_attention as ga
import torch

ext = ga.load({library!r})
honest = ext.grouped_e4m3_fp32

def flipped(*args, out, **scales):
    honest(*args, out=out, **scales)
    out.view(torch.int16)[-1, -1, -1] ^= 1

def with_partials(*args, out, **scales):
    honest(*args, out=out, **scales)

def wrong_partials(*args, **scales):
    acc, max_sum = ext.grouped_e4m3_fp32_partials(*args, **scales)
    acc.view(torch.int32)[0, 1, 2, 3] ^= 1
    return acc, max_sum

def idle(*args, out, **scales):
    return out

def lazy(*args, out, **scales):
    out[1:] = honest(*args, **scales)[1:]

def elsewhere(*args, out, **scales):
    return honest(*args, **scales)

def twofold(*args, out, **scales):
    return honest(*args, out=out, **scales) + float("inf")

def not_a_number(*args, out, **scales):
    honest(*args, out=out, **scales)
    out[0, 0, 0] = float("nan")

def too_far(*args, out, **scales):
    honest(*args, out=out, **scales)
    out.as_strided((1,), (1,), out.storage_offset() + out.numel()).zero_()

def greedy(q, k_cache, v_cache, table, lens, *, out, **scales):
    honest(q, k_cache, v_cache, table, lens, out=out, **scales)
    table[0, -1] += 1
    k_cache[-1, -1, 0, 0] ^= 1

def forger(q, k_cache, v_cache, table, lens, *, out, **scales):
    v_cache.fill_(0x38)
    honest(q, k_cache, v_cache, table, lens, out=out, **scales)

def rough(*args, out, **scales):
    honest(*args, out=out, **scales)
    out.mul_(1.01)

def broken(*args, out, **scales):
    raise RuntimeError("no kernel image")

def leaving(*args, out, **scales):
    raise SystemExit(0)

with_partials.partials = wrong_partials
"""


@pytest.fixture
def callables(tmp_path: Path, artifact: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module with an honest callable and others."""
    (library,) = artifact.glob("*.so")
    name = f"callables_{abs(hash(tmp_path))}"
    (tmp_path / f"{name}.py").write_text(CALLABLES.format(library=str(library)))
    monkeypatch.syspath_prepend(tmp_path)
    return name
