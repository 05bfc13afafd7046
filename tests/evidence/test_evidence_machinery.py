"""What isn't the evidence's fault: readers that leave early, and bugs of ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evidence import cli


@pytest.mark.parametrize("command", ["evidence explain", "artifacts list", "fixtures list"])
def test_a_reader_that_has_enough_is_no_failure(command: str, home: Path) -> None:
    root = Path(__file__).parents[2]
    environment = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'kernels'}"}
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", *command.split()], cwd=root, env=environment, stdout=writing,
        stderr=subprocess.PIPE, timeout=120, check=False,
    )  # fmt: skip
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")
    assert home


def test_a_bug_of_ours_leaves_its_traceback(
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ValueError("unforeseen")

    monkeypatch.setattr(cli.question, "read_side", broken)
    assert cli.main(["verdict", "--candidate", "a.json", "--base", "b.json"]) == 5
    (log,) = (home / "logs").iterdir()
    assert "in broken" in log.read_text()
    shown = capsys.readouterr()
    assert shown.out.splitlines()[-1].startswith(
        "verdict: unknown (machinery: ValueError: unforeseen; traceback in"
    )
    assert str(log) in shown.err
