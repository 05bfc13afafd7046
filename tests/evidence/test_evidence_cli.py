"""`python -m evidence`: its words, tables and exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from evidence import cli, instrument, pack, policy, question, reasons, report, store
from evidence.instrument import Instrument
from evidence.question import Question, Side
from evidence.record import Reason, Record, RecordError
from evidence.store import Unreadable
from fixtures import integrity

Complete = Callable[[Question], list[Record]]


def side_json(side: Side) -> dict[str, Any]:
    """What `python -m artifacts build --json` writes."""
    artifacts = [{**asdict(s), "library": "/x.so", "directory": "/x"} for s in side.subjects]
    missing = None if side.missing is None else asdict(side.missing)
    body = {"schema": 1, "origin": side.origin, "revision": side.revision, "dirty": list(side.dirty)}
    body["binding"] = side.binding
    return {**body, "missing": missing, "artifacts": artifacts, "failed": []}


@pytest.fixture
def ask(tmp_path: Path) -> Callable[..., int]:
    """Runs `verdict` for a question's two sides."""

    def run(asked: Question, *more: str) -> int:
        for name, side in (("candidate", asked.candidate), ("base", asked.base)):
            (tmp_path / f"{name}.json").write_text(json.dumps(side_json(side)))
        sides = ["--candidate", str(tmp_path / "candidate.json"), "--base", str(tmp_path / "base.json")]
        return cli.main(["verdict", *sides, "--inputs", asked.inputs, *more])

    return run


@pytest.fixture
def fresh(complete: Complete) -> Complete:
    """Records that carry this checkout's instrument."""

    def make(asked: Question) -> list[Record]:
        return [
            replace(r, instrument=Instrument(version="1", digest=instrument.of(r.kind).digest))
            for r in complete(asked)
        ]

    return make


def keep(records: list[Record]) -> None:
    for value in records:
        store.append(value)


def test_verdict_admits_with_the_last_line(
    unchanged: Question,
    fresh: Complete,
    ask: Callable[..., int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    keep(fresh(unchanged))
    out = tmp_path / "verdict.json"
    assert ask(unchanged, "--run", "run-1", "--json", str(out)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "verdict: admitted (host; cuda unchanged)"
    assert sum(line.startswith("verdict:") for line in lines) == 1
    value = json.loads(out.read_text())
    assert (value["verdict"], value["exit_code"], value["line"]) == ("admitted", 0, lines[-1])
    assert len(value["findings"]) == len(policy.requirements(unchanged))


@pytest.mark.parametrize(
    ("outcome", "word", "code"), [("fail", "rejected", 1), ("error", "unknown", 4), ("unknown", "unknown", 4)]
)
def test_verdict_words_and_codes(
    outcome: str,
    word: str,
    code: int,
    unchanged: Question,
    fresh: Complete,
    ask: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    records = fresh(unchanged)
    keep(
        [replace(records[0], outcome=outcome, reasons=(Reason(code="bits-differ", text="x"),)), *records[1:]]
    )
    assert ask(unchanged) == code
    assert capsys.readouterr().out.splitlines()[-1].startswith(f"verdict: {word} (bits-differ: ")


def test_verdict_of_a_dirty_tree_gives_3(
    unchanged: Question, fresh: Complete, ask: Callable[..., int]
) -> None:
    keep(fresh(unchanged))
    assert ask(replace(unchanged, candidate=replace(unchanged.candidate, dirty=("a",)))) == 3


def test_verdict_takes_the_run_from_the_environment(
    unchanged: Question, fresh: Complete, ask: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(fresh(unchanged))
    assert ask(unchanged) == 0
    monkeypatch.setenv("KERNELGATE_RUN", "another run")
    assert ask(unchanged) == 4


def test_damaged_store_is_unknown_and_named(
    unchanged: Question,
    fresh: Complete,
    ask: Callable[..., int],
    home: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    keep(fresh(unchanged))
    (home / "records" / "bad.json").write_text("{")
    assert ask(unchanged) == 4
    assert "bad.json" in capsys.readouterr().out.splitlines()[-1]
    for verb in ("list", "report"):
        assert cli.main([verb]) == 4
        assert "bad.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": 1}', '{"schema": 1, "missing": 3, "revision": 1}']
)
def test_unreadable_side_is_the_machinerys_failure(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.json").write_text(text)
    arguments = ["verdict", "--candidate", str(tmp_path / "x.json"), "--base", str(tmp_path / "x.json")]
    assert cli.main(arguments) == 5
    assert capsys.readouterr().out.splitlines()[-1].startswith("verdict: unknown (machinery: ")


def test_sides_are_read_back(unchanged: Question) -> None:
    read = question.parse_side(side_json(unchanged.candidate), "here")
    assert replace(read, places={}) == unchanged.candidate
    assert read.places[("host", "sm_70")] == "/x"
    missing = Side(missing=Reason(code="no-git", text="x"))
    assert question.parse_side(side_json(missing), "here") == missing
    failed = {
        **side_json(missing),
        "failed": [{"backend": "cuda", "arch": "sm_70", "text": "a\nb", "log": "/log"}],
    }
    assert question.parse_side(failed, "here").failed[("cuda", "sm_70")].text == "cuda sm_70: a (log: /log)"
    with pytest.raises(RecordError, match="dirty"):
        question.parse_side({**side_json(missing), "dirty": "abc"}, "here")


def test_default_inputs_are_the_fixtures_manifest() -> None:
    assert cli.places.inputs_hash() == integrity.manifest_hash()


def test_pack_and_import_commands(
    changed: Question, fresh: Complete, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["pack", str(tmp_path / "empty.zip")]) == 4
    keep(fresh(changed))
    assert cli.main(["pack", str(tmp_path / "a.zip"), "--kind", "replay"]) == 0
    there = str(tmp_path / "there")
    assert cli.main(["import", str(tmp_path / "a.zip"), "--records", there]) == 0
    assert {r.kind for r in store.load(Path(there)).records} == {"replay"}
    assert cli.main(["pack", str(tmp_path / "a.zip")]) == 5
    assert "exists" in capsys.readouterr().err


def test_import_names_what_it_refuses(
    changed: Question, fresh: Complete, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import zipfile

    pack.write(fresh(changed), tmp_path / "a.zip")
    with zipfile.ZipFile(tmp_path / "a.zip", "a") as out:
        out.writestr("../evil.json", "{}")
    assert cli.main(["import", str(tmp_path / "a.zip")]) == 4
    assert "refused ../evil.json" in capsys.readouterr().err
    (tmp_path / "noise.zip").write_bytes(b"noise")
    assert cli.main(["import", str(tmp_path / "noise.zip")]) == 5


def test_report_shows_every_record(
    changed: Question, fresh: Complete, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["report"]) == 0
    records = fresh(changed)
    keep(records)
    page = tmp_path / "report.md"
    assert cli.main(["report", "--markdown", str(page), "--json", str(tmp_path / "r.json")]) == 0
    printed = capsys.readouterr().out
    assert printed.count("replay") == sum(r.kind == "replay" for r in records)
    assert "H200 driver 580.1" in printed
    assert len([line for line in page.read_text().splitlines() if line.startswith("| 20")]) == len(records)
    assert len(json.loads((tmp_path / "r.json").read_text())) == len(records)
    assert cli.main(["report", "--markdown", str(page)]) == 0
    page.write_text("# Mine\n")
    assert cli.main(["report", "--markdown", str(page)]) == 2 and page.read_text() == "# Mine\n"
    assert f"usage: --markdown {page} is no result" in capsys.readouterr().err


def test_markdown_escapes_and_names_the_unreadable(changed: Question, complete: Complete) -> None:
    odd = replace(complete(changed)[0], outcome="fail", reasons=(Reason(code="a|b", text="x"),))
    text = report.markdown([odd], [Unreadable(path=Path("bad.json"), why="bad.json: cut | short")])
    assert "a\\|b" in text
    assert "bad.json: cut \\| short" in text


def test_list_filters_by_run(changed: Question, fresh: Complete, capsys: pytest.CaptureFixture[str]) -> None:
    records = fresh(changed)
    keep([replace(records[0], run_id="other"), *records[1:]])
    assert cli.main(["list", "--run", "other"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["explain", "bits-differ"]) == 0
    assert "golden" in capsys.readouterr().out
    assert cli.main(["explain"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(reasons.CODES)
    assert cli.main(["explain", "nonsense"]) == 2


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["verdict"], ["pack"], ["import"]])
def test_usage_gives_2(arguments: list[str]) -> None:
    assert cli.main(arguments) == 2


@pytest.mark.parametrize("verb", ["verdict", "report", "list", "pack", "import", "explain"])
def test_every_verb_has_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([verb, "--help"]) == 0
    assert "--json" in capsys.readouterr().out


def test_every_reason_code_in_the_sources_is_explained() -> None:
    import re

    root = Path(__file__).parents[2]
    packages = ("artifacts", "evidence", "benchmarks", "regression", "sanitizer")
    found = {
        code
        for package in packages
        for path in sorted((root / package).rglob("*.py"))
        for code in re.findall(
            r"(?:Reason\(\s*code=|\b(?:Artifacts|Costs|Subject|Tool)Error\(\s*|found\.append\(\(\s*"
            r'|judge\.(?:unknown|error)\(\s*)"([a-z0-9-]+)"',
            path.read_text(),
        )
    }
    assert len(found) > 20
    assert found <= set(reasons.CODES) | {
        "packages",
        "python",
        "nvrtc",
        "gpu",
        "sanitizer",
        "asan",
        "git",
        "disk",
    }


def test_module_runs() -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "evidence", "explain", "dirty-tree"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0
    assert "commit" in done.stdout
