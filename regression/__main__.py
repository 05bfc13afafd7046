"""`python -m regression`."""

import faulthandler
import sys

from evidence.guard import guarded


def main() -> int:
    """Run one command, in a process that may crash."""
    # A kernel that crashes ends the process without a record, which is unknown to a verdict; this says where.
    faulthandler.enable()
    from regression import cli

    return cli.main()


sys.exit(guarded(main))
