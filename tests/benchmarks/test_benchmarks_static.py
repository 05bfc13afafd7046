"""Static costs: the assembler's log, limits, and each gate passing and failing."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from artifacts import foreign
from artifacts.sides import Binary
from benchmarks import cli
from benchmarks.static import command, costs, judge, ptxas
from benchmarks.static.costs import Costs, CostsError
from benchmarks.static.limits import LIMITS, blocks_per_multiprocessor, registers_per_block
from benchmarks.static.ptxas import Function, PtxasError
from evidence import policy, store
from grouped_attention.manifest import Manifest, dumps, sha256_bytes

WARNING = "nvrtc: warning: Architectures prior to '<compute/sm>_75' are deprecated\n"


def block(function: Function, helpers: str = "") -> str:
    """What the assembler prints of one kernel."""
    shared = f", {function.static_shared_bytes} bytes smem" if function.static_shared_bytes else ""
    return (
        f"ptxas info    : Compiling entry function '{function.name}' for '{function.arch}'\n"
        f"{helpers}{properties(function)}"
        f"ptxas info    : Used {function.registers} registers, used 1 barriers{shared}, 400 bytes cmem[0]\n"
        "ptxas info    : Compile time = 37.359 ms\n"
    )


def properties(function: Function) -> str:
    """The lines on stack and spills."""
    return (
        f"ptxas info    : Function properties for {function.name}\n"
        f"ptxas         .     {function.stack_bytes} bytes stack frame, "
        f"{function.spill_store_bytes} bytes spill "
        f"stores, {function.spill_load_bytes} bytes spill loads\n"
    )


def kernel(name: str = "k", **fields: Any) -> Function:
    defaults: dict[str, Any] = {
        "arch": "sm_70",
        "is_entry": True,
        "stack_bytes": 0,
        "spill_store_bytes": 0,
        "spill_load_bytes": 0,
        "registers": 64,
        "static_shared_bytes": 0,
    }
    return Function(name=name, **{**defaults, **fields})


def cost(**fields: Any) -> Costs:
    defaults: dict[str, Any] = {
        "kernel": "k",
        "arch": "sm_70",
        "threads": 256,
        "registers": 64,
        "registers_per_block": 16384,
        "spill_store_bytes": 0,
        "spill_load_bytes": 0,
        "stack_bytes": 0,
        "static_shared_bytes": 0,
        "dynamic_shared_bytes": 0,
        "code_bytes": 128,
        "blocks_per_multiprocessor": 4,
    }
    return Costs(**{**defaults, **fields})


def elf(kernels: Mapping[str, int | None]) -> bytes:
    """A cubin with a code section and, where bounded, a launch bound per kernel."""
    content: dict[str, bytes] = {}
    for name, threads in kernels.items():
        content[f".text.{name}"] = bytes(128)
        bound = b"" if threads is None else struct.pack("<BBHIII", 4, 5, 12, threads, 1, 1)
        content[f".nv.info.{name}"] = bound
    names = b"\0" + b"".join(name.encode() + b"\0" for name in (*content, ".shstrtab"))
    body, headers = bytearray(), [bytes(64)]
    for name, data in (*content.items(), (".shstrtab", names)):
        place = names.index(b"\0" + name.encode() + b"\0") + 1
        headers.append(struct.pack("<IIQQQQIIQQ", place, 1, 0, 0, 64 + len(body), len(data), 0, 0, 1, 0))
        body += data
    ident = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    count = len(headers)
    head = struct.pack(
        "<16sHHIQQQIHHHHHH", ident, 2, 190, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, count, count - 1
    )
    return head + bytes(body) + b"".join(headers)


NAMES = st.text("abcdefgh_0123456789", min_size=1, max_size=12)
FUNCTIONS = st.builds(
    Function,
    name=NAMES,
    arch=st.sampled_from(sorted(LIMITS)),
    is_entry=st.just(True),
    stack_bytes=st.integers(0, 10**6),
    spill_store_bytes=st.integers(0, 10**6),
    spill_load_bytes=st.integers(0, 10**6),
    registers=st.integers(1, 255),
    static_shared_bytes=st.integers(0, 10**5),
)


@given(functions=st.lists(FUNCTIONS, min_size=1, max_size=5, unique_by=lambda f: f.name))
def test_log_roundtrip(functions: list[Function]) -> None:
    text = WARNING + "ptxas info    : 0 bytes gmem\n" + "".join(map(block, functions))
    assert ptxas.parse(text) == tuple(functions)


@given(text=st.text(max_size=200))
def test_noise_is_no_log(text: str) -> None:
    with pytest.raises(PtxasError):
        ptxas.parse(text)


@given(functions=st.lists(FUNCTIONS, min_size=1, max_size=3, unique_by=lambda f: f.name), data=st.data())
def test_a_log_with_a_lost_line_is_never_read_as_whole(
    functions: list[Function], data: st.DataObject
) -> None:
    lines = "".join(map(block, functions)).splitlines(keepends=True)
    needed = [n for n, line in enumerate(lines) if "Compile time" not in line]
    lost = data.draw(st.sampled_from(needed))
    try:
        found = ptxas.parse("".join(lines[:lost] + lines[lost + 1 :]))
    except PtxasError:
        return
    assert found != tuple(functions)


def test_functions_that_are_not_inlined_are_found() -> None:
    helper = kernel("helper", is_entry=False, registers=None, spill_store_bytes=8)
    assert ptxas.parse(block(kernel(), helpers=properties(helper))) == (helper, kernel())


def test_a_kernel_twice_is_refused() -> None:
    with pytest.raises(PtxasError, match="twice"):
        ptxas.parse(block(kernel()) * 2)


@pytest.mark.parametrize(
    ("registers", "threads", "expected"), [(255, 256, 65536), (256, 256, 65536), (33, 64, 2560), (1, 33, 512)]
)
def test_registers_are_handed_out_in_steps(registers: int, threads: int, expected: int) -> None:
    assert registers_per_block(registers, threads) == expected


@pytest.mark.parametrize(
    ("arch", "registers", "threads", "shared", "blocks"),
    [
        ("sm_70", 32, 1024, 0, 2),
        ("sm_70", 255, 256, 0, 1),
        ("sm_70", 32, 256, 48 << 10, 2),
        ("sm_70", 32, 256, (48 << 10) + 1, 1),
        ("sm_70", 32, 256, (96 << 10) + 1, 0),
        ("sm_70", 16, 32, 0, 32),
        ("sm_90", 32, 256, 113 << 10, 2),
        ("sm_90", 32, 256, (113 << 10) + 1, 1),
    ],
)
def test_occupancy(arch: str, registers: int, threads: int, shared: int, blocks: int) -> None:
    found = blocks_per_multiprocessor(LIMITS[arch], registers=registers, threads=threads, shared_bytes=shared)
    assert found == blocks


def test_costs_join_log_cubin_and_library() -> None:
    helper = kernel("helper", is_entry=False, registers=None, spill_load_bytes=4)
    log = block(kernel(static_shared_bytes=1024), helpers=properties(helper))
    (found,) = costs.assemble(log, elf({"k": 256, "helper": None}), {"k": 2048}, "sm_70")
    assert (found.threads, found.registers_per_block, found.code_bytes) == (256, 16384, 128)
    assert (found.shared_bytes, found.spill_bytes, found.blocks_per_multiprocessor) == (3072, 4, 4)


BROKEN: dict[str, tuple[dict[str, int | None], dict[str, int], str]] = {
    "other kernels in the cubin": ({"other": 256}, {"k": 0}, "sm_70"),
    "code without a log": ({"k": 256, "more": 256}, {"k": 0}, "sm_70"),
    "no launch bound": ({"k": None}, {"k": 0}, "sm_70"),
    "dynamic shared memory not stated": ({"k": 256}, {}, "sm_70"),
    "another architecture": ({"k": 256}, {"k": 0}, "sm_90"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_does_not_fit_together_is_unreadable(case: str) -> None:
    kernels, dynamic, arch = BROKEN[case]
    with pytest.raises(CostsError) as caught:
        costs.assemble(block(kernel()), elf(kernels), dynamic, arch)
    assert caught.value.code == "static-unreadable"


def test_costs_within_limits_are_not_complained_of() -> None:
    assert judge.complaints([cost()], [cost()]) == ()
    assert judge.complaints([cost(registers_per_block=65536, dynamic_shared_bytes=96 << 10)], None) == ()


@pytest.mark.parametrize(
    ("code", "fields", "limit"),
    [
        ("spills", {"spill_store_bytes": 1}, "1 bytes of spill stores"),
        ("spills", {"spill_load_bytes": 1}, "1 of loads"),
        ("registers-per-block", {"registers_per_block": 65537}, "65536"),
        ("shared-per-block", {"static_shared_bytes": 1, "dynamic_shared_bytes": 96 << 10}, "98304"),
    ],
)
def test_each_limit_is_named(code: str, fields: dict[str, int], limit: str) -> None:
    (reason,) = judge.complaints([cost(**fields)], None)
    assert reason.code == code
    assert limit in reason.text
    assert "k: " in reason.text


def test_shared_limit_is_the_architectures() -> None:
    assert judge.complaints([cost(arch="sm_90", dynamic_shared_bytes=227 << 10)], None) == ()
    (reason,) = judge.complaints([cost(arch="sm_90", dynamic_shared_bytes=(227 << 10) + 1)], None)
    assert reason.code == "shared-per-block"


def test_steps_against_the_base() -> None:
    def codes(new: Costs, old: Costs) -> set[str]:
        return {reason.code for reason in judge.complaints([new], [old])}

    assert codes(cost(blocks_per_multiprocessor=3), cost()) == {"occupancy-step"}
    assert codes(cost(blocks_per_multiprocessor=5), cost()) == set()
    assert codes(cost(spill_store_bytes=4), cost()) == {"spills", "more-spills"}
    assert codes(cost(spill_store_bytes=4), cost(spill_store_bytes=4)) == {"spills"}
    assert codes(cost(), cost(kernel="gone")) == {"kernel-vanished"}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KERNELGATE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def artifact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes a cuda artifact folder of one kernel, without a compiler."""
    answer = json.dumps({"kernels": {"k": {"dynamic_shared_bytes": 512}}})
    monkeypatch.setattr(foreign, "_ASK", f"print({answer!r})")

    def write(name: str, function: Function, backend: str = "cuda") -> Path:
        folder = tmp_path / name
        folder.mkdir()
        stem = f"grouped_attention-{backend}-{function.arch}"
        for suffix, data in (
            (".so", name.encode()),
            (".cubin", elf({"k": 256})),
            (".ptxas.txt", block(function).encode()),
        ):
            (folder / f"{stem}{suffix}").write_bytes(data)
        files = {path.name: sha256_bytes(path.read_bytes()) for path in folder.iterdir()}
        manifest = Manifest(
            backend=backend,
            arch=function.arch,
            variant="release",
            library=f"{stem}.so",
            sha256=files[f"{stem}.so"],
            code_digest=f"code-{name}",
            source_digest="s",
            flags=(),
            toolchain={},
            digest="d",
            files=files,
        )
        (folder / "manifest.json").write_text(dumps(manifest))
        return folder

    return write


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, list[str]]:
    code = cli.main(["static", *map(str, arguments)])
    return code, capsys.readouterr().out.splitlines()


def test_command_admits_and_keeps_a_record(
    artifact: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new, old, out = artifact("new", kernel()), artifact("old", kernel()), tmp_path / "costs.json"
    code, lines = run(capsys, "--artifact", new, "--base", old, "--json", out)
    assert code == 0
    assert (
        lines[-1]
        == "verdict: admitted (within-limits: cuda sm_70: 1 kernels against its limits and the base)"
    )
    (record,) = store.load().records
    assert (record.kind, record.outcome, record.selection) == ("static", "pass", {"base": "code-old"})
    assert record.results["kernels"][0]["dynamic_shared_bytes"] == 512
    assert any((e.kind, e.arch) == (record.kind, record.artifact.arch) for e in policy.POLICY)
    assert json.loads(out.read_text())[0]["outcome"] == "pass"


def test_command_rejects_a_spill(artifact: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    code, lines = run(capsys, "--artifact", artifact("new", kernel(spill_load_bytes=8)))
    assert code == 1
    assert lines[-1].startswith("verdict: rejected (spills: k: ")
    assert store.load().records[0].outcome == "fail"


def test_command_rejects_an_occupancy_step(
    artifact: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    new, old = artifact("new", kernel(registers=128)), artifact("old", kernel(registers=64))
    code, lines = run(capsys, "--artifact", new, "--base", old)
    assert code == 1
    assert "occupancy-step" in lines[-1]
    assert any("4 -> 2" in line for line in lines)


def test_command_does_not_know_what_it_cannot_read(
    artifact: Callable[..., Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(capsys, "--artifact", artifact("host", kernel(), backend="host"))[0] == 4
    assert run(capsys, "--artifact", "no-such-folder")[0] == 4
    monkeypatch.setattr(foreign, "_ASK", "print('{}')")
    code, lines = run(capsys, "--artifact", artifact("new", kernel()))
    assert (code, store.load().records[-1].outcome) == (4, "unknown")
    assert lines[-1].startswith("verdict: unknown (static-unreadable: ")


def test_unreadable_base_does_not_hide_a_spill(
    artifact: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new, old = artifact("new", kernel(spill_load_bytes=8)), artifact("old", kernel("other"))
    assert run(capsys, "--artifact", new, "--base", old)[0] == 1
    assert run(capsys, "--artifact", artifact("fine", kernel()), "--base", old)[0] == 4
    assert tmp_path.exists()


def test_lost_log_is_named(artifact: Callable[..., Path]) -> None:
    folder = artifact("new", kernel())
    library = folder / "grouped_attention-cuda-sm_70.so"
    (folder / "grouped_attention-cuda-sm_70.ptxas.txt").unlink()
    binary = Binary(library=library, backend="cuda", arch="sm_70", sha256="x", directory=folder, toolchain={})
    outcome = command.judged(binary, None)
    assert outcome.reasons[0].code == "no-static-costs"
    assert "ptxas.txt" in outcome.reasons[0].text
    assert command.judged(replace(binary, arch="sm_61"), None).word == "unknown"


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["static"]])
def test_usage_gives_2(arguments: list[str]) -> None:
    assert cli.main(arguments) == 2


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["static", "--help"]) == 0
    assert "--base" in capsys.readouterr().out
