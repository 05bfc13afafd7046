"""`python -m evidence`."""

import sys

from evidence.cli import main

sys.exit(main())
