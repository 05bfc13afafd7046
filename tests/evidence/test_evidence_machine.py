"""What is said of the measuring machine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence import machine


def test_machine_is_described() -> None:
    seen = machine.describe()
    assert seen["cores"] >= 1
    assert seen["python"]
    assert bool(seen["gpus"]) != bool(seen["gpu_note"])
    json.dumps(seen, allow_nan=False)


def test_gpus_are_read_from_csv() -> None:
    line = ", ".join(f"value {n}" for n in range(len(machine.GPU_FIELDS)))
    gpus, note = machine.parse_gpus(f"{line}\n{line}\n\n")
    assert (len(gpus), note) == (2, "")
    assert gpus[0]["name"] == "value 0"
    assert machine.parse_gpus("") == ([], "nvidia-smi lists no GPU")
    assert "odd line" in machine.parse_gpus("odd line")[1]


@given(text=st.text(max_size=60))
def test_gpu_csv_never_crashes(text: str) -> None:
    gpus, note = machine.parse_gpus(text)
    assert gpus or note


@pytest.mark.parametrize(
    ("script", "note"),
    [("exit 9", "exit status 9"), ("echo a, b", "not understood"), ("", "lists no GPU")],
)
def test_a_broken_nvidia_smi_is_said(
    script: str, note: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    gpus, said = machine.gpus_seen()
    assert gpus == []
    assert note in said


@pytest.mark.parametrize(
    ("chosen", "left"),
    [
        (None, ["GPU-1a", "GPU-2b"]),
        ("", []),
        ("1", ["GPU-2b"]),
        ("1, 0", ["GPU-1a", "GPU-2b"]),
        ("GPU-1", ["GPU-1a"]),
        ("7", []),
    ],
)
def test_a_machine_is_the_gpus_that_may_be_used(chosen: str | None, left: list[str]) -> None:
    gpus = [{"uuid": "GPU-1a"}, {"uuid": "GPU-2b"}]
    assert [gpu["uuid"] for gpu in machine.visible(gpus, chosen)] == left
