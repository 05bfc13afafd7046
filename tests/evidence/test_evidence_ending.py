"""Where a result goes: nothing of somebody else's is written over, nothing of an earlier run stays."""

import json
from pathlib import Path

import pytest

from evidence import ending
from evidence.ending import EXIT_CODES, OUTCOMES, Verdict

NAME = "20261130T055000165-faults-host-sm_70-8dbc941837a2e81a.json"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        f'["{NAME}", "{"0f" * 32}"]',
        '[{"outcome": "fail"}, {"outcome": "pass"}]',
        '{"outcome": "pass"}',
        '{"verdict": "admitted", "x": 1}',
        '{"verdict": {"word": "rejected"}, "cases": []}',
        '{"added": [], "known": [], "refused": []}',
        '{"bits-differ": {"meaning": "x", "advice": "y"}}',
    ],
)
def test_an_earlier_result_is_deleted(tmp_path: Path, text: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(text)
    assert ending.prepare(path) is None and not path.exists()


@pytest.mark.parametrize(
    "text",
    [
        "[project]\n",
        "{}",
        "[1]",
        '["alice", "bob"]',
        '[{"name": "x"}]',
        '[{"outcome": "won"}]',
        '{"added": "2025-01-01", "my": "data"}',
        '{"verdict": "guilty"}',
        '{"verdict": {"word": ["admitted"]}}',
        '{"name": "x"}',
        "3",
        '{"outcome": ',
    ],
)
def test_what_is_no_result_is_kept(tmp_path: Path, text: str) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(text)
    assert "is no result of an earlier run: choose another path" in (ending.prepare(path) or "")
    assert path.read_text() == text


def test_a_path_that_cant_be_written_is_named_before_anything_runs(tmp_path: Path) -> None:
    assert ending.prepare(None) is None
    assert ending.prepare(tmp_path / "new" / "r.json") is None and (tmp_path / "new").is_dir()
    assert "no result" in (ending.prepare(tmp_path) or "")
    (tmp_path / "file").write_text("")
    assert "choose another path" in (ending.prepare(tmp_path / "file" / "r.json") or "")


@pytest.mark.parametrize("word", sorted(OUTCOMES))
def test_the_verdict_is_printed_and_written(
    tmp_path: Path, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "r.json"
    status = ending.end(Verdict(word=word, code="no-gpu", text="there is\nnone"), path)
    assert (
        status == EXIT_CODES[word] and capsys.readouterr().out == f"verdict: {word} (no-gpu: there is none)\n"
    )
    assert json.loads(path.read_text()) == {
        "outcome": OUTCOMES[word],
        "reasons": [{"code": "no-gpu", "text": "there is\nnone"}],
    }
    assert ending.prepare(path) is None


def test_what_was_written_before_stays(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    ending.write(path, {"outcome": "pass", "more": 1})
    assert ending.end(Verdict(word="admitted", code="same", text=""), path) == 0
    assert json.loads(path.read_text())["more"] == 1
    ending.write(None, {})


def test_a_record_is_never_a_place_for_a_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELGATE_HOME", str(tmp_path))
    (record := tmp_path / "records" / "r.json").parent.mkdir()
    record.write_text('{"outcome": "pass"}')
    assert "among the records" in (ending.prepare(record) or "") and record.exists()


def test_the_last_of_two_places_counts() -> None:
    assert ending.asked_for(["--json", "a", "--json=b"]) == Path("b")
    assert ending.asked_for([]) is ending.asked_for(["--json"]) is None


def test_a_link_that_leads_nowhere_is_left_alone(tmp_path: Path) -> None:
    (link := tmp_path / "r.json").symlink_to(tmp_path / "elsewhere")
    assert "choose another path" in (ending.prepare(link) or "")
    assert link.is_symlink() and not link.exists()


@pytest.mark.parametrize("option", ["--json {}", "--json={}"])
@pytest.mark.parametrize("before", [None, '{"outcome": "pass"}'])
def test_a_mistyped_option_ends_with_a_line_and_a_result(
    tmp_path: Path, option: str, before: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = ending.Parser(prog="p")
    verb = parser.add_subparsers(required=True).add_parser("verb")
    verb.add_argument("--json", type=Path)
    verb.add_argument("--groups")
    path = tmp_path / "r.json"
    if before is not None:
        path.write_text(before)
    for wrong in ("--grups", "--group"):
        with pytest.raises(SystemExit) as stop:
            parser.parse_args(["verb", *option.format(path).split(), wrong, "x"])
        out = capsys.readouterr().out
        assert stop.value.code == 2 and out.startswith("verdict: unknown (usage: ") and wrong in out
        assert json.loads(path.read_text())["reasons"][0]["code"] == "usage"


def test_a_mistyped_option_leaves_somebody_elses_file_alone(tmp_path: Path) -> None:
    (path := tmp_path / "r.json").write_text('{"mine": 1}')
    with pytest.raises(SystemExit):
        ending.Parser().parse_args(["--json", str(path)])
    assert path.read_text() == '{"mine": 1}'


def test_a_mistake_of_the_caller_is_exit_status_2() -> None:
    assert ending.end(Verdict(word="unknown", code="usage", text="x")) == EXIT_CODES["usage"] == 2
