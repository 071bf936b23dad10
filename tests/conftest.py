"""How Hypothesis runs, and what a test's place and marks mean.

Machines are slow and busy, and what CI finds must be found again: with CI set the examples are the same in each run. On
a developer's machine they are random, so that more of them are tried over the days; `make soak` tries many more.
"""

import os

import pytest
from hypothesis import HealthCheck, settings

SOAK = "soak"

settings.register_profile(
    "house",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile(
    SOAK,
    settings.get_profile("house"),
    derandomize=False,
    max_examples=2000,
    print_blob=True,
)
settings.load_profile("house")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what starts processes, and leave soak tests out unless `-m` asks for them."""
    for item in items:
        if "integration" in item.path.relative_to(config.rootpath).parts:
            item.add_marker("integration")
    if SOAK not in config.option.markexpr:
        left_out = [item for item in items if item.get_closest_marker(SOAK)]
        if left_out:
            config.hook.pytest_deselected(items=left_out)
            items[:] = [item for item in items if item not in left_out]
