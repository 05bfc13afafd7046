"""Finding the first slow commit in throw-away repositories, with neighbours that disturb the times."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from artifacts.errors import ArtifactsError
from benchmarks import cli
from benchmarks.bisect import command, step
from benchmarks.bisect.command import Answer, Question, comparisons

SIMULATED = Path(__file__).parent / "support" / "simulated_abba.py"
PLANTED = 0.1


class History:
    """A repository of commits, each with the time that its kernel takes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")
        self.commits: list[str] = []

    def git(self, *arguments: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        done = subprocess.run(
            ["git", *identity, *arguments], cwd=self.folder, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    def add(self, **facts: Any) -> str:
        (self.folder / "time.json").write_text(json.dumps({"slowdown": 0.0, "neighbours": 0.1, **facts}))
        (self.folder / "number").write_text(str(len(self.commits)))
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", f"change {len(self.commits)}")
        self.commits.append(self.git("rev-parse", "HEAD"))
        return self.commits[-1]

    def state(self) -> tuple[str, ...]:
        questions = (
            ("rev-parse", "HEAD"),
            ("status", "--porcelain"),
            ("for-each-ref",),
            ("worktree", "list"),
        )
        return tuple(self.git(*question) for question in questions)


def search(history: History, monkeypatch: pytest.MonkeyPatch, *, seed: int = 0) -> Answer:
    monkeypatch.setenv("SIMULATED_SEED", str(seed))
    monkeypatch.setenv("PYTHONPATH", str(SIMULATED.parent))
    question = Question(
        root=history.folder,
        good=history.commits[0],
        bad=history.commits[-1],
        options=(),
        error_rate=0.05,
        measure=(str(SIMULATED),),
    )
    return command.answer_to(question)


def planted(folder: Path, count: int, first_slow: int) -> History:
    history = History(folder)
    for number in range(count):
        history.add(slowdown=PLANTED if number >= first_slow else 0.0)
    return history


@pytest.mark.parametrize("seed", range(10))
def test_the_planted_commit_is_found_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    first_slow = 1 + seed % 5
    history = planted(tmp_path / "repo", 6, first_slow)
    before = history.state()
    answer = search(history, monkeypatch, seed=seed)
    assert answer.suspects == (history.commits[first_slow],)
    assert (answer.verdict.word, answer.verdict.code) == ("rejected", "located")
    assert history.commits[first_slow][:12] in answer.verdict.text
    assert len(answer.steps) <= comparisons(5)
    assert history.state() == before, "the checkout must stay as it was"


def test_commits_that_cannot_be_built_leave_a_range(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(tmp_path / "repo")
    history.add()
    history.add()
    hidden = [history.add(refuses=True), history.add(refuses=True, slowdown=PLANTED)]
    hidden.append(history.add(slowdown=PLANTED))
    answer = search(history, monkeypatch)
    assert (answer.verdict.word, answer.verdict.code) == ("undecided", "bisect-ambiguous")
    assert answer.suspects == tuple(hidden)
    assert "2 commits could not be judged" in answer.verdict.text


def test_a_commit_that_cannot_be_built_does_not_hide_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History(tmp_path / "repo")
    for _ in range(3):
        history.add()
    history.add(refuses=True)
    history.add()
    slow = history.add(slowdown=PLANTED)
    history.add(slowdown=PLANTED)
    assert search(history, monkeypatch).suspects == (slow,)


def test_a_failing_machinery_stops_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(tmp_path / "repo")
    history.add()
    history.add(breaks=True)
    history.add(slowdown=PLANTED)
    answer = search(history, monkeypatch)
    assert (answer.verdict.word, answer.verdict.code) == ("unknown", "bisect-stopped")
    assert "no space left" in answer.verdict.text and len(answer.suspects) == 2


def test_without_a_slowdown_there_is_nothing_to_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(tmp_path / "repo")
    for _ in range(3):
        history.add(neighbours=0.0)
    answer = search(history, monkeypatch)
    assert (answer.verdict.word, answer.verdict.code) == ("admitted", "no-slower")
    assert len(answer.steps) == 1, "only the ends are compared"


def test_ends_that_have_no_way_between_them_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = planted(tmp_path / "repo", 2, 1)
    history.commits.reverse()
    with pytest.raises(ArtifactsError, match="no ancestor"):
        search(history, monkeypatch)


def test_an_unknown_revision_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bisect", "--good", "no-such-revision", "--backend", "host"]) == 4
    assert capsys.readouterr().out.startswith("verdict: unknown (bad-revision: no-such-revision")


def finished(code: int, last: str) -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess(args=[], returncode=code, stdout=f"noise\n{last}\n", stderr="")


def comparison(**changes: Any) -> dict[str, Any]:
    found = {"word": "slower", "ratio": 1.1, "low": 1.05, "high": 1.2, "alarm": None, "valid_rounds": 9}
    return {"results": {"comparisons": [found | changes]}}


@pytest.mark.parametrize(
    ("code", "last", "record", "status"),
    [
        (0, "verdict: admitted (identical: both sides are the code 12)", None, step.GOOD),
        (4, "verdict: unknown (host-clock: a test)", comparison(), step.BAD),
        (4, "verdict: unknown (host-clock: a test)", comparison(word="same", low=0.99, high=1.01), step.GOOD),
        (
            0,
            "verdict: admitted (no-slower: faster)",
            comparison(word="faster", low=0.9, high=0.99),
            step.GOOD,
        ),
        (3, "verdict: undecided (time-undecided: 1)", comparison(word="undecided", low=0.9), step.SKIP),
        (0, "verdict: admitted (no-slower: slower)", comparison(low=1.001, high=1.01), step.GOOD),
        (0, "verdict: admitted (no-slower: slower)", comparison(low=1.001, high=1.03), step.SKIP),
        (4, "verdict: unknown (too-few-samples: 1)", comparison(word="unknown", low=None), step.SKIP),
        (4, "verdict: unknown (build-failed: error)", None, step.SKIP),
        (
            1,
            "verdict: rejected (bits-differ: 3)",
            comparison(alarm={"code": "bits-differ", "text": "3"}),
            step.SKIP,
        ),
        (5, "verdict: unknown (machinery: OSError)", None, step.STOP),
        (2, "error: no such option", None, step.STOP),
        (1, "ModuleNotFoundError: No module named 'torch'", None, step.STOP),
        (-9, "", None, step.STOP),
    ],
)
def test_what_git_is_told(code: int, last: str, record: dict[str, Any] | None, status: int) -> None:
    assert step.understand("f" * 40, finished(code, last), record, limit=1.02).status == status


def test_ends_that_are_the_same_within_the_margin_are_no_slowdown() -> None:
    record = comparison(word="same", low=0.999, high=1.001)
    last = "verdict: admitted (same: same in 1 comparisons)"
    assert step.understand("f" * 40, finished(0, last), record, limit=1.0).status == step.GOOD
