"""`python -m kavka` is the `kavka` command."""

import sys

from kavka.cli.entry import main

sys.exit(main())
