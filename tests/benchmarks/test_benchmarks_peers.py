"""Peers: right where they run, and said where they don't. Their times need a GPU."""

from __future__ import annotations

import dataclasses
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from artifacts import ArtifactsError
from benchmarks import cli
from benchmarks.abba import subjects
from benchmarks.latency import problem
from benchmarks.latency.graph import Samples
from benchmarks.latency.problem import Problem, Shape
from benchmarks.peers import catalogue, command, flashinfer, measure, sdpa, table
from benchmarks.peers.measure import READ, Timed
from fixtures import oracle
from fixtures.inputs import Inputs

SHAPE = Shape(rows=5, heads=6, head_dim=256, page=48, context=1000)
SCALES = {"softmax_scale": 0.0625, "k_scale": 0.5, "v_scale": 2.0}
CPU = torch.device("cpu")


def natural(seed: int = 3) -> Problem:
    made = problem.make(SHAPE, seed, CPU)
    made.cache.copy_(measure.natural_codes(made.cache))
    return made


def truth(one: Problem) -> torch.Tensor:
    q, k, v, table_, lens = one.arguments
    return oracle.attend(Inputs(q=q, k_cache=k, v_cache=v, block_table=table_, row_lens=lens, **SCALES)).out


@pytest.mark.parametrize("name", ["sdpa", "sdpa-ready"])
def test_sdpa_computes_the_operation(name: str) -> None:
    one, op = natural(), catalogue.find(name)
    for _ in range(2):
        one.out.fill_(float("nan"))
        op(*one.arguments, out=one.out, **SCALES)
        assert oracle.relative_l2(one.out, truth(one)) < 2e-3


def test_what_was_prepared_is_of_one_table_and_one_cache() -> None:
    op, one, other = sdpa.make_ready(), natural(3), natural(4)
    for made in (one, other):
        op(*made.arguments, out=made.out, **SCALES)
        assert oracle.relative_l2(made.out, truth(made)) < 2e-3
    mixed = dataclasses.replace(one, cache=other.cache)
    with pytest.raises(RuntimeError, match="prepared for another cache"):
        op(*mixed.arguments, out=mixed.out, **SCALES)


def test_nothing_is_prepared_while_a_graph_is_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    class OnGpu(torch.Tensor):
        is_cuda = True

    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    one = natural()
    one = dataclasses.replace(one, block_table=one.block_table.as_subclass(OnGpu))
    with pytest.raises(RuntimeError, match="call a peer once before"):
        sdpa.make_ready()(*one.arguments, out=one.out, **SCALES)


def test_a_peer_that_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "flashinfer", None)
    here, absent = command.found(["flashinfer", "sdpa", "nobody"])
    assert list(here) == ["sdpa"]
    assert "pip install flashinfer-python" in absent["flashinfer"]
    assert "there are: flashinfer, sdpa, sdpa-ready" in absent["nobody"]
    assert any(line.startswith("flashinfer: not timed: FlashInfer isn't") for line in table.legend(absent))
    with pytest.raises(ArtifactsError, match="pip install flashinfer-python"):
        subjects.candidate("peer:flashinfer", backend="host", arch="sm_70")


def test_flashinfer_is_planned_once_for_the_last_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[dict[str, Any]] = []
    runs: list[SimpleNamespace] = []

    class Wrapper:
        def __init__(self, space: torch.Tensor, layout: str, *, backend: str) -> None:
            assert (space.numel(), layout, backend) == (flashinfer.WORKSPACE_BYTES, "NHD", "fa2")

        def plan(self, **told: Any) -> None:
            plans.append(told)

        def run(self, q: torch.Tensor, cache: Any, **told: Any) -> None:
            runs.append(SimpleNamespace(q=q, cache=cache, told=told))

    module = ModuleType("flashinfer")
    module.BatchPrefillWithPagedKVCacheWrapper = Wrapper  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "flashinfer", module)
    op, one = flashinfer.make(), natural()
    for _ in range(2):
        op(*one.arguments, out=one.out, **SCALES)
    (told,) = plans
    assert told["paged_kv_indptr"].tolist() == [0, 21] and told["paged_kv_last_page_len"].tolist() == [40]
    assert torch.equal(told["paged_kv_indices"], one.block_table[0, :21])
    assert (told["num_qo_heads"], told["causal"], told["sm_scale"]) == (6, True, 0.0625)
    assert len(runs) == 2 and runs[0].cache[1].dtype == torch.float8_e4m3fn
    assert (runs[0].told["k_scale"], runs[0].told["v_scale"]) == (0.5, 2.0)
    uneven = dataclasses.replace(one, block_table=one.block_table.clone(), row_lens=one.row_lens.flip(0))
    with pytest.raises(ValueError, match="causal mask has no rows of"):
        op(*uneven.arguments, out=uneven.out, **SCALES)


def timed(name: str, microseconds: float | None) -> Timed:
    if microseconds is None:
        return Timed(name=name, why="no such luck")
    samples = Samples(warm_up_us=((9.0,),), timed_us=((microseconds,), (microseconds + 1,)), launches=1)
    wrong = None if name == READ else 7
    return Timed(name=name, samples=samples, disagreements=wrong, elements=7680)


def test_a_table_gives_ratios_and_reasons() -> None:
    results = [(SHAPE, [timed(table.KERNEL, 19.5), timed("sdpa", None), timed(READ, 4.5)])]
    lines = table.text(results).splitlines()
    assert lines[1].split() == [
        *["48", "1000", "kernel", "20.00", "19.50-20.50", "4.00", "1.00", "7", "of", "7680"]
    ]
    assert lines[2].endswith("no such luck")
    assert lines[3].split()[-3:] == ["1.00", "0.25", "-"]
    assert command.conclude(results).code == "measured"
    failed = [(SHAPE, [timed(table.KERNEL, None)])]
    assert command.conclude(failed).code == "kernel-failed"


def test_without_a_gpu_nothing_is_timed(capsys: pytest.CaptureFixture[str]) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    assert cli.main(["peers"]) == 4
    assert capsys.readouterr().out.splitlines()[-1].startswith("verdict: unknown (no-gpu")


def test_a_peer_can_be_abbas_candidate(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("KERNELGATE_HOME", str(tmp_path))
    sides = ["--base", "peer:sdpa-ready", "--candidate", "peer:sdpa", "--backend", "host"]
    assert cli.main(["abba", *sides, "--contexts", "64", "--budget", "300ms"]) == 4
    assert "unknown (host-clock" in capsys.readouterr().out.splitlines()[-1]
