"""How Hypothesis runs: machines are slow and busy, and what CI finds must be found again.

On a developer's machine examples are random, so that more of them are tried over the days; with CI set they are the
same in each run.
"""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "house",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("house")
