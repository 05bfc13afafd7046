"""Real reports are read whole; what is cut off, foreign or unknown is said, and never taken for nothing."""

from pathlib import Path

import pytest

from sanitizer import asan, xml_report
from sanitizer.agreement import errors_counted
from sanitizer.xml_report import ReportError

SAMPLES = Path(__file__).parent / "samples"
OVERFLOW = """==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x60300077efa8 at pc 0x1
READ of size 16 at 0x60300077efa8 thread T3
    #0 0x7efda94b89cf in __interceptor_memcpy ../../../../src/libsanitizer/asan/a.cpp:69
    #1 0x7efda852e1dd in grouped::load(unsigned char const*, long) kernels/src/host/split_vector.cc:51
    #2 0x7efda75d9f79  (/lib/x86_64-linux-gnu/libffi.so.8+0x6f79)

0x60300077efa8 is located 0 bytes to the right of 24-byte region [0x60300077ef90,0x60300077efa8)
allocated by thread T0 here:
    #0 0x7efda94b89cf in somewhere kernels/src/host/other.cc:9
"""
MISALIGNED = """/x/kernels/a.cc:9:58: runtime error: load of misaligned address 0x603 for type 'const int'
0x603: note: pointer points here
    #0 0x7f82dc92223d in planted kernels/a.cc:9
"""


@pytest.mark.parametrize(
    ("name", "kernel", "line", "kind", "address", "threads"),
    [
        ("mem_oob.xml", "oob_read", 4, "out of bounds", "0x7f9f12803400", 2),
        ("mem_mis.xml", "misaligned", 5, "misaligned", "0x7fcb18802408", 2),
        ("new_mem_mis.xml", "misaligned", 5, "misaligned", "0x7f12d4802408", 2),
        ("init.xml", "uninit", 7, "Initcheck", "0x7fedec802080", 2),
    ],
)
def test_samples_of_the_tool(
    name: str, kernel: str, line: int, kind: str, address: str, threads: int
) -> None:
    (found,) = xml_report.read(SAMPLES / name, "memcheck").findings
    assert (found.kernel, found.file, found.line) == (kernel, "s.cu", line)
    assert (found.kind, found.address, found.threads) == (kind, address, threads)
    assert found.thread.startswith("block (0, 0, 0) thread (")


def test_a_barrier_error_names_its_type() -> None:
    (found,) = xml_report.read(SAMPLES / "sync.xml", "synccheck").findings
    assert (found.kernel, found.place, found.threads) == ("kernelgate_control_synccheck", "/device.cu:21", 2)
    assert (found.kind, found.text) == ("Synccheck", "Barrier error: Invalid arguments")


def test_a_race_names_both_accesses() -> None:
    (found,) = xml_report.read(SAMPLES / "race.xml", "racecheck").findings
    assert found.kind == "Race condition (Error)" and found.place == "s.cu:6" and found.threads == 256
    assert found.text == "Write s.cu:6 against Read s.cu:6"


def test_errors_that_follow_a_lost_context_are_kept_apart() -> None:
    report = xml_report.read(SAMPLES / "new_mem_mis.xml", "memcheck")
    assert len(report.following) == 5 and (report.leading, report.uncounted) == (0, 1) and not report.unknown
    assert any("cudaErrorLaunchFailure" in text for text in report.following)
    graph = xml_report.read(SAMPLES / "graph_oob.xml", "memcheck")
    assert graph.findings[0].kernel == "oob_read" and not graph.unknown


@pytest.mark.parametrize("name", [path.name for path in sorted(SAMPLES.glob("*.xml"))])
def test_no_cut_off_sample_is_read(name: str, tmp_path: Path) -> None:
    whole = (SAMPLES / name).read_bytes().rstrip()
    cut = tmp_path / name
    for end in range(0, len(whole) - 1, max(1, len(whole) // 40)):
        cut.write_bytes(whole[:end])
        with pytest.raises(ReportError):
            xml_report.read(cut, "memcheck")


def test_what_is_no_report_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="no XML report"):
        xml_report.read(tmp_path / "missing.xml", "memcheck")
    path = tmp_path / "other.xml"
    for text in ("<html/>", "<ComputeSanitizerOutput><note/></ComputeSanitizerOutput>"):
        path.write_text(text)
        with pytest.raises(ReportError, match="not a report"):
            xml_report.read(path, "memcheck")


def test_unknown_kinds_and_known_ones_without_a_place_are_named(tmp_path: Path) -> None:
    path = tmp_path / "odd.xml"
    records = "<record><kind>Leak</kind></record><record><kind>Precise</kind></record><record/>"
    path.write_text(f"<ComputeSanitizerOutput>{records}</ComputeSanitizerOutput>")
    report = xml_report.read(path, "memcheck")
    assert report.unknown == ("Leak", "Precise", "(none)") and not report.empty


@pytest.mark.parametrize(
    ("tool", "log", "count"),
    [
        ("memcheck", "========= ERROR SUMMARY: 0 errors", 0),
        ("memcheck", "========= ERROR SUMMARY: 1 error", 1),
        ("initcheck", "========= ERROR SUMMARY: 64 errors\n", 64),
        ("racecheck", "========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)", 1),
        ("racecheck", "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)", 0),
        ("racecheck", "========= ERROR SUMMARY: 0 errors", None),
        ("synccheck", "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)", None),
        ("memcheck", "========= ERROR SUMMARY: 3 errors\n========= ERROR SUMMARY: 0 errors", 0),
        ("memcheck", "========= COMPUTE-SANITIZER", None),
        ("memcheck", "", None),
    ],
)
def test_summaries(tool: str, log: str, count: int | None) -> None:
    assert errors_counted(log, tool) == count


def test_an_overflow_is_placed_at_the_first_frame_of_ours() -> None:
    (found,) = asan.parse(f"noise\n{OVERFLOW}")
    assert found.kind == "heap-buffer-overflow" and found.place == "kernels/src/host/split_vector.cc:51"
    assert found.kernel == "grouped::load" and found.address == "0x60300077efa8" and found.thread == "T3"
    assert "READ of size 16" in found.text


def test_frames_of_the_compilers_headers_are_not_the_place() -> None:
    inner = "    #0 0x7efda852e1dd in std::fill_n(long) /usr/include/c++/12/bits/stl_algobase.h:1124\n"
    (found,) = asan.parse(
        OVERFLOW.replace("    #0 0x7efda94b89cf in __int", f"{inner}    #0 0x7efda94b89cf in __int", 1)
    )
    assert found.place == "kernels/src/host/split_vector.cc:51"
    (alone,) = asan.parse(f"==7==ERROR: AddressSanitizer: SEGV on unknown address 0x1 (pc 0x1)\n{inner}")
    assert alone.place == "/usr/include/c++/12/bits/stl_algobase.h:1124"


def test_frames_of_the_c_library_are_not_the_place() -> None:
    frames = "    #0 0x7f0 in __pthread_kill_implementation nptl/pthread_kill.c:44\n"
    frames += "    #1 0x7f1 in raise ../sysdeps/posix/raise.c:26\n    #2 0x7f2 in attention my/kernel.cc:7\n"
    (found,) = asan.parse(f"==7==ERROR: AddressSanitizer: SEGV on unknown address 0x1 (pc 0x1)\n{frames}")
    assert found.place == "my/kernel.cc:7"


def test_without_frames_the_report_s_head_names_the_place() -> None:
    (found,) = asan.parse(MISALIGNED.splitlines()[0] + "\n")
    assert found.place == "/x/kernels/a.cc:9" and "misaligned address" in found.text


def test_both_runtimes_in_one_output() -> None:
    found = asan.parse(MISALIGNED + OVERFLOW)
    assert [one.kind for one in found] == ["undefined-behavior", "heap-buffer-overflow"]
    assert found[0].place == "kernels/a.cc:9" and "misaligned address" in found[0].text
    assert found[0].address == "0x603"
    assert asan.parse("all is well\n") == ()


def test_a_report_without_frames_is_still_a_finding() -> None:
    (found,) = asan.parse("==1==ERROR: AddressSanitizer: SEGV on unknown address 0x000000000000 (pc 0x1)\n")
    assert found.kind == "SEGV" and found.place == "(no place)"
