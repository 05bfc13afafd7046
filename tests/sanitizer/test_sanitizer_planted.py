"""Memory faults planted in a copy of the kernel's own sources are found by the CPU twin, at their lines."""

import json
from pathlib import Path

import pytest

from artifacts.places import PRODUCT, root
from fixtures import faults
from grouped_attention.build import build
from sanitizer import cli

# A row that each is found in, one that it leaves alone, and words of the line that reads or writes too far.
FAULTS = {
    "wide-loader-behind-narrow-guard": ("pad-token-8-3x64", "pad-token-16-3x64", "const Piece*"),
    "table-read-too-far": ("page-16-len-32-3x64", "page-16-len-33-3x64", "block_table[i]"),
    "output-beyond-rows": ("rows-2-3x64", "rows-8-3x64", "fill_n"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_in_our_own_sources_is_found_at_its_line(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fault, (caught, clean, words) = faults.find(name), FAULTS[name]
    planted = faults.plant(fault, root() / PRODUCT, tmp_path / PRODUCT)
    made = build(planted, backend="host", arch="sm_70", store=tmp_path / "store", variant="address")
    out = tmp_path / "out.json"
    arguments = ["memcheck", "--library", str(made.library), "--json", str(out)]
    assert cli.main([*arguments, "--cases", f"{clean},{caught}"]) == 1
    assert "verdict: rejected (memory-error: 1 finding: " in capsys.readouterr().out
    (found,) = json.loads(out.read_text())["findings"]
    assert found["case"] == caught and found["file"].removeprefix(f"{PRODUCT}/") in faults.touched(fault)
    assert words in (tmp_path / found["file"]).read_text().splitlines()[found["line"] - 1]
