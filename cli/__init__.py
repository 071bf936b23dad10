"""The `kavka` command."""
