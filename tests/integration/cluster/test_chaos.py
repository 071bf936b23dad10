"""Two minutes of the chaos program, with another seed each time: `tests/chaos/README.md`."""

import random
from pathlib import Path

import pytest

from tests.chaos.run import chaos

pytestmark = [pytest.mark.java, pytest.mark.slow]

SECONDS = 120.0


@pytest.mark.timeout(2400)
def test_a_cluster_keeps_what_it_told_its_clients_whatever_happens_to_it(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")

    assert chaos(tmp_path, seed, SECONDS, print) == [], f'CHAOS_ARGS="--seed {seed}" make chaos'
