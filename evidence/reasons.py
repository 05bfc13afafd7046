"""Every reason code: what it means, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """One line each."""

    meaning: str
    advice: str


def explain(code: str) -> Explanation | None:
    """The explanation of a code, None for an unknown one."""
    entry = CODES.get(code)
    return None if entry is None else Explanation(meaning=entry[0], advice=entry[1])


_VERDICT: Mapping[str, tuple[str, str]] = {
    "needs-gpu-records": (
        "The CUDA code isn't the base's, and no fresh record of a GPU is there for it.",
        "Run the named commands on a GPU machine, then evidence pack there and evidence import here.",
    ),
    "no-evidence": ("A needed measurement has no record.", "Run the named command."),
    "stale-evidence": (
        "There are records, but of another binary, instrument, inputs, base or run, or of too little.",
        "Run the named command again with this binary and this checkout.",
    ),
    "unreadable-record": (
        "A file in the record store is damaged, so evidence may be missing unseen.",
        "Look at the file; move it away, and measure again what it held.",
    ),
    "base-fails-too": (
        "Candidate and base both fail the replay.",
        "Check the machine (compiler, CPU) and the fixtures (python -m fixtures verify) before the change.",
    ),
    "dirty-tree": (
        "Files differ from the commit, so no revision names what was measured.",
        "Commit and run again.",
    ),
    "no-revision": (
        "No commit that is known here has the sources of what was measured.",
        "Commit them, and measure again from a checkout that has the commit.",
    ),
    "no-binary": (
        "A needed library wasn't built.",
        "Run artifacts build with all backends and architectures.",
    ),
    "nothing-built": ("The candidate has no library at all.", "Look at the build's errors."),
    "build-failed": ("A library failed to compile.", "Read the log that is named; it is kept."),
    "passed": ("The measurement was made, and passed.", "Nothing to do."),
}

_BASE: Mapping[str, tuple[str, str]] = {
    "no-git": (
        "The tree isn't a git repository, or git is missing.",
        "Pass --base as an artifact folder or library.",
    ),
    "git-failed": ("git gave an error.", "Read its message; python -m artifacts doctor."),
    "shallow-clone": (
        "History was cut off at cloning: the base isn't here.",
        "git fetch --unshallow, or pass --base.",
    ),
    "first-commit": (
        "The candidate is the first commit: nothing came before it.",
        "Pass --base to name one.",
    ),
    "no-commit": ("The candidate has no commit yet.", "Commit first, or pass --base."),
    "no-main": ("Neither origin/main nor main is known here.", "git fetch origin main, or pass --base."),
    "no-common-history": ("Candidate and main share no commit.", "Pass --base to name what to compare with."),
    "bad-base": ("--base is neither a revision, nor an artifact folder or library.", "Correct it."),
    "bad-revision": ("There is no such revision here.", "Correct it, or fetch it."),
    "no-kernels": ("That revision has no kernels/ to build.", "Pass --base to name one that has."),
    "artifact-refused": (
        "An artifact folder doesn't match its manifest.",
        "In the store python -m artifacts clean DIGEST, elsewhere delete it; build or export it again.",
    ),
    "library-refused": (
        "A library can't be loaded, or doesn't say what it is.",
        "It must export describe().",
    ),
}

_REPLAY: Mapping[str, tuple[str, str]] = {
    "same-bits": ("Every output equals its golden, bit for bit.", "Nothing to do."),
    "bits-differ": (
        "Output bits differ from the golden.",
        "regression replay --locate GROUP; if it is meant, --accept REASON.",
    ),
    "partials-differ": (
        "The state before the combine differs from the golden.",
        "regression replay --locate GROUP.",
    ),
    "unwritten-output": ("The kernel left output elements unwritten.", "Check the launch and the row mask."),
    "stray-write": ("The kernel wrote beside its output.", "Check the output's indexing."),
    "inputs-modified": ("The kernel changed its inputs.", "Check what it stores to."),
    "not-finite": ("NaN or infinity where the truth is finite.", "regression replay --locate GROUP."),
    "over-budget": (
        "The error against FP64 is over 1.02 times the rounding floor + 2e-6.",
        "The arithmetic lost precision.",
    ),
    "partials-missing": (
        "Partials of some groups can't be stored.",
        "Replay a kernel that has the debug operation.",
    ),
    "nothing-to-accept": ("The goldens are these bits already.", "Nothing to do."),
    "accepted": ("The goldens were renewed, and the table written.", "Commit them with the change."),
    "located": ("The first differing element was found.", "Look at the quantity that is named."),
    "no-golden": (
        "There is no golden output to compare with.",
        "regression replay --accept REASON writes one.",
    ),
    "no-golden-partials": ("There are no golden partials.", "regression replay --accept REASON writes them."),
    "kernel-failed": (
        "The kernel raised on inputs that it must take, or returned partials of the wrong shape.",
        "Read its message; regression replay --groups GROUP repeats it.",
    ),
    "nothing-replayed": ("No group was replayed.", "Choose --groups core or all."),
    "fixture-damaged": ("A stored input or golden doesn't match its hash.", "git checkout -- fixtures."),
    "no-target": ("What should be replayed can't be had.", "Read the message."),
    "no-gpu": ("This needs a GPU, and there is none.", "Use --backend host, or a GPU machine."),
}

_CONTRACT: Mapping[str, tuple[str, str]] = {
    "contract-kept": ("Every case came out as it must, or was refused.", "Nothing to do."),
    "writes-wrong": (
        "The kernel left output elements unwritten, wrote beside them, or changed its inputs.",
        "regression contract --cases CASE repeats it.",
    ),
    "exact-bits": (
        "An output that exact arithmetic gives to the bit came out otherwise.",
        "python -m fixtures list --cases says what mistake the case is made for.",
    ),
    "nan-misplaced": (
        "NaN where none may be, none where one must be, or not stored as 0x7FFF.",
        "docs/arithmetic.md, sections 3 and 5.",
    ),
    "control-differs": (
        "A call that must give the bits of another gave others.",
        "Look at what the two differ in: fixtures/cases names it.",
    ),
    "partials-over-bound": (
        "The state before the combine is further from FP64 than 3e-6.",
        "An accumulator, a residual or a normalisation loses precision: docs/arithmetic.md, 4 to 6.",
    ),
    "state-kept": (
        "After lengths changed in place, a call or a graph's replay gave other bits than a fresh call.",
        "Look for lengths, a schedule or workspace contents kept from an earlier call.",
    ),
    "layout-differs": (
        "A row of the table gave other bits than its aligned, contiguous control, or is far from FP64.",
        "regression contract --cases ROW; fixtures/cases/boundary.py says how the row is laid out.",
    ),
    "not-refused": (
        "A wrong call was not refused by ValueError, TypeError or RuntimeError before anything was written.",
        "Check the arguments before the launch: docs/abi.md.",
    ),
    "fuzz-kept": ("Every drawn call came out as it must.", "Nothing to do."),
    "fuzz-broken": (
        "A drawn call broke a rule; its example was saved.",
        "Run the command that is named: it repeats the smallest example.",
    ),
}

_STATIC: Mapping[str, tuple[str, str]] = {
    "within-limits": ("Registers, spills, shared memory and occupancy are in bounds.", "Nothing to do."),
    "spills": (
        "The kernel spills registers to memory.",
        "Lower its register use, or raise its launch bound.",
    ),
    "more-spills": ("The kernel spills more than the base's.", "Lower its register use."),
    "registers-per-block": (
        "A block needs more registers than a multiprocessor has.",
        "Fewer threads or registers.",
    ),
    "shared-per-block": ("A block needs more shared memory than the architecture allows.", "Use less of it."),
    "occupancy-step": (
        "Fewer blocks fit on a multiprocessor than of the base's kernel.",
        "Lower what limits it.",
    ),
    "no-static-costs": (
        "The artifact holds no compiler output to read.",
        "Build it again; only cuda artifacts do.",
    ),
    "static-unreadable": (
        "The compiler's output isn't understood.",
        "Was the compiler changed? Adapt the parser.",
    ),
    "measured": ("A time was taken, and compared with no base.", "Nothing to do: it admits nothing."),
    "kernel-vanished": ("A kernel of the base is not in the candidate.", "Check that nothing was dropped."),
}

_TIMING: Mapping[str, tuple[str, str]] = {
    "same": ("The candidate's time lies within the margin of the base's.", "Nothing to do."),
    "no-slower": ("No comparison found the candidate slower than is allowed.", "Nothing to do."),
    "identical": ("Both sides are the same code, so nothing was timed.", "--aa times it against itself."),
    "slower": (
        "The interval of candidate ÷ base lies above 1 plus what is allowed.",
        "Look at the comparison that is named; --reject-above allows a slowdown.",
    ),
    "time-undecided": (
        "The budget ended before the interval said slower, faster or the same.",
        "Give it more time with --budget, or a quieter machine.",
    ),
    "too-few-samples": (
        "Too few rounds are valid to say anything.",
        "See what was void (throttling, loaded code), or give it more time with --budget.",
    ),
    "host-clock": (
        "The time is of a CPU: it tests the instrument, and says nothing of the kernel.",
        "Run it on a GPU machine.",
    ),
    "base-bits-differ": (
        "After a timed replay the base's outputs aren't those of an eager call.",
        "Check the machine and the base before the change.",
    ),
    "below-roofline": (
        "A call took less time than reading its keys and values must take.",
        "The replay can't have done its work: check the launch, the lengths and the device's figures.",
    ),
    "gpu-error": ("The GPU reported a memory error or an Xid while timing.", "Check the GPU: nvidia-smi -q."),
    "calibrated": ("False alarms and power of the timing are within their limits.", "Nothing to do."),
    "calibration-bad": (
        "The timing is shown to err more often than its limit.",
        "Don't trust its verdicts on this machine; look for throttling and neighbours.",
    ),
    "too-few-trials": ("The trials so far don't decide it.", "Run more of the study: --study, --declared."),
    "no-study": ("This run can't join the study, or scipy is missing.", "Read the message."),
}

_MEMORY: Mapping[str, tuple[str, str]] = {
    "memory-clean": ("All cases are clean, and the planted faults were found.", "Nothing to do."),
    "memory-error": (
        "A tool found a fault; file and line are named.",
        "Fix it, or suppress it with a reason.",
    ),
    "wrong-outcome": (
        "A case gave other bits than its control, or wasn't refused as it must be.",
        "sanitizer memcheck --cases CASE repeats it.",
    ),
    "control-not-found": (
        "The planted fault was not found, so no silence of the tool means anything.",
        "Check the tool's version against the GPU and the driver.",
    ),
    "signs-disagree": ("Exit status, report, log and marks tell different stories.", "Read the kept logs."),
    "died-without-report": ("The process ended in a case, and no report says why.", "Read the kept logs."),
    "cases-missing": ("Some cases were never run.", "Read the other reasons: they say what stopped it."),
    "nothing-checked": ("No case was chosen.", "Choose --cases core or all."),
    "time-limit": ("A process ran past its time limit.", "Look at the case that is named."),
    "not-started": ("The process ended before its first case.", "Read its message."),
    "no-report": ("The tool's XML is missing or cut off.", "Read the kept logs."),
    "no-summary": ("The tool's log ends without a summary.", "Read the kept logs."),
    "print-limit": ("The tool printed as much as it may.", "Fix what it found, and run it again."),
    "unknown-kind": ("The XML holds a kind of record never seen before.", "Teach sanitizer/xml_report.py."),
    "api-error": ("A CUDA call failed, and no record names a place.", "Read the kept logs."),
    "not-instrumented": (
        "The tool saw no CUDA call, or the library holds no checks.",
        "For the host, compile with -fsanitize=address -g.",
    ),
    "twin-differs": (
        "The instrumented build would be of other sources than the artifact.",
        "Build the artifact from this work tree, or from a revision that is here.",
    ),
    "no-tool": ("compute-sanitizer is not here.", "pip install the wheel that is named."),
    "tool-too-new": (
        "This compute-sanitizer no longer supports the architecture.",
        "Install a 12.x release.",
    ),
    "tool-failed": ("compute-sanitizer can't say its version.", "Install it again."),
    "no-control": ("The planted fault can't be built.", "Read its message; --control takes a cubin."),
}

_MACHINERY: Mapping[str, tuple[str, str]] = {
    "usage": ("The command line can't be obeyed.", "See --help."),
    "machinery": ("A tool of the suite failed; nothing is said about the kernel.", "Read the message."),
    "bad-setting": (
        "$GROUPED_ATTENTION_CPU names code that doesn't exist or can't run on this processor.",
        "Unset it, or choose scalar, baseline or x86-64-v3.",
    ),
    "not-empty": ("The output folder holds something already.", "Choose a new folder."),
    "no-manifest": (
        "A library without a manifest can't be carried as an artifact.",
        "Pass the library itself.",
    ),
}

CODES: Mapping[str, tuple[str, str]] = {
    **_VERDICT,
    **_BASE,
    **_REPLAY,
    **_CONTRACT,
    **_STATIC,
    **_TIMING,
    **_MEMORY,
    **_MACHINERY,
}
