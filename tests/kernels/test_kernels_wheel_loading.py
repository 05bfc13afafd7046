"""What a wheel installs is verified like any other artifact: a folder and a manifest each."""

import importlib
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import grouped_attention as ga
from grouped_attention import toolchain
from grouped_attention.build import build

LOAD = importlib.import_module("grouped_attention.load")  # the package has a function of that name
ROOT = Path(__file__).resolve().parents[2]
TARGETS = (("host", "sm_70"), ("cuda", "sm_90"))


def run(*command: str, env: dict[str, str]) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=600, check=False, env={**os.environ, **env}
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """CMake's install as a wheel asks for it, with a Python that has no torch."""
    folder = tmp_path_factory.mktemp("wheel")
    (folder / "torch.py").write_text("raise ImportError('a build environment has no torch')")
    tools = toolchain.find()
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]
    defined = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_CXX_COMPILER": str(tools.cxx),
        "CMAKE_INSTALL_PREFIX": str(folder / "lib"),
        "CMAKE_MAKE_PROGRAM": str(tools.ninja),
        "GROUPED_TARGETS": ";".join(":".join(target) for target in TARGETS),
        "Python_EXECUTABLE": sys.executable,
        **settings["cmake"]["define"],
    }
    cmake, at, env = str(tools.cmake), str(folder / "build"), {"PYTHONPATH": str(folder)}
    options = [f"-D{name}={value}" for name, value in defined.items()]
    run(cmake, "-S", str(ROOT / "kernels"), "-B", at, "-G", "Ninja", *options, env=env)
    run(cmake, "--build", at, "--parallel", "2", env=env)
    run(cmake, "--install", at, "--strip", env=env)
    return folder / "lib"


@pytest.mark.parametrize(("backend", "arch"), TARGETS)
def test_an_installed_library_has_the_code_of_the_artifact(installed: Path, backend: str, arch: str) -> None:
    loaded = ga.load(installed / f"{backend}-{arch}" / f"grouped_attention-{backend}-{arch}.so")
    artifact = build(ROOT / "kernels", backend=backend, arch=arch).manifest
    assert loaded.code_digest == artifact.code_digest
    assert loaded.precision_version == artifact.precision_version


def test_the_package_finds_its_libraries(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LOAD, "PACKAGED", installed)
    assert ga.load(backend="host", arch="sm_70").library.parent == installed / "host-sm_70"


def test_a_changed_installed_library_is_refused(installed: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(installed / "cuda-sm_90", tmp_path / "copy")
    library = folder / "grouped_attention-cuda-sm_90.so"
    library.write_bytes(library.read_bytes() + b"\0")
    with pytest.raises(RuntimeError, match=r"don't match manifest\.json"):
        ga.load(library)
