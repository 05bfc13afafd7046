"""Reads compute-sanitizer's XML. There is no schema: a kind never seen is named, and decides nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from sanitizer.findings import Finding, merged

ROOT = "ComputeSanitizerOutput"
PLACED = ("Precise", "Initcheck", "Synccheck")  # a thread at a line
RACES = ("Analysis",)  # two accesses
FOLLOWING = ("Api", "Sanitizer")  # what a lost context drags along
UNCOUNTED = ("Sanitizer",)  # which the log's summary leaves out


class ReportError(ValueError):
    """The file is missing, cut off, or no report of compute-sanitizer."""


@dataclass(frozen=True, kw_only=True)
class Report:
    """`findings` lie at a place, `placed` counts their records before they were merged; `following` are
    texts of API errors, the first `leading` of them before any record with a place; a summary counts all
    records but up to `uncounted`; `unknown` are kinds never seen.
    """

    findings: tuple[Finding, ...] = ()
    placed: int = 0
    following: tuple[str, ...] = ()
    leading: int = 0
    uncounted: int = 0
    unknown: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """Records of all kinds."""
        return self.placed + len(self.following) + len(self.unknown)

    @property
    def empty(self) -> bool:
        """True when the tool wrote no record at all."""
        return self.count == 0


def read(path: Path, tool: str) -> Report:
    """The report in a file; ReportError when it can't be one."""
    try:
        root = ElementTree.fromstring(path.read_bytes())
    except OSError as error:
        raise ReportError(f"no XML report: {error}") from error
    except ElementTree.ParseError as error:
        raise ReportError(f"{path.name} is cut off or damaged: {error}") from error
    if root.tag != ROOT or any(child.tag != "record" for child in root):
        raise ReportError(f"{path.name} is not a report of compute-sanitizer")
    return _report(list(root), tool)


def _report(records: Iterable[Element], tool: str) -> Report:
    findings: list[Finding] = []
    following: list[str] = []
    unknown: list[str] = []
    leading = uncounted = 0
    for record in records:
        kind = record.findtext("kind") or "(none)"
        if kind in PLACED and record.find("where") is not None:
            findings.append(_placed(record, tool))
        elif kind in RACES and record.find("what/source/where") is not None:
            findings.append(_race(record, tool))
        elif kind in FOLLOWING:
            following.append(record.findtext("what/text") or kind)
            leading += not findings
            uncounted += kind in UNCOUNTED
        else:
            unknown.append(kind)
    return Report(
        findings=merged(findings),
        placed=len(findings),
        following=tuple(following),
        leading=leading,
        uncounted=uncounted,
        unknown=tuple(unknown),
    )


def _placed(record: Element, tool: str) -> Finding:
    said = (record.findtext(f"what/{name}") for name in ("text", "type"))
    what = ": ".join(text for text in said if text) or "(no text)"
    return Finding(
        tool=tool,
        kind=record.findtext("what/error") or str(record.findtext("kind")),
        text=what,
        kernel=record.findtext("where/func") or "",
        file=record.findtext("where/path") or "",
        line=_number(record.findtext("where/line")),
        address=record.findtext("what/address") or "",
        thread=f"block {_triple(record, 'blockIdx')} thread {_triple(record, 'threadIdx')}",
    )


def _race(record: Element, tool: str) -> Finding:
    source, other = record.find("what/source"), record.find("what/destination")
    assert source is not None
    against = "" if other is None else f" against {other.findtext('direction')} {_line(other)}"
    return Finding(
        tool=tool,
        kind=f"{record.findtext('what/text') or 'Race'} ({record.findtext('level') or 'no level'})",
        text=f"{source.findtext('direction')} {_line(source)}{against}",
        kernel=source.findtext("where/func") or "",
        file=source.findtext("where/path") or "",
        line=_number(source.findtext("where/line")),
        threads=_number(None if other is None else other.findtext("count")) or 1,
    )


def _line(access: Element) -> str:
    return f"{access.findtext('where/path')}:{access.findtext('where/line')}"


def _triple(record: Element, name: str) -> str:
    return "({})".format(", ".join(record.findtext(f"who/{name}/{axis}") or "?" for axis in "xyz"))


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.strip().isdigit() else 0
