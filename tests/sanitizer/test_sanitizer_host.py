"""The CPU twin sees one byte too far, names file and line, and believes nothing that isn't instrumented."""

import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree

import pytest

from artifacts.places import root
from sanitizer import cli, subject
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


def documented() -> str:
    """The rows that the documentation calls green."""
    text = (root() / "docs" / "memory.md").read_text()
    return re.search(r"--library naive\.so --cases (\S+)", text)[1]  # type: ignore[index]


def test_the_documented_example_is_clean_where_it_is_called_rightly(example: Careless) -> None:
    assert check("--library", str(example()), cases=documented()) == 0


def test_the_documented_example_refuses_too_little(
    example: Careless, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = "refused-v-page-3x64,refused-k-scale-nan-3x64,refused-scale-zero-3x64"
    assert check("--library", str(example()), cases=cases) == 1
    shown = capsys.readouterr().out
    assert "rejected (memory-error: 1 finding: heap-buffer-overflow" in shown and "-scale-zero" not in shown
    assert "wrong-outcome: refused-k-scale-nan-3x64: not refused" in shown


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


def suppressing(path: Path, expires: date) -> Path:
    path.write_text(f'[[suppress]]\nkind = "*"\nreason = "a test"\nexpires = {expires}\n')
    return path


def test_a_case_cut_short_at_a_suppressed_finding_is_undecided_until_the_expiry(
    tmp_path: Path, careless: Careless, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    library, cases = careless(*CHECKED, "-DCARELESS=1"), "empty-all-3x64,pad-both-8-3x64"
    today = datetime.now().date()
    for days, code in ((30, 3), (-1, 1)):
        entry = suppressing(tmp_path / "known.toml", today + timedelta(days=days))
        assert check("--library", str(library), "--suppressions", str(entry), cases=cases) == code
        said = (
            "undecided (cut-short: 2 cases never came to an end, so that no outcome was judged, first empty"
        )
        assert (said in capsys.readouterr().out) == (code == 3)
    records = [json.loads(path.read_text()) for path in (home / "records").glob("*.json")]
    assert sorted(record["outcome"] for record in records) == ["fail", "unknown"]
    assert sorted(len(record["results"]["suppressed"]) for record in records) == [0, 2]


def test_a_dirty_tree_is_undecided_in_every_result(
    tmp_path: Path,
    careless: Careless,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    home: Path,
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    clean, library = subject.resolve, careless(*CHECKED)
    outputs = {"--json": tmp_path / "out.json", "--junit": tmp_path / "out.xml"}
    given = ["--library", str(library), *(text for pair in outputs.items() for text in map(str, pair))]
    for dirty, code, word, outcome in (
        ((), 0, "admitted", "pass"),
        (("a.py",), 3, "undecided", "unknown"),
    ):
        monkeypatch.setattr(
            subject, "resolve", lambda *a, dirty=dirty, **k: replace(clean(*a, **k), dirty=dirty)
        )
        assert check(*given, cases="empty-all-3x64") == code
        shown, written = capsys.readouterr().out, json.loads(outputs["--json"].read_text())
        assert f"verdict: {word} (" in shown and ("::error title=dirty-tree::" in shown) == bool(dirty)
        assert (written["verdict"]["word"], written["outcome"]) == (word, outcome)
        assert written["reasons"][0]["code"] == ("dirty-tree" if dirty else "memory-clean")
        assert ElementTree.parse(outputs["--junit"]).getroot().get("failures") == str(len(dirty))
    # A record holds what was measured; what edits mean is for the verdict over records to say.
    records = [json.loads(path.read_text()) for path in (home / "records").glob("*.json")]
    assert [record["outcome"] for record in records] == ["pass", "pass"]


def test_a_library_without_checks_is_unknown(careless: Careless, capsys: pytest.CaptureFixture[str]) -> None:
    library = careless("-DCARELESS=1")
    assert check("--library", str(library), cases="core") == 4
    assert "verdict: unknown (not-instrumented: careless.so" in capsys.readouterr().out


CALLS = ("--param", "asan-instrumentation-with-call-threshold=0")


def test_checks_that_are_calls_count(careless: Careless, capsys: pytest.CaptureFixture[str]) -> None:
    library = careless(*CHECKED, *CALLS, "-DCARELESS=1")
    assert b"__asan_report_load" not in library.read_bytes()
    assert check("--library", str(library), cases="empty-all-3x64") == 1
    assert f"careless.cc:{line_of('sink = codes')}" in capsys.readouterr().out


def test_a_library_that_is_only_linked_with_the_runtime_is_unknown(
    careless: Careless, capsys: pytest.CaptureFixture[str]
) -> None:
    """Compiled without the checks: no_sanitize is what a file without the flag comes to."""
    library = careless("-fsanitize=address", "-fno-sanitize=all", "-Wl,--no-as-needed", "-lasan")
    assert not subject.instrumented(library) and subject.needs_runtime(library)
    assert check("--library", str(library), cases="core") == 4
    shown = capsys.readouterr().out
    assert "unknown (not-instrumented: careless.so is linked with AddressSanitizer, but compiled wi" in shown
    assert cli.main(["leakcheck", "--library", str(library), "--cases", "own-output-3x64"]) == 0


def test_a_crash_is_a_finding_with_its_line(example: Careless, capsys: pytest.CaptureFixture[str]) -> None:
    library = example(
        (
            "const int64_t length = data<const int32_t>(lens)[row];",
            "const int64_t length = *(volatile int*)8;",
        )
    )
    assert check("--library", str(library), cases="page-16-len-16-3x64") == 1
    assert "verdict: rejected (memory-error: 1 finding: SEGV at " in capsys.readouterr().out


def test_memory_that_nobody_wrote_shows_in_the_outcome(
    example: Careless, capsys: pytest.CaptureFixture[str]
) -> None:
    library = example(
        ("std::vector<double> sum(dim);", "double* sum = new double[dim]; std::fill(sum + 1, sum + dim, 0);")
    )
    assert check("--library", str(library), cases="page-16-len-16-3x64") == 1
    assert "NaN in row 0 of inputs without one: uninitialised memory?" in capsys.readouterr().out


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
