"""Rows to topics, exactly once: batches of streaming queries, and a lake's history again."""
