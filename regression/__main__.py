"""`python -m regression`."""

import faulthandler
import sys

from regression.cli import main

# A kernel that crashes ends the process without a record, which is unknown to a verdict; this says where.
faulthandler.enable()
sys.exit(main())
