"""One commit against the good one: `python -m benchmarks.bisect.step SETTINGS`, which `git bisect run` calls.

Exit status, in git's words: 0 good, 1 bad, 125 can't tell, 255 stop.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from artifacts.errors import ArtifactsError
from benchmarks.abba import decision
from benchmarks.bisect import search
from benchmarks.bisect.settings import Settings

GOOD, BAD, SKIP, STOP = 0, 1, 125, 255
WORDS = {GOOD: "good", BAD: "slower", SKIP: "can't tell", STOP: "failed"}
MACHINERY = (2, 5)  # abba's exit status when a comparison could not even be asked for
TIMEOUT_S = 3600


@dataclass(frozen=True, kw_only=True)
class Step:
    """What one comparison said: is the commit's time over the good one's, with its interval, above `limit`?

    `status` is what git is told. An interval that contains the limit is no opinion: the commit is skipped.
    """

    commit: str
    status: int
    reason: str
    limit: float = 1.0
    ratio: float | None = None
    low: float | None = None
    high: float | None = None

    def line(self) -> str:
        """For a person."""
        ratio = "" if self.ratio is None else f" {self.ratio:.4f} [{self.low:.4f}, {self.high:.4f}]"
        return f"{self.commit[:12]}{ratio} {WORDS[self.status]} ({self.reason})"


def measure(settings: Settings, commit: str) -> Step:
    """Compare a commit with the good one, and write the step into the journal."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "abba.json"
        sides = ["--base", settings.good, "--candidate", commit]
        rule = [*_rule(settings), "--json", str(path)]
        command = [sys.executable, *settings.measure, *sides, *settings.options, *rule]
        try:
            done = subprocess.run(
                command,
                cwd=settings.root,
                env=search.environment(),
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return _kept(settings, Step(commit=commit, status=SKIP, reason=f"ran past {TIMEOUT_S} s"))
        record = json.loads(path.read_text()) if path.is_file() else None
    return _kept(settings, understand(commit, done, record, limit=1 + settings.threshold))


def _rule(settings: Settings) -> list[str]:
    """abba samples on while the limit lies inside the interval, and stops as soon as it does not."""
    limit = str(settings.threshold)
    margin = ["--margin", limit, "--resolution", limit] if settings.threshold else []
    return ["--alpha", str(settings.alpha), "--reject-above", limit, *margin]


def understand(
    commit: str, done: subprocess.CompletedProcess[str], record: dict[str, Any] | None, *, limit: float
) -> Step:
    """A step from abba's exit status, last line and record."""
    last = ((done.stdout.strip() or done.stderr.strip()).splitlines() or ["no message"])[-1]
    reason = last.removeprefix("verdict: ")
    if done.returncode in MACHINERY or not last.startswith("verdict: "):
        return Step(commit=commit, status=STOP, reason=reason)
    if "(identical:" in last:
        return Step(commit=commit, status=GOOD, reason="the same code")
    if record is None:
        return Step(commit=commit, status=SKIP, reason=reason)
    (found,) = record["results"]["comparisons"]
    return _judged(commit, found, reason, limit)


def _judged(commit: str, found: dict[str, Any], reason: str, limit: float) -> Step:
    """What a comparison's interval says. Other bits are another question than time: no opinion."""
    ends = {name: found[name] for name in ("ratio", "low", "high")}
    if found["alarm"] is not None:
        reason = f"{found['alarm']['code']}: {found['alarm']['text']}"
    if found["alarm"] is not None or None in ends.values() or found["word"] == decision.UNKNOWN:
        return Step(commit=commit, status=SKIP, reason=reason)
    is_same = limit == 1 and found["word"] == decision.SAME  # of the ends, before there is a threshold
    status = BAD if found["low"] > limit else GOOD if found["high"] < limit or is_same else SKIP
    text = f"{found['valid_rounds']} rounds, against {limit:.4f}"
    return Step(commit=commit, status=status, reason=text, limit=limit, **ends)


def _kept(settings: Settings, step: Step) -> Step:
    with Path(settings.journal).open("a") as journal:
        journal.write(json.dumps(asdict(step)) + "\n")
    print(step.line(), flush=True)
    return step


def main() -> int:
    """Measure the commit that git bisect stands at."""
    settings = Settings.read(Path(sys.argv[1]))
    try:
        commit = search.git_text(Path(settings.clone), "rev-parse", "--verify", "BISECT_HEAD")
    except ArtifactsError as error:
        print(f"git bisect stands nowhere: {error.text}", file=sys.stderr)
        return STOP
    return measure(settings, commit).status


if __name__ == "__main__":
    sys.exit(main())
