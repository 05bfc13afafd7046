"""Whether the code that launches the kernels is the one that simt/grid.cc stands in for.

Grids, block sizes and arguments are derived there by hand. Where a change has the launch do otherwise, a
kernel that fits the new launch can fail under the old one, and it wouldn't be the kernel's fault.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

FILES = ("src/cuda/export.cc", "src/cuda/kernels.cc", "src/cuda/kernels.cu")
# After a change of those files: bring simt/grid.cc into line with them, then put `digest` of kernels/ here.
KNOWN = "198450f81026eb33d797410eb2e14e3f15960243cdb5bdb743a848ad5af96612"

# Neither comments, texts, layout nor what is promised about registers change a launch.
_IRRELEVANT = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|__launch_bounds__\s*\([^()]*\)|\\\n|\s+', re.S
)


def is_known(kernels: Path) -> bool:
    """Whether findings in these sources can be held against the kernels."""
    return digest(kernels) == KNOWN


def digest(kernels: Path) -> str:
    """Of the code in FILES below a kernels/ folder; one that is missing counts as empty."""
    state = hashlib.sha256()
    for path in (kernels / name for name in FILES):
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        state.update(_IRRELEVANT.sub("", text).encode() + b"\0")
    return state.hexdigest()
