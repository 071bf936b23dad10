"""One command a file; see `kavka.cli.main`."""
