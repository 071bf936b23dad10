"""A call on several items that was given one raises that item's own error, which says what it is about."""

import pytest

from kavka.client.admin.areas.area import settled
from kavka.client.admin.item_errors import ItemErrors
from kavka.client.api_errors import UnknownTopicOrPartitionError


def test_the_error_of_one_item_alone_names_it() -> None:
    error = UnknownTopicOrPartitionError("gone")
    with pytest.raises(UnknownTopicOrPartitionError, match=r"^gone$") as failed:
        settled("deleting", {}, {"orders": error})
    assert failed.value.item == "orders"


def test_of_several_the_errors_are_by_item() -> None:
    error = UnknownTopicOrPartitionError("gone")
    with pytest.raises(ItemErrors) as failed:
        settled("deleting", {"payments": None}, {"orders": error})
    assert (failed.value.item, failed.value.errors) == (None, {"orders": error})
