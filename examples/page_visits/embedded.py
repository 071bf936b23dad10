"""What is in the embedded broker of `make pipeline`: the topic, with ten thousand visits."""

from examples.page_visits.produce import create_topic, produce_visits
from examples.page_visits.visits import generate_visits

COUNT = 10_000


def fill(bootstrap: str) -> None:
    """Make the topic and its visits."""
    create_topic(bootstrap)
    produce_visits(bootstrap, list(generate_visits(COUNT)), acks="all")
