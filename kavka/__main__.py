"""`python -m kavka` is the `kavka` command."""

import sys

from kavka.cli.main import main

sys.exit(main())
