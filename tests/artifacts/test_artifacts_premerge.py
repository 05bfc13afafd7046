"""The commands that `nox -s premerge` derives from the two sides."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

NOXFILE = Path(__file__).resolve().parents[2] / "noxfile.py"
ARCHITECTURES = ("sm_70", "sm_80", "sm_90")


@pytest.fixture
def noxfile(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The noxfile as a module; nox itself isn't part of the environment that it makes."""
    nox = SimpleNamespace(options=SimpleNamespace(), session=lambda **_: lambda body: body, Session=object)
    monkeypatch.setitem(sys.modules, "nox", nox)  # type: ignore[arg-type]
    spec = importlib.util.spec_from_file_location("noxfile_under_test", NOXFILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def side(folder: Path, name: str, *artifacts: dict[str, Any]) -> Path:
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"artifacts": artifacts}))
    return path


def built(folder: Path, name: str, backend: str, arch: str) -> dict[str, Any]:
    """An artifact with a folder of its own."""
    directory = folder / name / f"{backend}-{arch}"
    directory.mkdir(parents=True)
    return {"backend": backend, "arch": arch, "directory": str(directory), "library": f"{directory}/x.so"}


def foreign(backend: str, arch: str) -> dict[str, Any]:
    return {"backend": backend, "arch": arch, "directory": None, "library": f"/lib/{backend}-{arch}.so"}


def commands(noxfile: ModuleType, tmp_path: Path, *base: dict[str, Any]) -> list[list[str]]:
    all_targets = [(backend, arch) for backend in ("host", "cuda") for arch in ARCHITECTURES]
    candidate = side(tmp_path, "candidate", *(built(tmp_path, "new", *target) for target in all_targets))
    sides = {"candidate": candidate, "base": side(tmp_path, "base", *base)}
    found: list[list[str]] = noxfile._measurements(sides, "core")
    return found


def test_a_foreign_base_is_replayed_by_its_path(noxfile: ModuleType, tmp_path: Path) -> None:
    found = commands(noxfile, tmp_path, foreign("host", "sm_70"))
    assert ["regression", "replay", "--artifact", "/lib/host-sm_70.so", "--groups", "core"] in found


def test_static_costs_of_every_architecture_are_measured(noxfile: ModuleType, tmp_path: Path) -> None:
    base = [built(tmp_path, "old", "cuda", "sm_70"), foreign("cuda", "sm_90")]
    found = [command for command in commands(noxfile, tmp_path, *base) if command[0] == "benchmarks"]
    new, old = tmp_path / "new", tmp_path / "old"
    assert [command[3:] for command in found] == [
        [str(new / "cuda-sm_70"), "--base", str(old / "cuda-sm_70")],
        [str(new / "cuda-sm_80")],
        [str(new / "cuda-sm_90")],
    ]


def test_what_has_no_goldens_is_not_replayed(noxfile: ModuleType, tmp_path: Path) -> None:
    replays = [command for command in commands(noxfile, tmp_path) if command[:2] == ["regression", "replay"]]
    assert [Path(command[3]).name for command in replays] == ["host-sm_70", "host-sm_90"]


def test_cuda_code_is_emulated_against_a_base_that_can_be_asked(noxfile: ModuleType, tmp_path: Path) -> None:
    base = [built(tmp_path, "base", "cuda", "sm_90"), foreign("cuda", "sm_80")]
    found = [command for command in commands(noxfile, tmp_path, *base) if "emulate" in command]
    (one,) = found
    assert one[3].endswith("new/cuda-sm_90") and one[4:] == ["--base", base[0]["directory"]]
