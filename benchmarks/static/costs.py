"""The static costs of every kernel in one artifact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from artifacts import foreign
from artifacts.errors import ArtifactsError
from artifacts.sides import Binary
from benchmarks.static import limits, ptxas
from benchmarks.static.limits import LIMITS
from grouped_attention import cubin


class CostsError(RuntimeError):
    """An artifact whose costs can't be read, with a reason code."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Of one kernel. `threads` a block is the launch bound. Spills include functions that aren't inlined."""

    kernel: str
    arch: str
    threads: int
    registers: int
    registers_per_block: int
    spill_store_bytes: int
    spill_load_bytes: int
    stack_bytes: int
    static_shared_bytes: int
    dynamic_shared_bytes: int
    code_bytes: int
    blocks_per_multiprocessor: int

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block, both kinds."""
        return self.static_shared_bytes + self.dynamic_shared_bytes

    @property
    def local_bytes(self) -> int:
        """Local memory of a thread: its stack frame, spills among it."""
        return self.stack_bytes

    @property
    def spill_bytes(self) -> int:
        """Stores and loads together."""
        return self.spill_store_bytes + self.spill_load_bytes


def read(binary: Binary) -> tuple[Costs, ...]:
    """The costs of a cuda artifact's kernels, by name; CostsError when they can't be read in full."""
    if binary.directory is None or binary.backend != "cuda":
        raise CostsError(
            "no-static-costs", f"{binary.library}: only a cuda artifact folder has compiler output"
        )
    if binary.arch not in LIMITS:
        raise CostsError("static-unreadable", f"{binary.arch}: its limits are not known here")
    log, device_code = (binary.library.with_suffix(s) for s in (".ptxas.txt", ".cubin"))
    try:
        return assemble(
            log.read_text(), device_code.read_bytes(), _dynamic_shared(binary.library), binary.arch
        )
    except OSError as error:
        raise CostsError("no-static-costs", f"{error.filename}: {error.strerror}") from error
    except (ptxas.PtxasError, cubin.CubinError) as error:
        raise CostsError("static-unreadable", f"{binary.library.name}: {error}") from error


def assemble(log: str, device_code: bytes, dynamic: Mapping[str, int], arch: str) -> tuple[Costs, ...]:
    """Join the assembler's log, the cubin and the library's own words. CostsError when they don't agree."""
    functions = ptxas.parse(log)
    code = cubin.code_bytes(device_code)
    _check_same_build(functions, set(code), arch)
    threads = cubin.max_threads(device_code)
    helpers = [function for function in functions if not function.is_entry]
    entries = sorted((f for f in functions if f.is_entry), key=lambda function: function.name)
    return tuple(_costs(entry, helpers, code[entry.name], threads, dynamic) for entry in entries)


def to_json(costs: Costs) -> dict[str, Any]:
    """The JSON object of one kernel's costs."""
    return asdict(costs)


def _check_same_build(functions: Sequence[ptxas.Function], code: set[str], arch: str) -> None:
    logged = {function.name for function in functions}
    entries = {function.name for function in functions if function.is_entry}
    if any(function.arch != arch for function in functions) or not entries <= code:
        raise CostsError("static-unreadable", "the compiler's log and the cubin are not of the same build")
    if code - logged:
        text = f"code that the compiler's log doesn't mention: {sorted(code - logged)}"
        raise CostsError("static-unreadable", text)


def _costs(
    entry: ptxas.Function,
    helpers: Sequence[ptxas.Function],
    code_bytes: int,
    bounds: Mapping[str, int | None],
    dynamic: Mapping[str, int],
) -> Costs:
    assert entry.registers is not None
    threads = _known(bounds, entry.name, "launch bound")
    dynamic_bytes = _known(dynamic, entry.name, "dynamic shared memory")
    shared_bytes = entry.static_shared_bytes + dynamic_bytes
    return Costs(
        kernel=entry.name,
        arch=entry.arch,
        threads=threads,
        registers=entry.registers,
        registers_per_block=limits.registers_per_block(entry.registers, threads),
        # A helper may be called by any kernel: its spills count against each.
        spill_store_bytes=entry.spill_store_bytes + sum(h.spill_store_bytes for h in helpers),
        spill_load_bytes=entry.spill_load_bytes + sum(h.spill_load_bytes for h in helpers),
        stack_bytes=entry.stack_bytes,
        static_shared_bytes=entry.static_shared_bytes,
        dynamic_shared_bytes=dynamic_bytes,
        code_bytes=code_bytes,
        blocks_per_multiprocessor=limits.blocks_per_multiprocessor(
            LIMITS[entry.arch], registers=entry.registers, threads=threads, shared_bytes=shared_bytes
        ),
    )


def _known(values: Mapping[str, int | None], name: str, what: str) -> int:
    value = values.get(name)
    if value is None:
        raise CostsError("static-unreadable", f"{name}: {what} not stated, so its occupancy can't be told")
    return value


def _dynamic_shared(library: Path) -> dict[str, int]:
    """Dynamic shared memory in bytes per kernel, as the library's describe() gives it under "kernels"."""
    try:
        kernels = foreign.describe(library)["kernels"]
        return {name: int(kernel["dynamic_shared_bytes"]) for name, kernel in kernels.items()}
    except ArtifactsError as error:
        raise CostsError("static-unreadable", error.text) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        text = f"{library.name}: describe() doesn't state its kernels' dynamic shared memory"
        raise CostsError("static-unreadable", text) from error
