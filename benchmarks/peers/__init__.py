"""Other implementations of the operation: timed beside it, or as either side of `abba` by `peer:NAME`."""
