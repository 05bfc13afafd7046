"""A run's findings as a table, JSON, JUnit XML and GitHub annotations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, ElementTree, SubElement

from evidence.ending import OUTCOMES
from sanitizer.findings import Finding
from sanitizer.judge import Judgement

HEAD = ("case", "kind", "kernel", "place", "threads", "address")
WIDEST = 48


def table(findings: Sequence[Finding]) -> str:
    """One line per finding."""
    rows = [
        HEAD,
        *((f.case or "(not known)", f.kind, f.kernel, f.place, str(f.threads), f.address) for f in findings),
    ]
    cut = [tuple(cell if len(cell) <= WIDEST else f"{cell[: WIDEST - 1]}…" for cell in row) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cut, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cut
    )


def as_json(judgement: Judgement, names: Sequence[str]) -> dict[str, Any]:
    """Everything that was seen, as a record holds it."""
    return {
        "cases": list(names),
        "processes": len(judgement.signs),
        "signs": list(judgement.signs),
        "controls_found": list(judgement.controls),
        "findings": [finding.as_json() for finding in judgement.findings],
        "suppressed": [finding.as_json() for finding in judgement.suppressed],
        "complaints": [{"case": case, "text": text} for case, text in judgement.complaints],
    }


def document(judgement: Judgement, names: Sequence[str]) -> dict[str, Any]:
    """Everything that was seen, and the verdict: its outcome and reasons, as every command gives them."""
    reasons = [vars(reason) for reason in judgement.reasons]
    return {
        **as_json(judgement, names),
        "outcome": OUTCOMES.get(judgement.word, "unknown"),
        "reasons": reasons,
        "verdict": {"word": judgement.word, "reasons": reasons},
    }


def is_junit(path: Path) -> bool:
    """Whether a file is empty, or a report of an earlier run."""
    head = path.read_bytes()[:200] if path.is_file() else b"not a file"
    return not head or (head.startswith(b"<?xml") and b'<testsuite name="sanitizer ' in head)


def write_junit(path: Path, tool: str, names: Sequence[str], judgement: Judgement) -> None:
    """One test case per case, and one for the run itself, which fails unless it could be believed."""
    texts: dict[str, list[str]] = {name: [] for name in names}
    for finding in judgement.findings:
        texts.setdefault(finding.case or "(not known)", []).append(f"{finding.place}: {finding.text}")
    for name, text in judgement.complaints:
        texts.setdefault(name, []).append(text)
    doubts = [] if judgement.word == "admitted" else [f"{r.code}: {r.text}" for r in judgement.reasons]
    suite = Element("testsuite", name=f"sanitizer {tool}", tests=str(len(texts) + 1))
    for name, found in (*texts.items(), ("(verdict)", doubts)):
        case = SubElement(suite, "testcase", classname=f"sanitizer.{tool}", name=name)
        if found:
            SubElement(case, "failure", message=found[0]).text = "\n".join(found)
    suite.set("failures", str(sum(case.find("failure") is not None for case in suite)))
    ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def github(judgement: Judgement) -> list[str]:
    """GitHub's workflow commands: an error at each line that a finding names, and one for other reasons."""
    placed = [
        f"::error file={_property(f.file)},line={f.line},title={_property(f.kind)}::"
        + _data(f"{f.case}: {f.text}")
        for f in judgement.findings
        if f.file
    ]
    others = () if judgement.word == "admitted" else judgement.reasons
    return placed + [f"::error title={_property(r.code)}::{_data(r.text)}" for r in others]


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
