"""The CUDA kernels' own sources on an emulated GPU, against the host backend: the same bits everywhere.

This is what a machine without a GPU can say about them: the schedule, the fragment layouts of each
architecture's tensor-core instruction, page look-ups, masks, the order of every operation, and that copies
are waited for.
"""

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import grouped_attention as ga
from fixtures.cases import Spec, drawn
from fixtures.cases.case import causal
from fixtures.cases.drawn import Seeded
from fixtures.cases.realise import to_inputs
from fixtures.inputs import Inputs
from regression.emulation import compare, compiler, memory
from regression.emulation.emulator import Emulator
from regression.emulation.results import Finding

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
ARCHITECTURES = (70, 80, 90)
INSTANCES = ((6, 256), (3, 64))
Host = Callable[[str], ga.Extension]


@pytest.fixture(scope="session")
def emulators(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Emulator]:
    store = tmp_path_factory.mktemp("emulators")
    return cache(lambda arch: Emulator(compiler.build(KERNELS, f"sm_{arch}", store)))


def differences(emulator: Emulator, host: ga.Extension, problem: Inputs) -> list[Finding]:
    wanted = compare.expected(host, problem)
    return list(compare.findings(emulator, memory.guarded(problem), wanted))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("heads", "dim"), INSTANCES)
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_random_calls_give_the_host_backends_bits(
    emulators: Callable[[int], Emulator], host: Host, arch: int, heads: int, dim: int, seed: int
) -> None:
    spec = drawn.draw(Seeded(seed=seed), longest=350, instance=(heads, dim))
    assert differences(emulators(arch), host(f"sm_{arch}"), to_inputs(spec)) == [], spec


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_several_chunks_a_split(emulators: Callable[[int], Emulator], host: Host, arch: int) -> None:
    # Long enough for the ring of buffers to come round: six chunks and more in each split of sm_70.
    tokens = 80 * 6 * 64 + 1000
    spec = replace(
        drawn.draw(Seeded(seed=7), instance=(3, 64)), page=848, lens=causal(tokens, 5), entries=None
    )
    assert differences(emulators(arch), host(f"sm_{arch}"), to_inputs(spec)) == [], spec


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_shared_memory_fits_the_architecture(emulators: Callable[[int], Emulator], arch: int) -> None:
    limit_bytes = {70: 96, 80: 163, 90: 227}[arch] * 1024
    used = {
        emulators(arch).shared_bytes(heads, dim, rows) for heads, dim in INSTANCES for rows in range(2, 9)
    }
    assert 0 < max(used) <= limit_bytes


# What must not go unseen: a file, a line of it, what it becomes.
FAULTS = {
    "residual values twice": ("values.cuh", "right.high[at]", "right.low[at]"),
    "a barrier too few": ("split.cuh", "loader.wait();\n    __syncthreads();", "loader.wait();"),
    "one copy too few waited for": ("loader_async.cuh", "copies<kAhead - 1>", "copies<kAhead>"),
    "rows of another fragment": ("mma_m8n8k4.cuh", "8 * ((lane >> 2) & 1)", "8 * ((lane >> 3) & 1)"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_shows(host: Host, tmp_path: Path, name: str) -> None:
    file, line, becomes = FAULTS[name]
    arch = 70 if file == "mma_m8n8k4.cuh" else 90
    kernels = shutil.copytree(KERNELS, tmp_path / "kernels")
    source = kernels / "src" / "cuda" / file
    assert source.read_text().count(line) == 1
    source.write_text(source.read_text().replace(line, becomes))
    emulator = Emulator(compiler.build(kernels, f"sm_{arch}", tmp_path))
    spec = Spec(heads=6, dim=256, catches="", lens=causal(330, 7), page=112, permuted=True, wild=True, seed=1)
    assert differences(emulator, host(f"sm_{arch}"), to_inputs(spec))
