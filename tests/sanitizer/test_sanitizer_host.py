"""The CPU twin sees one byte too far, names file and line, and believes nothing that isn't instrumented."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sanitizer import cli
from sanitizer.host import worker_environment
from sanitizer.memory import MAPPED_BYTES, Arena

SOURCE = Path(__file__).parent / "support" / "careless.cc"
CHECKED = ("-fsanitize=address", "-g")
CASE = "refused-scale-zero-3x64"

Careless = Callable[..., Path]


def check(*arguments: str, cases: str) -> int:
    return cli.main(["memcheck", "--backend", "host", "--cases", cases, *arguments])


def line_of(words: str) -> int:
    return next(n for n, line in enumerate(SOURCE.read_text().splitlines(), 1) if words in line)


def test_a_careless_kernel_is_shown_with_file_and_line(
    tmp_path: Path, careless: Careless, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    library = careless(*CHECKED, "-DCARELESS=1")
    outputs = {"--json": tmp_path / "out.json", "--junit": tmp_path / "out.xml"}
    paths = [text for name, path in outputs.items() for text in (name, str(path))]
    code = check("--library", str(library), *paths, cases="empty-all-3x64,pad-both-8-3x64")
    shown = capsys.readouterr().out
    place = f"careless.cc:{line_of('sink = codes')}"
    assert code == 1 and place in shown and "verdict: rejected (memory-error: 2 findings" in shown
    assert f"line={line_of('sink = codes')},title=heap-buffer-overflow" in shown
    written = json.loads(outputs["--json"].read_text())
    assert [f["case"] for f in written["findings"]] == ["empty-all-3x64", "pad-both-8-3x64"]
    assert written["controls_found"] == ["control:misaligned", "control:over_read"]
    suite = ElementTree.parse(outputs["--junit"]).getroot()
    assert suite.get("failures") == "3" and suite.get("tests") == "3"


def test_without_its_mistake_the_same_kernel_is_clean(
    careless: Careless, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    library = careless(*CHECKED)
    code = check("--library", str(library), cases="empty-all-3x64")
    shown = capsys.readouterr().out
    hash_ = hashlib.sha256(library.read_bytes()).hexdigest()[:12]
    assert (
        code == 0 and f"(a foreign library, SHA-256 {hash_}…) under AddressSanitizer alone, no UBSan" in shown
    )
    (record,) = [json.loads(path.read_text()) for path in (home / "records").glob("*.json")]
    assert record["kind"] == "memcheck" and record["outcome"] == "pass"
    assert record["selection"] == {"cases": "empty-all-3x64"}


def test_what_isnt_refused_rejects(careless: Careless, capsys: pytest.CaptureFixture[str]) -> None:
    library = careless(*CHECKED)
    assert check("--library", str(library), cases=CASE) == 1
    assert f"wrong-outcome: {CASE}: not refused" in capsys.readouterr().out


def test_the_documented_example_is_clean(example: Careless) -> None:
    assert (
        check("--library", str(example()), cases="page-16-len-16-3x64,page-16-over-3x64,pad-both-8-3x64") == 0
    )


def test_the_documented_mistake_is_shown_with_file_and_line(
    example: Careless, capsys: pytest.CaptureFixture[str]
) -> None:
    library = example(("token < length", "token <= length"))
    assert check("--library", str(library), cases="page-16-len-16-3x64") == 1
    source = library.with_suffix(".cc").read_text().splitlines()
    line = next(n for n, text in enumerate(source, 1) if "[token / page]" in text)
    assert f"naive.cc:{line}" in capsys.readouterr().out


def test_others_may_refuse_in_their_own_words(example: Careless, capsys: pytest.CaptureFixture[str]) -> None:
    library = example(("it must be positive", "that can't be"))
    assert check("--library", str(library), cases=CASE) == 0
    assert check("--library", str(library), cases="refused-k-scale-nan-3x64") == 1
    assert "not refused: ValueError or TypeError" in capsys.readouterr().out


def test_a_suppression_with_reason_and_expiry_applies_until_then(
    tmp_path: Path, careless: Careless, capsys: pytest.CaptureFixture[str]
) -> None:
    library = careless(*CHECKED, "-DCARELESS=1")
    entry = tmp_path / "known.toml"
    text = '[[suppress]]\nfile = "*careless.cc"\nreason = "a test"\nexpires = {}\n'
    for expires, code in (("2999-01-01", 0), ("2020-01-01", 1)):
        entry.write_text(text.format(expires))
        given = ("--library", str(library), "--suppressions", str(entry))
        assert check(*given, cases="empty-all-3x64") == code
        said = (
            "0 cases clean, 2 planted found; 1 findings suppressed, 1 cases not clean and perhaps cut short"
        )
        assert (said in capsys.readouterr().out) == (code == 0)


def test_a_library_without_checks_is_unknown(careless: Careless, capsys: pytest.CaptureFixture[str]) -> None:
    library = careless("-DCARELESS=1")
    assert check("--library", str(library), cases="core") == 4
    assert "verdict: unknown (not-instrumented: careless.so" in capsys.readouterr().out


def test_an_arena_gives_exact_aligned_memory() -> None:
    with Arena("cpu") as arena:
        for count in (1, 24, 4097, MAPPED_BYTES + 48):
            tensor = arena.allocate(count)
            assert tensor.numel() == count and tensor.data_ptr() % 16 == 0
            tensor[0], tensor[-1] = 3, 4
            assert (int(tensor[0]), int(tensor[-1])) == ((3, 4) if count > 1 else (4, 4))


def test_behind_a_mapped_tensor_nothing_can_be_read() -> None:
    script = (
        "import ctypes; from sanitizer.memory import Arena, MAPPED_BYTES\n"
        "with Arena('cpu') as arena:\n"
        "    t = arena.allocate(MAPPED_BYTES + 48)\n"
        "    print(t[-1].item() == 0, flush=True)\n"
        "    ctypes.string_at(t.data_ptr() + t.numel(), 1)\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=worker_environment())
    assert done.returncode == -11 and done.stdout.strip() == "True"
