"""The history: asv on stand-in suites, result files, what is named when it can't be drawn, the verdict."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest
from history_repo import MACHINE, ROOT, Project

from artifacts import Side
from artifacts.errors import ArtifactsError
from benchmarks import cli
from benchmarks.history import audit, command, commits, machine_key, results, runner
from benchmarks.history.commits import Commit
from benchmarks.history.results import ResultsError
from benchmarks.history.runner import Desk


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project whose commits are measured in a second or two, as if on the stand-in machine."""
    made = Project(tmp_path / "project")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'kernels'}")
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    monkeypatch.setattr(command.places, "root", lambda: made.root)
    monkeypatch.setattr(machine_key, "describe", lambda: dict(MACHINE))
    monkeypatch.setattr(command, "_side", lambda _task: Side(origin="stand-in"))
    return made


def history(capsys: pytest.CaptureFixture[str], folder: Path, *arguments: str) -> tuple[int, str]:
    code = cli.main(["history", "--results", str(folder), *arguments])
    return code, capsys.readouterr().out


def test_no_commits_are_no_number_of_commits(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert [history(capsys, tmp_path, "--last", number)[0] for number in ("0", "-1")] == [2, 2]


def test_commits_are_measured_once_and_samples_kept(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [project.commit(text) for text in ("one", "two", "three")]
    folder = tmp_path / "results"
    code, text = history(capsys, folder, "--last", "2", "--json", str(tmp_path / "h.json"))
    assert code == 0
    kept = "8 results of 2 commits kept, 2 not for this machine; nothing was compared"
    assert text.splitlines()[-1] == f"verdict: admitted (measured: {kept})"
    stated = json.loads((tmp_path / "h.json").read_text())
    assert [one["commit"] for one in stated["commits"]] == names[1:]
    (first, second) = (results.read(path) for path in results.files(folder))
    assert {first.commit, second.commit} == set(names[1:])
    row = first.rows["figures.Figures.track_time"]
    assert row["result"] == pytest.approx([70.4, 140.8]) and row["samples"][0] == [64.0, 70.4, 76.8]
    assert "-prepared-py3." in first.path.name
    assert not (tmp_path / "user" / ".asv-machine.json").exists(), "asv must not write to the user's home"
    code, text = history(capsys, folder, "--last", "2")
    assert code == 0 and text.count("complete already") == 2
    history(capsys, folder, "--rev", names[1], "--again")
    assert (
        len(
            results.read(first.path if first.commit == names[1] else second.path).rows[
                "figures.Figures.track_time"
            ]["samples"][0]
        )
        == 6
    )


def test_a_tree_without_git_takes_the_commit_by_name(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "results"
    folder.mkdir()
    (project.root / ".git").rename(project.root / "no.git")
    desk = Desk(root=project.root, work=tmp_path, results=folder)
    (tmp_path / "side.json").write_text("{}")
    assert runner.measure(desk, Commit(name="a" * 40), tmp_path / "side.json", MACHINE, None) == 0
    (path,) = results.files(folder)
    assert results.read(path).commit == "a" * 40 and path.parent.name == MACHINE["machine"]
    options = argparse.Namespace(artifact=Path("x"), commit="abc123")
    monkeypatch.setattr(command, "from_path", lambda _path: Side(origin="x"))
    with pytest.raises(ArtifactsError, match="40 digits"):
        command._commit_of(options)
    options.commit = None
    with pytest.raises(ArtifactsError, match="names no commit"):
        command._commit_of(options)
    monkeypatch.setattr(command, "from_path", lambda _path: Side(origin="x", revision="b" * 40))
    assert command._commit_of(options) == Commit(name="b" * 40)
    options.commit = "c" * 40
    with pytest.raises(ArtifactsError, match="not of cccc"):
        command._commit_of(options)


def test_a_failed_rerun_loses_nothing_and_does_not_pass(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    project.commit("one")
    folder = tmp_path / "results"
    history(capsys, folder)
    (path,) = results.files(folder)
    before = path.read_bytes()
    monkeypatch.setenv("STAND_IN_FAILS", "1")
    code, text = history(capsys, folder, "--again")
    assert code == 4 and "kept the earlier result of figures.Figures.track_count" in text
    assert text.splitlines()[-1].startswith("verdict: unknown (results-missing: ")
    assert path.read_bytes() == before and path.with_suffix(".incomplete").exists()
    path.unlink()
    code, text = history(capsys, folder)
    assert code == 4 and "failed: figures.Figures.track_count(64)" in text


def test_results_of_another_protocol_are_kept_and_named(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    project.commit("one")
    folder = tmp_path / "results"
    history(capsys, folder)
    (path,) = results.files(folder)
    before = path.read_bytes()
    project.commit("two")
    monkeypatch.setenv("STAND_IN_VERSION", "stand-in-2")
    _, text = history(capsys, folder)
    assert "other protocol: figures.Figures.track_count, figures.Figures.track_time" in text
    _, text = history(capsys, folder, "--rev", "HEAD~1")
    (kept,) = folder.glob("*/*.superseded")
    assert kept.read_bytes() == before and str(kept) in text


def test_a_rewritten_history_is_named(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project.commit("one")
    gone = project.commit("two")
    folder = tmp_path / "results"
    history(capsys, folder)
    project.git("commit", "--quiet", "--amend", "--message", "two, reworded")
    lines = audit.complaints(project.root, folder)
    assert lines == [f"results kept but not drawn: {gone[:12]} (no branch or tag reaches it: rebased away)"]
    project.git("branch", "aside", gone)
    assert "not on the branch that is drawn" in audit.complaints(project.root, folder)[0]
    (path,) = results.files(folder)
    path.write_text(path.read_text().replace(gone, "d" * 40))
    assert "no such commit here" in audit.complaints(project.root, folder)[0]
    path.write_text("{")
    assert audit.complaints(project.root, folder)[0].startswith("unreadable: ")


def test_commits_that_changed_the_product_are_the_last(project: Project) -> None:
    first = project.commit("one")
    (project.root / "readme").write_text("words")
    project.git("add", ".")
    project.git("commit", "--quiet", "--message", "words")
    second = project.commit("two")
    assert [one.name for one in commits.last(project.root, 5)] == [first, second]
    assert all(one.date_ms > 1e12 for one in commits.last(project.root, 5))
    with pytest.raises(ArtifactsError, match="no such revision"):
        commits.named(project.root, "nowhere")


def test_another_machines_results_are_taken_and_differing_ones_named(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    for folder, content in ((here, "1"), (there, "2")):
        (folder / "m").mkdir(parents=True)
        (folder / "m" / "both.json").write_text(content)
    (there / "n").mkdir()
    (there / "n" / "new.json").write_text("3")
    count, (line,) = audit.take(there, here)
    assert count == 1 and line.endswith("both.json") and (here / "m" / "both.json").read_text() == "1"
    assert (here / "n" / "new.json").read_text() == "3"
    with pytest.raises(ResultsError, match="no such folder"):
        audit.take(tmp_path / "nowhere", here)


def test_taking_over_measures_nothing(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project.commit("one")
    (tmp_path / "there" / "m").mkdir(parents=True)
    (tmp_path / "there" / "m" / "machine.json").write_text("{}")
    code, text = history(capsys, tmp_path / "here", "--take", str(tmp_path / "there"))
    assert code == 0 and text.splitlines()[-1].startswith(
        "verdict: admitted (taken: 1 files taken over, 0 left"
    )


def test_a_commit_that_cannot_be_built_stops_no_other(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [project.commit("one"), project.commit("two")]

    def side(task: command.Task) -> Side:
        if task.commit.name == names[0]:
            raise ArtifactsError("no-kernels", "nothing to build")
        return Side(origin="stand-in")

    monkeypatch.setattr(command, "_side", side)
    code, text = history(capsys, tmp_path / "results", "--last", "2")
    assert code == 4 and text.splitlines()[-1].endswith(
        f"first {names[0][:12]}: no-kernels: nothing to build)"
    )
    assert [results.read(path).commit for path in results.files(tmp_path / "results")] == [names[1]]
