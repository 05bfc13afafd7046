"""Everything in one night: each step in a process of its own, none lost, one verdict."""
