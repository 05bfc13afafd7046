"""`python -m regression`."""

import faulthandler
import sys

from evidence.guard import guarded


def main() -> int:
    """Run one command, in a process that may crash."""
    from regression import cli

    # A kernel that crashes ends the process without a record, which is unknown to a verdict; this says where.
    # What is imported above has handlers of its own.
    faulthandler.enable()
    return cli.main()


sys.exit(guarded(main))
