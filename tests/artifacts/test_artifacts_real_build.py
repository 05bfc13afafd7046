"""The kernels themselves, built in two folders."""

from __future__ import annotations

import shutil
from pathlib import Path

from grouped_attention.build import Artifact, build

KERNELS = Path(__file__).parents[2] / "kernels"


def unoptimised(below: Path) -> Artifact:
    """The CPU library of a copy of the kernels; unoptimised, for it is compared and not run."""
    source = below / "kernels"
    shutil.copytree(KERNELS, source, ignore=shutil.ignore_patterns("__pycache__", "lib"))
    return build(source, backend="host", arch="sm_70", store=below / "store", variant="debug")


def test_real_library_is_the_same_in_another_folder(tmp_path: Path) -> None:
    one = unoptimised(tmp_path / "here").manifest
    other = unoptimised(tmp_path / "a longer" / "place").manifest
    assert one.digest == other.digest
    assert one.code_digest == other.code_digest
    assert one.sha256 == other.sha256
    assert one.precision_version is not None
