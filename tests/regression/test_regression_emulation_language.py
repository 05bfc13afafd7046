"""What CUDA C++ adds to the language, on the emulated GPU: the definitions of the programming guide."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from regression.emulation import assembly, compiler

HERE = Path(__file__).parent
LINKED = {"-shared": "-pie", "-fPIC": "-fPIE"}


@pytest.mark.parametrize(
    ("name", "sm", "count"),
    [("emulated_language.cc", 70, 29), ("emulated_language.cc", 90, 30), ("emulated_instructions.cc", 90, 7)],
)
def test_the_language_is_what_its_manuals_say(tmp_path: Path, name: str, sm: int, count: int) -> None:
    tool = shutil.which("g++")
    assert tool is not None
    flags = [LINKED.get(flag, flag) for flag in compiler.FLAGS]
    translated = tmp_path / name
    translated.write_text(assembly.translate((HERE / name).read_text()))
    sources = [compiler.SIMT / "simt.cc", translated]
    command = [
        tool,
        *flags,
        "-O1",
        "-Werror",
        f"-DGROUPED_SM={sm}",
        f"-I{compiler.SIMT}",
        f"-I{HERE}",
        *map(str, sources),
    ]
    built = subprocess.run(
        [*command, "-o", str(tmp_path / "checks")], capture_output=True, text=True, timeout=240, check=False
    )
    assert built.returncode == 0, built.stderr[-2000:]
    done = subprocess.run([tmp_path / "checks"], capture_output=True, text=True, timeout=60, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(lines) == count and all(line.startswith("right ") for line in lines)
