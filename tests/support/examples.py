"""How many examples a property gets that needs more or fewer than the others."""

from hypothesis import settings

USUAL = 100
"""What Hypothesis tries where nothing is said; its `soak` profile multiplies it."""


def examples(count: int) -> settings:
    """A decorator beside @given: so many examples, and as many times more of them in `make soak` as of all others."""
    return settings(max_examples=count * settings().max_examples // USUAL)
