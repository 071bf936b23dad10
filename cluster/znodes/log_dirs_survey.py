"""`/log_dirs_surveyed`: that topics of a stopped Kafka were looked for, with all of `log.dirs` at hand. Kavka's own."""

from typing import Final

LOG_DIRS_SURVEYED_PATH: Final = "/log_dirs_surveyed"
