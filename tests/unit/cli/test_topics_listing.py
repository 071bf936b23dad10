"""`kavka topics list`: names for people, ids too for programs."""

from unittest.mock import MagicMock

import pytest

from kavka.cli.main import main
from kavka.client.admin import TopicListing
from tests.support.json_documents import assert_golden

LISTED = {
    "payments": TopicListing("payments", bytes(16), is_internal=False),
    "orders": TopicListing("orders", bytes(range(16)), is_internal=False),
    "__consumer_offsets": TopicListing("__consumer_offsets", b"\xff" * 16, is_internal=True),
}


def test_names_are_listed_in_order(admin: MagicMock, capsys: pytest.CaptureFixture[str]) -> None:
    admin.list_topics.return_value = LISTED

    assert main(["topics", "list"]) == 0
    assert capsys.readouterr().out == "__consumer_offsets\norders\npayments\n"
    admin.list_topics.assert_called_once_with(include_internal=True)
    assert admin.settings["bootstrap.servers"] == "localhost:9092"


def test_a_pattern_is_for_whole_names_and_a_comma_means_either(
    admin: MagicMock, capsys: pytest.CaptureFixture[str]
) -> None:
    admin.list_topics.return_value = LISTED

    assert main(["topics", "list", "--topic", "orders,pay.*", "--exclude-internal"]) == 0
    assert capsys.readouterr().out == "orders\npayments\n"
    admin.list_topics.assert_called_once_with(include_internal=False)
    assert main(["topics", "list", "--topic", "order"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["topics", "list", "--topic", "("]) == 2


def test_programs_get_a_document(admin: MagicMock, capsys: pytest.CaptureFixture[str]) -> None:
    admin.list_topics.return_value = LISTED

    assert main(["topics", "list", "--output", "json"]) == 0
    assert_golden("topics-list", capsys.readouterr().out)
