"""`--print-metrics`: a client's metrics on standard error."""

import sys

from kavka.client.client_metrics import Metrics


def print_metrics(metrics: Metrics) -> None:
    """A line each, by name."""
    for name in sorted(metrics):
        print(f"{name}: {metrics[name]}", file=sys.stderr)
