"""`benchmarks static`: its verdicts, tables and records."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from compiler_output import block, elf, kernel

from artifacts import foreign
from artifacts.sides import Binary
from benchmarks import cli
from benchmarks.static import command
from benchmarks.static.ptxas import Function
from evidence import policy, store
from grouped_attention.manifest import Manifest, dumps, sha256_bytes


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KERNELGATE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def artifact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes a cuda artifact folder of one kernel, without a compiler."""
    answer = json.dumps({"kernels": {"k": {"dynamic_shared_bytes": 512}}})
    monkeypatch.setattr(foreign, "_ASK", f"print('describe:', {answer!r})")

    def write(name: str, function: Function, backend: str = "cuda") -> Path:
        folder = tmp_path / name
        folder.mkdir()
        stem = f"grouped_attention-{backend}-{function.arch}"
        for suffix, data in (
            (".so", b"\x7fELF" + name.encode()),
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


def test_what_differs_from_the_commit_is_measured_never_admitted(
    artifact: Callable[..., Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("artifacts.dirty.of_instrument", lambda _root=None: ("benchmarks/cli.py",))
    code, lines = run(capsys, "--artifact", artifact("new", kernel()))
    assert code == 3
    assert lines[-1].startswith("verdict: undecided (dirty-tree: ") and "benchmarks/cli.py" in lines[-1]
    assert store.load().records[0].outcome == "pass"


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
    assert lines[-1].startswith("verdict: rejected (spills: sm_70 k: ")
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
    monkeypatch.setattr(foreign, "_ASK", "print('describe: {}')")
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


def test_a_base_of_another_architecture_is_no_base(
    artifact: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    old = artifact("old", kernel(arch="sm_80"))
    code, lines = run(capsys, "--artifact", artifact("new", kernel()), "--base", old)
    assert code == 4
    assert lines[-1].startswith("verdict: unknown (no-binary: the base ")
    assert lines[-1].endswith("holds cuda sm_80, not cuda sm_70)")
    assert store.load().records[0].outcome == "unknown"
    assert run(capsys, "--artifact", artifact("bad", kernel(spill_load_bytes=8)), "--base", old)[0] == 1


def test_a_foreign_base_leaves_the_limits_alone_and_that_is_said(
    artifact: Callable[..., Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    new, foreign_library = artifact("new", kernel()), tmp_path / "foreign.so"
    foreign_library.write_bytes(b"\x7fELF not ours")
    answer = {"backend": "cuda", "arch": "sm_70", "kernels": {"k": {"dynamic_shared_bytes": 512}}}
    monkeypatch.setattr(foreign, "_ASK", f"print('describe:', {json.dumps(answer)!r})")
    code, lines = run(capsys, "--artifact", new, "--base", foreign_library)
    assert code == 0 and lines[-1].endswith("1 kernels against its limits)")
    assert any("foreign.so comes without a compiler's report: limits alone" in line for line in lines)
    assert store.load().records[0].selection == {"base": None}


def test_what_the_folder_holds_is_said(
    artifact: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = artifact("new", kernel(arch="sm_80"))
    code, lines = run(capsys, "--artifact", folder, "--arch", "sm_90")
    assert code == 4
    assert lines[-1] == f"verdict: unknown (no-static-costs: {folder} holds cuda sm_80, no cuda sm_90)"
    assert run(capsys, "--artifact", folder, "--arch", "sm_99")[0] == 2


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
