"""Where results are written, and that a path which can't take them says so before anything runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from regression import cli


@pytest.mark.parametrize("where", ["", "notes.txt/x.json", "notes.txt"])
def test_results_never_take_the_place_of_another_file(
    where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    assert cli.main(["replay", "--groups", "nope", "--json", str(tmp_path / where)]) == 2
    assert "--json" in capsys.readouterr().out.splitlines()[-1]
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_an_earlier_result_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps({"outcome": "pass", "of": "an earlier run"}))
    assert cli.main(["replay", "--groups", "nope", "--json", str(path)]) == 2
    assert "of" not in json.loads(path.read_text())


@pytest.mark.parametrize(("name", "code"), [("foo", 2), ("os.path:join", 1)])
def test_a_callable_is_named_or_judged(name: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["replay", "--groups", "3x64-8k-00", "--backend", "host", "--callable", name]) == code
    assert "machinery" not in capsys.readouterr().out
