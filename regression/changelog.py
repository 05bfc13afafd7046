"""The entry that accompanies renewed goldens."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from regression import table
from regression.results import GroupResult

UNRELEASED = "## Unreleased"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What was accepted, of which kernel, and why. `first` when there were no goldens of `arch` before."""

    reason: str
    arch: str
    kernel: str
    date: str
    first: bool
    results: Sequence[GroupResult]

    def text(self) -> str:
        """The Markdown section: heading, kernel, counts and table."""
        lead = f"{len(self.results)} groups, {self.kernel}, {self.date}. {self._counts()}"
        heading = f"### {self.arch}, bits changed: accepted because {self.reason}"
        return f"{heading}\n\n{lead}\n\n{table.markdown(self.results)}"

    def _counts(self) -> str:
        if self.first:
            return "First goldens."
        counts = Counter(group.trend for group in self.results)
        words = ("improved", "worsened", "tied", "same")
        return "Against the old goldens: " + ", ".join(f"{counts[word]} {word}" for word in words) + "."


def inserted(changelog: str, entry: Entry) -> str:
    """The changelog with the entry at the end of its Unreleased section, which is made if there is none."""
    head, heading, tail = changelog.partition(UNRELEASED + "\n")
    if not heading:
        title, _, rest = changelog.partition("\n\n")
        return f"{title}\n\n{UNRELEASED}\n\n{entry.text()}\n{rest}"
    section, next_heading, rest = tail.partition("\n## ")
    return f"{head}{heading}{section.rstrip()}\n\n{entry.text()}{next_heading}{rest}"


def staged(path: Path, text: str) -> Path:
    """Write the text, safely on disk, beside `path`; `os.replace` then puts it there in one step."""
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    temporary = Path(name)
    temporary.chmod(path.stat().st_mode if path.exists() else 0o644)
    return temporary
