"""Reads what AddressSanitizer and UndefinedBehaviorSanitizer print."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sanitizer.findings import Finding

TOOL = "address"
_ERROR = re.compile(r"^==\d+==ERROR: AddressSanitizer: (?P<kind>[\w-]+)(?P<rest>.*)$", re.M)
_RUNTIME = re.compile(r"^(?P<file>[^\s:]*):(?P<line>\d+)?.*?: runtime error: (?P<text>.*)$", re.M)
_ADDRESS = re.compile(r"\baddress (0x[0-9a-f]+)")
_ACCESS = re.compile(r"^(?:READ|WRITE) of size \d+", re.M)
_FRAME = re.compile(
    r"^\s+#\d+ 0x[0-9a-f]+ in (?P<function>.*?) (?P<file>[^\s:()]+):(?P<line>\d+)(?::\d+)?$", re.M
)
_THREAD = re.compile(r"thread (T\d+)")
# Where a fault shows, but not where it was made: the sanitizer's own functions, the standard libraries, the
# compiler's intrinsics.
_NOT_OURS = re.compile(r"libsanitizer|^/usr/|/include/c\+\+/|/lib/gcc/|^(?:\.\.?/)?(?:nptl|sysdeps|signal)/")


def parse(output: str) -> tuple[Finding, ...]:
    """All reports in the output, in order, without a case."""
    starts = sorted([*_ERROR.finditer(output), *_RUNTIME.finditer(output)], key=lambda match: match.start())
    ends = [match.start() for match in starts[1:]]
    return tuple(
        _finding(match, output[match.end() : end])
        for match, end in zip(starts, [*ends, len(output)][: len(starts)], strict=True)
    )


def _finding(match: re.Match[str], body: str) -> Finding:
    fields = match.groupdict()
    head = match.group(0)
    access = _ACCESS.search(body)
    address, thread = _ADDRESS.search(head), _THREAD.search(head + body[:200])
    place = _place(fields, body)
    return Finding(
        tool=TOOL,
        kind=fields.get("kind") or "undefined-behavior",
        text=fields.get("text") or f"{fields['kind']}{', ' + access.group(0) if access else ''}",
        kernel=place["function"].split("(")[0],
        file=place["file"],
        line=int(place["line"]),
        address=address.group(1) if address else "",
        thread=thread.group(1) if thread else "",
    )


def _place(head: Mapping[str, str | None], body: str) -> Mapping[str, str]:
    """The innermost frame that isn't the compiler's, else the innermost, else what the report's head says."""
    # Frames after "located" are of the allocation.
    frames = [match.groupdict() for match in _FRAME.finditer(body.split("is located")[0])]
    ours = [frame for frame in frames if not _NOT_OURS.search(frame["file"])]
    if ours or frames:
        return (ours or frames)[0]
    return {"function": "", "file": head.get("file") or "", "line": head.get("line") or "0"}
