"""Compaction: the broker's side (`log_cleaner`, no numpy) and the worker processes' (`worker`, numpy)."""
