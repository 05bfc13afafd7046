"""What pytest-benchmark times here: subjects whose outputs are checked, and runs saved before."""
