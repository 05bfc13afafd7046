"""What CUDA C++ adds to the language, on the emulated GPU: the definitions of the programming guide."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from regression.emulation import compiler

CHECKS = Path(__file__).with_name("emulated_language.cc")
LINKED = {"-shared": "-pie", "-fPIC": "-fPIE"}


@pytest.mark.parametrize("sm", [70, 90])
def test_the_language_is_what_its_guide_says(tmp_path: Path, sm: int) -> None:
    tool = shutil.which("g++")
    assert tool is not None
    flags = [LINKED.get(flag, flag) for flag in compiler.FLAGS]
    sources = [compiler.SIMT / "simt.cc", CHECKS]
    command = [tool, *flags, "-O1", "-Werror", f"-DGROUPED_SM={sm}", f"-I{compiler.SIMT}", *map(str, sources)]
    built = subprocess.run(
        [*command, "-o", str(tmp_path / "checks")], capture_output=True, text=True, timeout=240, check=False
    )
    assert built.returncode == 0, built.stderr[-2000:]
    done = subprocess.run([tmp_path / "checks"], capture_output=True, text=True, timeout=60, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(lines) > 20 and all(line.startswith("right ") for line in lines)
