"""Finds compute-sanitizer and knows which versions support which architecture."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

NAME = "compute-sanitizer"
WHEELS = ("nvidia-cuda-sanitizer-api", "nvidia-cuda-sanitizer-api-cu12")
VERSION_LIMIT_S = 60
FIRST_WITHOUT_VOLTA = (2025, 3)
_VERSION = re.compile(r"[Vv]ersion (\d+)\.(\d+)(?:\.(\d+))?")


class ToolError(RuntimeError):
    """No tool that can do it, with a reason code; the text says what to install."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, kw_only=True)
class Tool:
    """An executable compute-sanitizer."""

    path: Path
    version: tuple[int, ...]

    @property
    def text(self) -> str:
        """Name and version."""
        return f"{NAME} {'.'.join(map(str, self.version))}"


def find(arch: str, env: Mapping[str, str] | None = None) -> Tool:
    """The first of PATH, $CUDA_HOME and the wheels that supports the architecture; ToolError else."""
    there = [Tool(path=path, version=version(path)) for path in dict.fromkeys(_candidates(env or os.environ))]
    for tool in there:
        if supports(tool.version, arch):
            return tool
    if there:
        raise ToolError(
            "tool-too-new",
            f"{there[0].text} doesn't support {arch}: from 2025.3 on Volta is gone; "
            "pip install nvidia-cuda-sanitizer-api-cu12, a 12.x release",
        )
    wheel = WHEELS[1] if arch == "sm_70" else WHEELS[0]
    raise ToolError("no-tool", f"{NAME} is not on PATH, in $CUDA_HOME or in a wheel: pip install {wheel}")


def supports(found: tuple[int, ...], arch: str) -> bool:
    """Volta needs a release before 2025.3."""
    return arch != "sm_70" or found[:2] < FIRST_WITHOUT_VOLTA


def version(path: Path) -> tuple[int, ...]:
    """What `--version` says; ToolError when it doesn't run or says nothing understood."""
    try:
        done = subprocess.run(
            [str(path), "--version"], capture_output=True, text=True, timeout=VERSION_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolError("tool-failed", f"{path} --version: {error}") from error
    match = _VERSION.search(done.stdout)
    if done.returncode != 0 or match is None:
        raise ToolError("tool-failed", f"{path} --version gave exit status {done.returncode} and no version")
    return tuple(int(part) for part in match.groups() if part is not None)


def _candidates(env: Mapping[str, str]) -> Iterator[Path]:
    named = shutil.which(NAME, path=env.get("PATH", os.defpath))
    if named is not None:
        yield Path(named)
    home = env.get("CUDA_HOME")
    for folder in ("bin", NAME) if home else ():
        path = Path(str(home)) / folder / NAME
        if path.is_file():
            yield path
    yield from _in_wheels()


def _in_wheels() -> Iterator[Path]:
    for wheel in WHEELS:
        try:
            files = metadata.distribution(wheel).files or []
        except metadata.PackageNotFoundError:
            continue
        for path in (Path(str(file.locate())) for file in files if file.name == NAME):
            # Wheels are unpacked without the bit that lets a file run.
            for neighbour in path.parent.iterdir():
                if neighbour.is_file() and not os.access(neighbour, os.X_OK):
                    neighbour.chmod(neighbour.stat().st_mode | 0o555)
            yield path
