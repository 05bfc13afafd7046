"""What a replay may claim of what it replayed, and whose fault it is when it can't start."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SMALL = "3x64-8k-00,6x256-8k-01"


def test_a_setting_that_this_processor_lacks_is_no_rejection(
    command: Callable[..., Any], artifact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = shutil.copytree(artifact, tmp_path / "copy")  # a library reads the variable when it is loaded
    monkeypatch.setenv("GROUPED_ATTENTION_CPU", "foo")
    done = command("replay", "--artifact", copy, "--groups", SMALL)
    assert done.code == 5
    assert done.verdict.startswith(
        "verdict: unknown (bad-setting: GROUPED_ATTENTION_CPU=foo can't be used: choose"
    )
