"""Reason codes of the measurements: what each means, and what to do."""

from __future__ import annotations

from collections.abc import Mapping

REPLAY: Mapping[str, tuple[str, str]] = {
    "same-bits": ("Every output equals its golden, bit for bit.", "Nothing to do."),
    "bits-differ": (
        "Output bits differ from the golden.",
        "regression replay --locate GROUP; if it is meant, --accept REASON.",
    ),
    "bits-unexplained": (
        "Goldens were renewed, and the changelog doesn't say why.",
        "Renew them by regression replay --accept REASON, and commit CHANGELOG.md with them.",
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

CONTRACT: Mapping[str, tuple[str, str]] = {
    "contract-kept": ("Every case came out as it must, or was refused.", "Nothing to do."),
    "writes-wrong": (
        "The kernel left output elements unwritten, wrote beside them, or changed its inputs.",
        "regression contract --cases CASE repeats it.",
    ),
    "exact-bits": (
        "An output that exact arithmetic gives to the bit came out otherwise.",
        "The table above the verdict says what mistake the case is made for.",
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

STATIC: Mapping[str, tuple[str, str]] = {
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

TIMING: Mapping[str, tuple[str, str]] = {
    "same": ("The candidate's time lies within the margin of the base's.", "Nothing to do."),
    "no-slower": ("No comparison found the candidate slower than is allowed.", "Nothing to do."),
    "identical": (
        "Both sides are the same code, so nothing was timed or emulated.",
        "abba --aa times it against itself; emulate without --base runs it.",
    ),
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
    "base-unwritten": (
        "An eager call of the base leaves output elements unwritten.",
        "Check the base before the change; regression replay --artifact BASE.",
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
    "no-trials": ("There is no trial that a calibration could be judged by.", "Run trials: --trials."),
    "too-few-trials": ("The trials so far don't decide it.", "Run more of the study: --study, --declared."),
    "no-study": ("This run can't join the study, or scipy is missing.", "Read the message."),
}

MEMORY: Mapping[str, tuple[str, str]] = {
    "memory-clean": ("All cases are clean, and the planted faults were found.", "Nothing to do."),
    "clean-but-suppressed": (
        "All cases ended rightly, and some findings are suppressed.",
        "Fix them before the suppression expires.",
    ),
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
    "cut-short": (
        "Cases never came to an end, at a suppressed finding say, and nobody saw their outcome.",
        "Fix the finding: a suppression can't vouch for what was never reached.",
    ),
    "tool-error": ("The tool reports an error of its own.", "Read the kept logs; try another release of it."),
    "nothing-checked": ("No case was chosen.", "Choose --cases core or all."),
    "interrupted": ("The command was stopped before it could judge.", "Run it again."),
    "process-died": (
        "The measuring process ended before it could judge: a crash, or a kernel that exits.",
        "Look at what stands above; memcheck names the line of a crash.",
    ),
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

FAULTS: Mapping[str, tuple[str, str]] = {
    "all-caught": ("Every planted fault was caught by the gates that must catch it.", "Nothing to do."),
    "fault-missed": ("A gate passed a kernel with a planted fault.", "The gate is too weak: see the table."),
    "false-alarm": (
        "A gate rejected a change that changes no bit.",
        "The gate is too strict: see the table.",
    ),
    "gate-broke": ("A gate fails on the sound kernel, so it shows nothing.", "Mend the gate or the machine."),
    "nothing-planted": ("No fault was chosen, or none can be judged here.", "Choose others, or use a GPU."),
    "built-only": ("The faults were compiled, and no gate was run.", "Run it without that option."),
    "pack-unreadable": ("The built faults can't be read.", "Build them again, or bring them here again."),
    "patch-stale": ("A planted fault's patch no longer fits the sources.", "Renew it in fixtures/faults."),
}

EMULATION: Mapping[str, tuple[str, str]] = {
    "emulation-same": ("The CUDA sources give the host backend's bits on an emulated GPU.", "Nothing to do."),
    "emulation-differs": (
        "On an emulated GPU the CUDA sources give other bits than the host backend.",
        "Look at the place that is named; regression emulate --cases CASE repeats it.",
    ),
    "emulation-stuck": (
        "Threads of an emulated block wait for each other for ever, or access memory misaligned.",
        "Look for a barrier that only some of them reach, or at the alignment that is named.",
    ),
    "emulation-crashed": (
        "An emulated kernel touched memory that isn't its own, or misaligned, and ended its process.",
        "Look at the kernel, block and thread that are named.",
    ),
    "not-emulated": (
        "The CUDA sources don't compile for the emulated GPU.",
        "If NVRTC takes them, teach regression/emulation/simt what they use.",
    ),
    "no-sources": (
        "The artifact's sources aren't here, so they can't be emulated.",
        "Run it where its revision is, or pass its kernels/ folder as --source.",
    ),
    "no-compiler": ("No C++ compiler is here.", "Install g++, or name one by $CXX."),
}

HISTORY: Mapping[str, tuple[str, str]] = {
    "no-asv": (
        "asv, which draws the graphs, isn't installed.",
        "Read the message: it names what to install.",
    ),
    "no-results": ("There is no history to draw yet.", "Run the history session first."),
    "results-missing": (
        "A figure of a commit should be there, and isn't.",
        "Read the lines above and the log that they name; history -- --rev REV measures it again.",
    ),
    "results-unreadable": ("A result file is damaged.", "Look at the file that is named; move it away."),
    "nothing-measured": ("No figure was taken.", "Read the message; this machine may have none to take."),
    "not-measured": ("A suite's command ended without a result.", "Run the command that is named by hand."),
    "taken": (
        "Another machine's results were taken over.",
        "Look at the files that are named: both machines have them, in other words.",
    ),
    "published": ("The pages were made, and hold a graph of every figure.", "Serve the folder."),
    "not-published": ("asv didn't make the pages, or left a graph out.", "Read its output above."),
    "bisect-ambiguous": (
        "Skipped commits leave several that may be the first slower one.",
        "Raise --budget, or make the skipped commits build.",
    ),
    "bisect-stopped": ("A step's machinery failed, so the search ended.", "Read the message."),
    "ends-unknown": ("The good and the bad end could not be compared.", "Read the message."),
    "no-reference": (
        "No saved run of this test on this machine is there to compare with.",
        "Run the bench session of the base first; then run it again.",
    ),
    "step-rejected": ("A step of the night rejects.", "Read its log: it is named with the step."),
    "step-failed": (
        "A step of the night crashed, ran too long, or said one thing while its exit status said another.",
        "Read its log.",
    ),
    "step-unknown": ("A step of the night could not measure what it should.", "Read its log."),
    "step-undecided": ("A step of the night measured, and claims nothing.", "Read its log."),
    "not-run": ("A step of the night that should be there isn't.", "Read the message."),
    "partial": ("Only some steps were asked for.", "Run the night without --only."),
}
