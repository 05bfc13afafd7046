"""Runs one row of the table on a library and says what is wrong with the outcome."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from fixtures.cases.realise import OUT_POISON, Allocate, control, over_capacity, realise
from fixtures.cases.spec import Arguments, Refusal, Spec
from grouped_attention.workspace import Workspace

OP = "grouped_e4m3_fp32"
NAN_BITS = 0x7FFF


@dataclass(frozen=True, kw_only=True)
class Executor:
    """A loaded library, and the control's outputs that were made with it."""

    extension: Any
    _controls: dict[tuple[object, ...], Tensor] = field(default_factory=dict)

    @property
    def device(self) -> str:
        """Where its tensors live."""
        return "cuda" if self.extension.backend == "cuda" else "cpu"

    def complaint(self, spec: Spec, allocate: Allocate) -> str | None:
        """What is wrong, None when the row's outcome is what the table says."""
        arguments = realise(spec, allocate)
        if spec.refusal is not None:
            return next(self._refused(spec, spec.refusal, arguments), None)
        if spec.at_once > 1:
            others = [realise(spec, allocate) for _ in range(spec.at_once - 1)]
            return next(self._at_once(spec, [arguments, *others]), None)
        if spec.states and self.device == "cuda":
            return next(self._replayed(spec, arguments), None)
        return next(self._in_turn(spec, arguments), None)

    def _in_turn(self, spec: Spec, arguments: Arguments) -> Iterator[str]:
        for lens in spec.sequence():
            workspace = self._prepared(spec, arguments, lens)
            self._call(arguments, workspace)
            yield from self._different(spec, lens, arguments.out)

    def _replayed(self, spec: Spec, arguments: Arguments) -> Iterator[str]:
        """One capture, whose replays must follow the lengths."""
        workspace = self._prepared(spec, arguments, spec.sequence()[0])
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._call(arguments, workspace)
        for lens in spec.sequence():
            self._prepared(spec, arguments, lens)
            graph.replay()
            yield from self._different(spec, lens, arguments.out)

    def _at_once(self, spec: Spec, calls: Sequence[Arguments]) -> Iterator[str]:
        run = self._on_streams if self.device == "cuda" else self._on_threads
        run(calls)
        for arguments in calls:
            yield from self._different(spec, spec.lens, arguments.out)

    def _on_streams(self, calls: Sequence[Arguments]) -> None:
        torch.cuda.synchronize()
        for arguments in calls:
            stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            with torch.cuda.stream(stream):
                self._launch(arguments, None)
        torch.cuda.synchronize()

    def _on_threads(self, calls: Sequence[Arguments]) -> None:
        threads = [threading.Thread(target=self._call, args=(arguments, None)) for arguments in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _refused(self, spec: Spec, refusal: Refusal, arguments: Arguments) -> Iterator[str]:
        before = arguments.out.clone()
        workspace = self._workspace(spec, arguments.out.device, spec.dirt)
        try:
            self._call(arguments, workspace)
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            if type(error).__name__ != refusal.error or refusal.message not in str(error):
                yield f"refused with {told[:200]!r}, not with {refusal.error} and {refusal.message!r}"
        else:
            yield f"not refused: {refusal.error} with {refusal.message!r} was due"
        kept = torch.equal(_bits(before), _bits(arguments.out))
        if not kept or any((t.view(torch.uint8) != spec.dirt).any() for t in workspace.tensors):
            yield "refused, but only after something was written"

    def _prepared(self, spec: Spec, arguments: Arguments, lens: Sequence[int]) -> Workspace:
        arguments.row_lens.copy_(torch.tensor(lens, dtype=torch.int32))
        arguments.out.view(torch.int16).fill_(OUT_POISON)
        return self._workspace(spec, arguments.out.device, spec.dirt)

    def _workspace(self, spec: Spec, device: torch.device, dirt: int) -> Workspace:
        found: Workspace = self.extension.workspace(OP, heads=spec.heads, head_dim=spec.dim, device=device)
        for tensor in found.tensors:
            tensor.view(torch.uint8).fill_(dirt)
        return found

    def _call(self, arguments: Arguments, workspace: Workspace | None) -> None:
        """A launch returns before it fails, so wait; a capture can't."""
        self._launch(arguments, workspace)
        if self.device == "cuda" and not torch.cuda.is_current_stream_capturing():
            torch.cuda.current_stream().synchronize()

    def _launch(self, a: Arguments, workspace: Workspace | None) -> None:
        self.extension.grouped_e4m3_fp32(
            a.q, a.k_cache, a.v_cache, a.block_table, a.row_lens,
            softmax_scale=a.softmax_scale, k_scale=a.k_scale, v_scale=a.v_scale,
            out=a.out, workspace=workspace,
        )  # fmt: skip

    def _different(self, spec: Spec, lens: Sequence[int], out: Tensor) -> Iterator[str]:
        got = _bits(out).cpu()
        wrong = (got != self._expected(spec, lens)).nonzero()
        if len(wrong):
            row, head, dim = wrong[0].tolist()
            yield (
                f"lengths {tuple(lens)}: {len(wrong)} elements differ from the control's, first row {row}, "
                f"head {head}, dimension {dim}: 0x{int(got[row, head, dim]) & 0xFFFF:04X}"
            )

    def _expected(self, spec: Spec, lens: Sequence[int]) -> Tensor:
        """int16 [R, H, D]: the control's bits, NaN in rows over the capacity."""
        live = tuple(length if length <= spec.capacity else 0 for length in lens)
        key = (spec.heads, spec.dim, live)
        if key not in self._controls:
            inputs = control(spec, lens).to(self.device)
            made = self.extension.grouped_e4m3_fp32(
                inputs.q, inputs.k_cache, inputs.v_cache, inputs.block_table, inputs.row_lens,
                softmax_scale=inputs.softmax_scale,
            )  # fmt: skip
            self._controls[key] = _bits(made).cpu()
        return self._controls[key].masked_fill(over_capacity(spec, lens), NAN_BITS)


def _bits(values: Tensor) -> Tensor:
    return values.contiguous().view(torch.int16)
