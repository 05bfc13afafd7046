"""What of the latency measurement needs no GPU: sizes, tables, conclusions, and a plain word without one."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import cli
from benchmarks.latency import command, problem
from benchmarks.latency.command import Row
from benchmarks.latency.graph import Samples
from benchmarks.latency.problem import Shape

SHAPE = Shape(rows=5, heads=6, head_dim=256, page=848, context=8192)


def samples(*medians: float) -> Samples:
    return Samples(warm_up_us=((99.0,),), timed_us=tuple((m, m, m + 1) for m in medians), launches=50)


def row(*, repeatable: bool = True) -> Row:
    return Row(shape=SHAPE, copies=75, kernel=samples(20.0, 22.0), read=samples(4.0), repeatable=repeatable)


@given(context=st.integers(1, 300_000), l2=st.integers(1, 200 << 20))
def test_rotating_buffers_total_five_times_the_l2(context: int, l2: int) -> None:
    shape = dataclasses.replace(SHAPE, context=context)
    count = problem.copies(shape, l2)
    assert count >= 2
    assert count * shape.kv_bytes >= 5 * l2
    assert count == 2 or (count - 1) * shape.kv_bytes < 5 * l2


def test_a_problem_holds_finite_codes_and_reaches_the_context() -> None:
    made = problem.make(dataclasses.replace(SHAPE, context=1000), 7, torch.device("cpu"))
    assert not ((made.cache & 0x7F) == 0x7F).any()
    assert made.row_lens.tolist() == [996, 997, 998, 999, 1000]
    assert sorted(made.block_table[0].tolist()) == [0, 1]


def test_medians_leave_warm_ups_out() -> None:
    assert samples(20.0, 22.0).median_us == 21.0
    assert samples(20.0, 22.0).range_us == (20.0, 22.0)


def test_the_table_gives_the_ratio_to_the_read() -> None:
    assert row().ratio == pytest.approx(5.25)
    assert "5.25" in command.table([row()])


def test_outputs_that_changed_reject() -> None:
    assert command._conclude([row()]).code == "measured"
    assert command._conclude([row(), row(repeatable=False)]).code == "bits-differ"


@pytest.mark.skipif(torch.cuda.is_available(), reason="says what happens without a GPU")
def test_without_a_gpu_it_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["latency", "--artifact", "nowhere"]) == 4
    assert capsys.readouterr().out.startswith("verdict: unknown (no-gpu:")
