"""Inline PTX as calls of what emulates it: `asm("op %0, %1;" : "=r"(x) : "r"(y));` becomes C++.

An instruction that isn't known becomes a call that doesn't compile, so that only code which uses it can't be
emulated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from zlib import crc32

HINTS = r"(?:\.(?:L1|L2)::\w+)*(?:\.(?:ca|cg|cs|lu|cv|wb|wt))?(?:\.(?:L1|L2)::\w+)*"
SPACE = r"\.(?:global|shared(?:::cta)?)"
ELEMENTS = {
    **{f"{kind}{bits}": f"uint{bits}_t" for kind in "bu" for bits in (8, 16, 32, 64)},
    **{f"s{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    "f32": "float",
    "f64": "double",
}
ELEMENT = f"({'|'.join(ELEMENTS)})"
# An opcode, what emulates it, and whether the address, which the text names last, comes first in the call.
INSTRUCTIONS = tuple(
    (re.compile(opcode), function, address_first)
    for opcode, function, address_first in (
        (r"mul(?:\.rn)?\.f16x2", "mul_f16x2", False),
        (r"cvt\.rn\.f16\.f32", "cvt_f16_f32", False),
        (r"cvt\.f32\.f16", "cvt_f32_f16", False),
        (r"cvt\.rn\.f16x2\.e4m3x2", "cvt_f16x2_e4m3x2", False),
        (r"mma\.sync\.aligned\.m16n8k16\.row\.col\.f32\.f16\.f16\.f32", "mma_m16n8k16", False),
        (r"mma\.sync\.aligned\.m8n8k4\.row\.row\.f32\.f16\.f16\.f32", "mma_m8n8k4<true>", False),
        (r"mma\.sync\.aligned\.m8n8k4\.row\.col\.f32\.f16\.f16\.f32", "mma_m8n8k4<false>", False),
        (r"ldmatrix\.sync\.aligned\.m8n8\.x[124](?:\.shared(?:::cta)?)?\.b16", "ldmatrix<false>", True),
        (r"ldmatrix\.sync\.aligned\.m8n8\.x[124]\.trans(?:\.shared(?:::cta)?)?\.b16", "ldmatrix<true>", True),
        (r"cp\.async\.c[ag]\.shared(?:::cta)?\.global(?:\.L2::(?:64|128|256)B)?", "cp_async", False),
        (r"cp\.async\.commit_group", "cp_async_commit", False),
        (r"cp\.async\.wait_group", "cp_async_wait", False),
        (r"cp\.async\.wait_all", "cp_async_wait_all", False),
        (r"(?:bar|barrier)(?:\.cta)?\.sync(?:\.aligned)?", "bar_sync", False),
        (r"(?:bar|barrier)(?:\.cta)?\.arrive(?:\.aligned)?", "bar_arrive", False),
        (rf"ld(?:\.volatile)?{SPACE}(?:\.nc)?{HINTS}(?:\.v[24])?\.{ELEMENT}", "ld", True),
        (rf"st(?:\.volatile)?{SPACE}{HINTS}(?:\.v[24])?\.{ELEMENT}", "st", False),
        (r"mov\.[bu]32 %laneid", "laneid", False),
        (r"membar\.(?:cta|gl|sys)|fence(?:\.sc|\.acq_rel)?\.(?:cta|gpu|sys)", "nothing", False),
        (rf"prefetch\.global{HINTS}|prefetch\.global\.L[12]", "nothing", False),
    )
)  # fmt: skip
START = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|\b(?:asm|__asm__)\b(?:\s+(?:volatile|__volatile__))?\s*\(', re.S
)
LITERAL = re.compile(r'"((?:\\.|[^"\\])*)"')
OPERAND = re.compile(r'\s*"([^"]*)"\s*\((.*)\)\s*', re.S)
WORD = re.compile(r"%(\d+)(?:\s*\+\s*(\d+))?|(0x[0-9a-fA-F]+|\d+)")


@dataclass(frozen=True, kw_only=True)
class _Statement:
    """What stands between the parentheses: one instruction's opcode, its operands as C++."""

    opcode: str
    arguments: tuple[str, ...]


class _NotKnownError(Exception):
    """The statement is more than one instruction with plain operands."""


def translate(text: str) -> str:
    """A source with its inline PTX as C++; the number of each line stays."""
    parts, at = [], 0
    while (found := START.search(text, at)) is not None:
        parts.append(text[at : found.start()])
        at = found.end()
        if not found.group().rstrip().endswith("(") or found.group().startswith(("/", '"')):
            parts.append(found.group())
            continue
        inside = _until_closed(text, at)
        at += len(inside) + 1
        parts.append(_call(inside) + "\n" * (found.group() + inside).count("\n"))
    return "".join([*parts, text[at:]])


def _call(inside: str) -> str:
    literals = _concatenated(_split(inside, ":")[0])
    if literals is not None and not literals.strip():
        return f"asm volatile({inside})"  # a barrier for the compiler
    try:
        statement = _read(inside)
    except _NotKnownError as error:
        return _refused(str(error))
    for opcode, function, address_first in INSTRUCTIONS:
        found = opcode.fullmatch(statement.opcode)
        if found:
            element = f"<{ELEMENTS[found.group(1)]}>" if found.re.groups else ""
            arguments = statement.arguments
            ordered = (arguments[-1], *arguments[:-1]) if address_first else arguments
            return f"simt::ptx::{function}{element}({', '.join(ordered)})"
    return _refused(f"the PTX instruction {statement.opcode}")


def _refused(what: str) -> str:
    """Compiled code must not reach it: the compiler says why."""
    text = json.dumps(f"{what} is not emulated")
    name = f"simt_unknown_{crc32(what.encode())}"
    return f"[]{{ extern void {name}() __attribute__((error({text}))); {name}(); }}()"


def _read(inside: str) -> _Statement:
    sections = [*_split(inside, ":"), "", ""]
    template = _concatenated(sections[0])
    if template is None:
        raise _NotKnownError("inline assembly whose text is put together by macros")
    instructions = [line for line in (each.strip() for each in template.split(";")) if line]
    opcode, _, rest = instructions[0].partition(" ")
    if len(instructions) != 1 or not re.fullmatch(r"[a-z][\w.:]*", opcode):
        raise _NotKnownError(f"inline PTX of several instructions ({' '.join(instructions[0].split())} …)")
    expressions = [_expression(each) for part in sections[1:3] for each in _split(part, ",") if each.strip()]
    if special := re.fullmatch(r"(.*),\s*%(%\w+)", rest):
        opcode, rest = f"{opcode} {special.group(2)}", special.group(1)
    if re.sub(r"[\s,{}\[\]]", "", WORD.sub("", rest)):
        raise _NotKnownError(f"the PTX instruction {opcode} with such operands")
    return _Statement(opcode=opcode, arguments=tuple(_argument(m, expressions) for m in WORD.finditer(rest)))


def _argument(found: re.Match[str], expressions: list[str]) -> str:
    number, offset, constant = found.groups()
    if constant is not None:
        return constant
    if int(number) >= len(expressions):
        raise _NotKnownError("inline PTX with an operand that isn't there")
    return f"simt::moved({expressions[int(number)]}, {offset})" if offset else expressions[int(number)]


def _expression(operand: str) -> str:
    found = OPERAND.fullmatch(operand)
    if found is None:
        raise _NotKnownError("inline PTX whose operands have names")
    return f"({found.group(2).strip()})"


def _concatenated(part: str) -> str | None:
    """The text of string literals side by side; None when there is anything else."""
    if LITERAL.sub("", part).strip():
        return None
    return "".join(re.sub(r"\\[ntr]", " ", text) for text in LITERAL.findall(part))


def _until_closed(text: str, at: int) -> str:
    """What stands before the parenthesis that closes one opened before `at`."""
    depths = _depths(text[at:])
    return "".join(piece for piece, _ in takewhile(lambda each: each[1] >= 0, depths))


def _split(text: str, separator: str) -> list[str]:
    parts = [""]
    for piece, depth in _depths(text):
        if piece == separator and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
    return parts


def _depths(text: str) -> Iterator[tuple[str, int]]:
    """Characters, or whole literals, each with how deep in parentheses what follows it is."""
    depth = 0
    for found in re.finditer(r'"(?:\\.|[^"\\])*"|.', text, re.S):
        depth += {"(": 1, ")": -1}.get(found.group(), 0)
        yield found.group(), depth
