"""A thousand calls of one kind each, and planted leaks: what `leakcheck` measures, in its own process."""

from __future__ import annotations

import ctypes
import mmap
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sanitizer import layouts
from sanitizer.growth import Call, growth, meters

PREFIX, CONTROL_PREFIX = "leak:", "control:leak-"
# Every code path of a call; the odd layout is all of them at once.
KINDS = (
    *(layouts.named("calls", name) for name in layouts.LAYOUTS),
    "own-output",
    "partials",
    "partials-odd",
    "refused",
)
# Threads on a GPU leave their own traces in the driver.
ONLY = {"host": ("threads",), "cuda": ("replays", "replays-odd")}
PLANTED_BYTES = {"heap": 64, "resident": 2 * mmap.PAGESIZE, "device": 8192}


def names(backend: str) -> tuple[str, ...]:
    """All cases of both instances."""
    from fixtures.rule import INSTANCES

    kinds = (*KINDS, *ONLY[backend])
    return tuple(f"{PREFIX}{kind}-{heads}x{dim}" for heads, dim in INSTANCES for kind in kinds)


def controls(backend: str, checked: bool) -> tuple[str, ...]:
    """A planted leak for every meter."""
    kinds = ("heap",) if checked else ("heap", "resident", *(("device",) if backend == "cuda" else ()))
    return tuple(CONTROL_PREFIX + kind for kind in kinds)


def planted(name: str) -> Call:
    """A call that keeps a little memory each time."""
    kind = name.removeprefix(CONTROL_PREFIX)
    kept: list[object] = []
    count = PLANTED_BYTES[kind]
    if kind == "device":
        import torch

        return lambda: kept.append(torch.empty(count, dtype=torch.uint8, device="cuda"))
    libc = ctypes.CDLL(None)
    if kind == "heap":
        return lambda: libc.malloc(ctypes.c_size_t(count))

    def map_and_touch() -> None:
        block = mmap.mmap(-1, count)
        for at in range(0, count, mmap.PAGESIZE):
            block[at] = 1
        kept.append(block)

    return map_and_touch


def calls_of(extension: Any, name: str) -> Call:
    """What a case calls, over and over."""
    kind, _, instance = name.removeprefix(PREFIX).rpartition("-")
    heads, dim = map(int, instance.split("x"))
    what, layout = layouts.split(kind)
    device = "cuda" if extension.backend == "cuda" else "cpu"
    _use_threads(many=not layout)
    tensors, out = layouts.LAYOUTS[layout].made(heads, dim, device)
    return _Caller(extension=extension, tensors=tensors, out=out).of(what)


def _use_threads(*, many: bool) -> None:
    """This kernel's own: as many as at first, or one, which is faster for short calls."""
    import torch

    torch.set_num_threads(_threads() if many else 1)


@cache
def _threads() -> int:
    import torch

    return int(torch.get_num_threads())


@dataclass(frozen=True, kw_only=True)
class _Caller:
    """A library and inputs that stay the same."""

    extension: Any
    tensors: tuple[Any, ...]
    out: Any

    def of(self, kind: str) -> Call:
        given = self.given()
        found: Mapping[str, Callable[[], Call]] = {
            "calls": lambda: lambda: self.attend(**given),
            "own-output": lambda: self.attend,
            "partials": lambda: self.partials,
            "refused": lambda: lambda: self.refused(given),
            "threads": lambda: self.in_a_thread,
            "replays": lambda: self.replay(given),
        }
        return found[kind]()

    def given(self) -> dict[str, Any]:
        q = self.tensors[0]
        space = self.extension.workspace(
            "grouped_e4m3_fp32", heads=q.shape[1], head_dim=q.shape[2], device=q.device
        )
        return {"out": self.out, "workspace": space}

    def attend(self, **given: Any) -> None:
        self.extension.grouped_e4m3_fp32(*self.tensors, softmax_scale=0.1, **given)

    def partials(self) -> None:
        self.extension.grouped_e4m3_fp32_partials(*self.tensors, softmax_scale=0.1)

    def refused(self, given: Mapping[str, Any]) -> None:
        """A scale that all must refuse; then what this kernel refuses, and no other is harmed by."""
        try:
            self.extension.grouped_e4m3_fp32(*self.tensors, softmax_scale=-1.0, **given)
        except ValueError:
            for tensors in layouts.refused(self.tensors):
                with suppress(Exception):
                    self.extension.grouped_e4m3_fp32(*tensors, softmax_scale=0.1, **given)
            return
        raise RuntimeError("a negative scale was not refused")

    def in_a_thread(self) -> None:
        thread = threading.Thread(target=self.attend)
        thread.start()
        thread.join()

    def replay(self, given: Mapping[str, Any]) -> Call:
        import torch

        self.attend(**given)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.attend(**given)
        return graph.replay


def runner(library: Path, backend: str, note: Callable[[str, str], object]) -> Callable[[str], str | None]:
    """What measures a case or a planted leak by name; `note` is told every growth."""
    found = meters(backend)
    loaded: list[Any] = []

    def call_of(name: str) -> Call:
        if name.startswith(CONTROL_PREFIX):
            return planted(name)
        if not loaded:
            import grouped_attention

            loaded.append(grouped_attention.load(library))
        return calls_of(loaded[0], name)

    def run(name: str) -> str | None:
        measured = growth(call_of(name), found)
        note(name, measured.text)
        return measured.complaint

    return run
