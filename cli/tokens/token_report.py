"""Tokens for people and for programs."""

import base64
from collections.abc import Iterable
from datetime import UTC, datetime

from kavka.cli.showing import Report, Table, table_lines
from kavka.client.admin import DelegationToken


def token_report(found: Iterable[DelegationToken]) -> Report:
    """With their HMACs, which are what a client proves itself with. Times are of the epoch's milliseconds in JSON."""
    tokens = sorted(found, key=lambda each: each.token_id)
    objects = [
        {
            "token_id": each.token_id,
            "hmac": base64.b64encode(each.hmac).decode(),
            "owner": str(each.owner),
            "requester": None if each.requester is None else str(each.requester),
            "renewers": [str(renewer) for renewer in each.renewers],
            "issue_timestamp_ms": each.issue_timestamp_ms,
            "expiry_timestamp_ms": each.expiry_timestamp_ms,
            "max_timestamp_ms": each.max_timestamp_ms,
        }
        for each in tokens
    ]

    def lines() -> Iterable[str]:
        columns = ("token_id", "hmac", "owner", "requester", "renewers", "issued", "expires", "at_most_until")
        rows = [(*list(row.values())[:5], *(time_text(row[key]) for key in list(row)[5:])) for row in objects]
        return table_lines(Table("tokens", columns, rows))

    return Report("tokens", objects, lines)


def time_text(timestamp_ms: object) -> str:
    """In UTC, to the second. What no calendar has is shown as it is."""
    try:
        return datetime.fromtimestamp(int(str(timestamp_ms)) / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        return str(timestamp_ms)
