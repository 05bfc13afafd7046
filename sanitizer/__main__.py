"""`python -m sanitizer`."""

import sys

from evidence.guard import guarded


def main() -> int:
    """Run one command, in a process that may crash."""
    from sanitizer import cli

    return cli.main()


sys.exit(guarded(main))
