"""Findings that are known and accepted: only from a file, each entry with a reason and an expiry.

[[suppress]]
tool = "racecheck"
file = "*/loader_async.cuh"     # any of kind, kernel, file, case: patterns; at least one
reason = "why it is harmless"
expires = 2027-01-31
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from sanitizer.findings import Finding

LONGEST = timedelta(days=366)
PATTERNS = ("tool", "kind", "kernel", "file", "case")


class SuppressionError(ValueError):
    """The file is not understood; the text names the entry."""


@dataclass(frozen=True, kw_only=True)
class Suppression:
    """An entry that has not expired applies to findings that fit all its patterns."""

    patterns: Mapping[str, str]
    reason: str
    expires: date

    def applies(self, finding: Finding, today: date) -> bool:
        """True on the day of the expiry too, not after."""
        return today <= self.expires and all(
            fnmatchcase(str(getattr(finding, name)), pattern) for name, pattern in self.patterns.items()
        )


def read(path: Path | None, today: date | None = None) -> tuple[Suppression, ...]:
    """All entries, none without a file; SuppressionError names what is wrong."""
    if path is None:
        return ()
    try:
        value = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SuppressionError(f"{path}: {error}") from error
    entries = value.get("suppress")
    if set(value) != {"suppress"} or not isinstance(entries, list):
        raise SuppressionError(f"{path}: holds [[suppress]] entries and nothing else")
    latest = (today or date.today()) + LONGEST
    return tuple(_entry(entry, f"{path}, entry {number}", latest) for number, entry in enumerate(entries, 1))


def split(
    findings: Sequence[Finding], entries: Sequence[Suppression], today: date | None = None
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Findings that stand, and those that an entry suppresses."""
    day = today or date.today()
    hidden = [any(entry.applies(finding, day) for entry in entries) for finding in findings]
    pairs = list(zip(findings, hidden, strict=True))
    return tuple(f for f, gone in pairs if not gone), tuple(f for f, gone in pairs if gone)


def _entry(entry: Any, where: str, latest: date) -> Suppression:
    if not isinstance(entry, dict) or set(entry) - {*PATTERNS, "reason", "expires"}:
        raise SuppressionError(f"{where}: fields are {', '.join(PATTERNS)}, reason, expires")
    patterns = {name: entry[name] for name in PATTERNS if name in entry}
    if set(patterns) <= {"tool"} or not all(isinstance(pattern, str) for pattern in patterns.values()):
        raise SuppressionError(f"{where}: needs kind, kernel, file or case, as texts")
    reason, expires = entry.get("reason"), entry.get("expires")
    if not isinstance(reason, str) or not reason.strip():
        raise SuppressionError(f"{where}: needs a reason")
    if type(expires) is not date:
        raise SuppressionError(f"{where}: needs an expiry, such as expires = 2027-01-31")
    if expires > latest:
        raise SuppressionError(f"{where}: expires more than a year ahead: {latest} at the latest")
    return Suppression(patterns=patterns, reason=reason, expires=expires)
