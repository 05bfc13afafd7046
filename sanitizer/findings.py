"""What a tool found: one fault at one place of one case, over all threads that met it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

UNKNOWN_PLACE = ("", 0)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """`kind` is the tool's word, `kernel` the function; `file` is empty when the tool knew none. `threads`
    counts the reports that were merged, `thread` names the first.
    """

    tool: str
    kind: str
    text: str
    kernel: str = ""
    file: str = ""
    line: int = 0
    address: str = ""
    thread: str = ""
    threads: int = 1
    case: str = ""

    @property
    def place(self) -> str:
        """file:line, or the function when there is no line."""
        return f"{self.file}:{self.line}" if self.file else self.kernel or "(no place)"

    def of(self, case: str) -> Finding:
        """The same, in a case."""
        return replace(self, case=case)

    def as_json(self) -> dict[str, Any]:
        """All fields."""
        return asdict(self)


def merged(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """One finding per case, kind and place: the first, with the number of threads of all."""
    found: dict[tuple[str, ...], Finding] = {}
    for one in findings:
        key = (one.case, one.tool, one.kind, one.kernel, one.file, str(one.line))
        seen = found.get(key)
        found[key] = one if seen is None else replace(seen, threads=seen.threads + one.threads)
    return tuple(found.values())
