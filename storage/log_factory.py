"""Opening logs: each topic's configuration, each directory's environment."""

import contextlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from kavka.config.broker_config import BrokerConfig
from kavka.config.topic_config import TopicConfig
from kavka.protocol.errors import BrokerError, ErrorCode
from kavka.storage import partition_metadata, unproven_mark
from kavka.storage.environment import LogEnvironment
from kavka.storage.files import Files
from kavka.storage.log_directory import LogDirectory
from kavka.storage.move_marks import NO_MARK, write_mark
from kavka.storage.offset_checkpoint import TopicPartition
from kavka.storage.partition_folders import NameTakenError, delete_folder, folder_name
from kavka.storage.partition_log import PartitionLog


class LogFactory:
    """Opens the logs of a broker. A topic's configuration is worked out once for all of its partitions.

    Threads: the manager's change lock orders all changes of `_config` and `_topic_configs`; while loading, threads may
    work out the same topic's configuration twice, to the same result.
    """

    __slots__ = ("_config", "_environments", "_files", "_topic_configs", "_topic_overrides")

    def __init__(
        self,
        config: BrokerConfig,
        topic_overrides: Callable[[str], Mapping[str, str]],
        files: Files,
        environments: Mapping[LogDirectory, LogEnvironment],
    ) -> None:
        self._config = config
        self._topic_overrides = topic_overrides
        self._files = files
        self._environments: Final = environments
        self._topic_configs: dict[str, TopicConfig] = {}

    def open(
        self,
        directory: LogDirectory,
        folder: Path,
        key: TopicPartition,
        clean: bool,
        recovery_point: int,
        log_start_offset: int,
    ) -> PartitionLog:
        """The log that lies in the folder. Raises OSError."""
        return PartitionLog.open(
            folder,
            *key,
            self._config_of(key[0]),
            self._environments[directory],
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
        )

    def make_folder(self, directory: LogDirectory, key: TopicPartition) -> None:
        """The first step of a new log; a folder that is there and empty is taken. Raises OSError.

        BrokerError: something else lies under its name, and is left alone.
        """
        folder = directory.path / folder_name(*key)
        try:
            self._files.mkdir(folder)
        except FileExistsError:
            # A crash between the folder and its first file leaves an empty one.
            if not self._files.is_directory(folder) or self._files.listdir(folder):
                raise NameTakenError(folder) from None

    def refuse_taken(self, directory: LogDirectory, key: TopicPartition) -> None:
        """Raises BrokerError where a log can't get the partition's name, for something else has it. Raises OSError."""
        folder = directory.path / folder_name(*key)
        if self._files.is_link(folder) or (
            self._files.exists(folder) and (not self._files.is_directory(folder) or self._files.listdir(folder))
        ):
            raise NameTakenError(folder)

    def has_folder(self, directory: LogDirectory, key: TopicPartition) -> bool:
        """Whether something lies under the partition's name."""
        return self._files.exists(directory.path / folder_name(*key))

    def refuse_namesake(self, directory: LogDirectory, key: TopicPartition, topic_id: bytes) -> None:
        """Raises BrokerError where the folder of this name isn't another topic's for sure, by its id."""
        folder = directory.path / folder_name(*key)
        try:
            own_id = partition_metadata.read_topic_id(folder, self._files)
        except OSError:
            own_id = partition_metadata.NO_TOPIC_ID
        if partition_metadata.NO_TOPIC_ID in (topic_id, own_id) or own_id == topic_id:
            raise NameTakenError(folder)

    def remove(self, directory: LogDirectory, key: TopicPartition) -> None:
        """Take back what was made of a log that was never opened. Raises OSError."""
        delete_folder(directory.path / folder_name(*key), self._files)

    def create(
        self,
        directory: LogDirectory,
        key: TopicPartition,
        topic_id: bytes,
        folder: Path | None = None,
        *,
        is_unproven: bool = False,
        mark: int = NO_MARK,
    ) -> PartitionLog:
        """A new log in its new folder. Raises OSError; `remove` takes back what is there then.

        `is_unproven`: it takes the place of one that was lost; `mark` (`move_marks`): of one that is away. But for
        these marks nothing is fsynced, so that a thousand are made in no time: the caller fsyncs the directory (until
        it has, each flush of the log does), and then `fsync_topic_id` in the background.
        """
        folder = folder or directory.path / folder_name(*key)
        environment = self._environments[directory]
        config = self._config_of(key[0])
        if is_unproven:
            unproven_mark.put(folder, self._files)
        if mark != NO_MARK:
            write_mark(folder, mark, self._files)
        if topic_id != partition_metadata.NO_TOPIC_ID:
            self._files.write_file(folder / partition_metadata.FILE_NAME, partition_metadata.encode(topic_id))
        log = PartitionLog.open(folder, *key, config, environment, clean=True, topic_id=topic_id)
        log.folder_saved = False
        return log

    def adopt(self, log: PartitionLog, topic_id: bytes) -> None:
        """Make sure that the log is this topic's. Raises BrokerError INCONSISTENT_TOPIC_ID.

        A log from before topic ids gets one.
        """
        if topic_id in (log.topic_id, partition_metadata.NO_TOPIC_ID):
            return
        if log.topic_id != partition_metadata.NO_TOPIC_ID:
            raise BrokerError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"{log.directory} belongs to a topic of the same name with id {log.topic_id.hex()}, "
                f"not {topic_id.hex()}",
            )
        log.assign_topic_id(topic_id)

    def fsync_topic_id(self, log: PartitionLog) -> None:
        """Make the topic id of a new log durable. Raises OSError."""
        with contextlib.suppress(FileNotFoundError):  # deleted meanwhile, or without an id
            self._files.fsync_file(log.directory / partition_metadata.FILE_NAME)

    def update_topic(self, topic: str, overrides: Mapping[str, str], logs: Iterable[PartitionLog]) -> None:
        """A topic's configuration has changed, for these logs of all topics and for those to come."""
        config = TopicConfig.of(self._config, dict(overrides))
        # A topic that was deleted just now is told of too, and would be remembered for good.
        self.forget_topic(topic)
        for log in logs:
            if log.topic == topic:
                self._topic_configs[topic] = config
                log.update_config(config)

    def update_broker(self, config: BrokerConfig, logs: Iterable[PartitionLog]) -> None:
        """The broker's defaults for topics have changed, for these logs of all topics and for those to come."""
        self._config = config
        self._topic_configs.clear()
        for log in logs:
            log.update_config(self._config_of(log.topic))

    def forget_topic(self, topic: str) -> None:
        """The topic is gone: one that is made under its name later has its own configuration."""
        self._topic_configs.pop(topic, None)

    def _config_of(self, topic: str) -> TopicConfig:
        config = self._topic_configs.get(topic)
        if config is None:
            config = self._topic_configs[topic] = TopicConfig.of(self._config, dict(self._topic_overrides(topic)))
        return config
