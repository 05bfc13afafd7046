"""The planted spins: one code, which spins for another time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fixtures import faults
from grouped_attention import cubin

ROOT = Path(__file__).parents[2]
SPINS = [f.name for f in faults.catalogue() if f.name.startswith("spin-")]


def _sections(name: str, folder: Path) -> dict[str, bytes]:
    """Of the cubin of the kernels with a spin: what decides its time."""
    kernels, made = faults.plant(faults.find(name), ROOT / "kernels", folder / name), folder / f"{name}.cubin"
    command = [sys.executable, kernels / "cmake/nvrtc_compile.py", kernels / "src/cuda/kernels.cu"]
    command += ["--headers", kernels / "include", "--headers", kernels / "src", "--arch", "sm_90"]
    command += ["--cubin", made, "--log", folder / "log"]
    subprocess.run(command, check=True, timeout=120)
    return {s.name: s.data for s in cubin.sections(made.read_bytes())}


def test_all_spins_are_one_code_with_another_number(tmp_path: Path) -> None:
    """So what they are timed against, spin-nothing, differs from them in the time that they spin alone."""
    assert {"spin-nothing", "spin-fifth-percent", "spin-half-percent", "spin-percent"} <= set(SPINS)
    sections = {name: _sections(name, tmp_path) for name in SPINS}
    nothing = sections.pop("spin-nothing")
    kernels = [name for name in nothing if name.startswith(".text.")]
    assert len(kernels) == 7, "five kernels that split and two that combine"
    for name, found in sections.items():
        assert [found[kernel] == nothing[kernel] for kernel in kernels] == [True] * 7, name
        assert found[".nv.constant3"] != nothing[".nv.constant3"], name
