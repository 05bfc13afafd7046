"""`python -m artifacts`."""

import sys

from artifacts.cli import main

sys.exit(main())
