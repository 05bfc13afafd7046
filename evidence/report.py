"""Records and verdicts as tables: for a terminal, and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evidence.record import Record
from evidence.store import Unreadable
from evidence.verdict import Verdict

HEADINGS = ("time", "kind", "target", "code", "file", "revision", "covered", "machine", "outcome", "reason")
DIGITS = 12
TITLE = "# Evidence records"


def rows(records: Sequence[Record]) -> list[tuple[str, ...]]:
    """One row of texts per record."""
    return [_row(record) for record in records]


def terminal(records: Sequence[Record]) -> str:
    """An aligned table."""
    return _aligned([HEADINGS, *rows(records)])


def markdown(records: Sequence[Record], unreadable: Sequence[Unreadable] = ()) -> str:
    """A Markdown page: the table, and every file that could not be read."""
    lines = [TITLE, "", _markdown_row(HEADINGS), _markdown_row(["---"] * len(HEADINGS))]
    lines += [_markdown_row(row) for row in rows(records)]
    if unreadable:
        lines += ["", "## Unreadable", "", *(f"- {_escape(item.why)}" for item in unreadable)]
    return "\n".join(lines) + "\n"


def is_report(path: Path) -> bool:
    """Whether a file is empty, or a page that `markdown` made."""
    return path.is_file() and path.read_bytes()[: len(TITLE) + 1] in (b"", f"{TITLE}\n".encode())


def verdict_table(verdict: Verdict) -> str:
    """What was required, whether it was met, and by which records."""
    head = ("required", "state", "records", "reason")
    body = [
        (f.requirement.name, f.state, ",".join(i[:DIGITS] for i in f.records) or "-", f.reason.code)
        for f in verdict.findings
    ]
    return _aligned([head, *body])


def _row(record: Record) -> tuple[str, ...]:
    artifact = record.artifact
    dirty = "+dirty" if artifact.dirty else ""
    return (
        record.started_at[:19],
        record.kind,
        artifact.label,
        (artifact.code_digest or "-")[:DIGITS],
        artifact.sha256[:DIGITS],
        f"{(artifact.revision or '-')[:DIGITS]}{dirty}",
        " ".join(f"{key}={_short(value)}" for key, value in sorted(record.selection.items())) or "-",
        _machine(record),
        record.outcome,
        ", ".join(reason.code for reason in record.reasons) or "-",
    )


def _machine(record: Record) -> str:
    gpus = record.machine.get("gpus") or []
    if record.artifact.backend == "cuda" and gpus:
        return f"{gpus[0].get('name', 'GPU')} driver {gpus[0].get('driver', '?')}"
    return str(record.machine.get("cpu", "?"))


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 20 else f"{text[:DIGITS]}…"


def _aligned(table: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in table)
    return "\n".join(line.rstrip() for line in lines)


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(_escape(cell) for cell in cells)} |"


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
