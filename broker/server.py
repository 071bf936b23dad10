"""The broker, put together by hand: which parts there are, in which order they start, and in which they stop.

A broker keeps to its own objects: several can run in one process, and none changes its host (that is `main.py`'s part).

Start: directories are locked, the registry opened, addresses taken, logs loaded, threads started, the broker
registered, the controller elected (which makes this broker lead what it leads), and only then are connections
accepted; in a cluster before the registration, for its controller connects at once. Stop: leaderships are handed over,
no new connections, running requests finish, what waits is answered, the controller resigns, logs are flushed and closed
with the mark of a clean stop last.
"""

import logging
import threading
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kavka.broker.background import look_at_stores, schedule_passes
from kavka.broker.clock import SYSTEM_CLOCK, Clock
from kavka.broker.coordination.coordinators import Coordinators
from kavka.broker.coordination.workers import Workers
from kavka.broker.hooks import hooks_of
from kavka.broker.log_moves.replica_moves import ReplicaMoves
from kavka.broker.membership import Membership
from kavka.broker.metadata.endpoints import broker_info, unadvertised_listeners
from kavka.broker.metadata.gone_topics import forget_gone_topics
from kavka.broker.metadata.identity import establish_identity
from kavka.broker.metadata.metadata_cache import MetadataCache
from kavka.broker.metrics.gauges import register_gauges
from kavka.broker.metrics.registry import Metrics
from kavka.broker.network_side import network_side
from kavka.broker.partitions.controller_epoch import ControllerEpoch
from kavka.broker.partitions.fetch_sessions import FetchSessions
from kavka.broker.partitions.replica_manager import ReplicaManager
from kavka.broker.partitions.topic_adoption import enter_topics, find_topics, known_partitions, registered_ids
from kavka.broker.registry_choice import OpenRegistry, open_registry
from kavka.broker.security.credentials.keeping import Credentials
from kavka.broker.security.gates import Gates
from kavka.broker.services import Services
from kavka.broker.settings.dynamic_config import DynamicConfig
from kavka.broker.settings.entity_changes import EntityChanges
from kavka.broker.settings.running_parts import RunningParts
from kavka.broker.settings.stored_at_start import begin_with_stored
from kavka.broker.start_failures import EXPECTED_FAILURES, reason_of, refused_listening
from kavka.broker.waiting.purgatory import Purgatory
from kavka.broker.waiting.scheduler import Scheduler
from kavka.broker.waiting.timer import Timer
from kavka.cluster.broker_registration import prepare_tree
from kavka.cluster.config_notifications import ConfigNotificationListener
from kavka.cluster.controller.producer_id_blocks import reserve_through
from kavka.config.broker_config import BrokerConfig, changed_settings
from kavka.config.promises import check_promises
from kavka.storage.cleaner.log_cleaner import LogCleaner
from kavka.storage.files import Files
from kavka.storage.log_manager import LogManager
from kavka.storage.meta_properties import MetaProperties

if TYPE_CHECKING:
    from kavka.broker.faults.control import FaultControl
    from kavka.broker.interbroker.cluster_links import ClusterLinks

COORDINATOR_THREADS: Final = 4

log = logging.getLogger(__name__)


class StartError(Exception):
    """The broker cannot start; the message is for its operator."""


class Broker:
    """One broker. `start` and `stop` are called once each, by one thread at a time.

    `on_fatal()` is called, by any thread, when the broker cannot go on (a thread died, the last log directory
    failed): whoever owns the broker then stops it. `fatal_reason` says why.
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        on_fatal: Callable[[], None] | None = None,
        files: Files | None = None,
        faults: "FaultControl | None" = None,
        clock: Clock = SYSTEM_CLOCK,
        open_registry: OpenRegistry = open_registry,
    ) -> None:
        self._static_config = config
        self._on_fatal = on_fatal
        self._clock = clock
        self._open_registry = open_registry
        self._fatal_lock = threading.Lock()
        self.fatal_reason: str | None = None
        self.broker_id = -1
        self.metrics: Final = Metrics()
        self.services: Final = Services()
        self._hooks: Final = hooks_of(config, faults, self.services, files if files is not None else Files())
        self._timer: Final = Timer(self._thread_died, clock.monotonic_ns)
        self._scheduler: Final = Scheduler(self._timer, config.background_threads, self._thread_died)
        self._operations: Final = Scheduler(self._timer, COORDINATOR_THREADS, self._thread_died, "coordinator")
        self._early_failures: list[Path] | None = []
        """Directories that failed before there was a controller to tell, under `_fatal_lock`; None since there is."""
        self._membership: Final = Membership(self.services, self._scheduler, clock.now_ms, self._die)
        self._links: ClusterLinks | None = None
        self._is_serving = self._is_abandoned = False
        self._kept_names: Collection[str] = ()
        """Of the settings that were changed while the broker ran before."""
        self.metrics_port: int | None = None
        """Where /metrics is served, if it is."""
        self._undo: list[Callable[[], None]] = []
        """What a failed start, or a stop, has to take back, in reverse order."""

    def start(self) -> None:
        """Serve. Raises StartError, with everything taken back that was done."""
        try:
            self._start()
        except (StartError, *EXPECTED_FAILURES) as failure:
            self._take_back()
            raise StartError(reason_of(failure, self._kept_names)) from failure
        except BaseException:
            self._take_back()
            raise

    def stop(self) -> None:
        """Stop in order: nothing that was acknowledged has to be recovered by the next start."""
        self._is_serving = False
        if (registry := getattr(self.services, "registry", None)) is not None:
            # A stop does without what it cannot tell others.
            registry.stop_waiting()
        self._take_back()

    def abandon(self) -> None:
        """As `stop`, but as if killed: nothing is answered, handed over, flushed or marked; the next start recovers."""
        self._is_abandoned = True
        self._die("abandoned")
        self._sockets.cut()
        self.stop()

    def time_moved(self) -> None:
        """The clock that this broker was given has jumped ahead: what is due by now on the timer runs at once."""
        self._timer.look()

    def hang_up(self) -> bool:
        """Renew the certificates of listeners with TLS, as SIGHUP asks; False where there are none. Any thread."""
        return look_at_stores(self._sockets, was_asked=True)

    def endpoints_text(self) -> str:
        """The listeners with the ports that were bound, as in `listeners`."""
        listeners = self.services.config.current.listeners
        return ",".join(str(listener._replace(port=self._sockets.bound_port(listener.name))) for listener in listeners)

    def _start(self) -> None:
        static = self._static_config
        check_promises(static)
        self._timer.start()
        self._undo.append(self._timer.stop)
        services = self.services
        services.now_ms = self._clock.now_ms
        services.metrics = self.metrics
        services.purgatory = Purgatory(self._timer)
        services.fetch_sessions = FetchSessions(static.max_incremental_fetch_session_cache_slots)
        logs = services.logs = self._log_manager(static)
        owner = logs.lock_directories()
        self._undo.append(lambda: logs.close(clean=not self._is_abandoned, broker_epoch=self._membership.epoch))
        self._enter_cluster(static, owner)
        self._take_addresses()
        self._load()
        bound = self._sockets.bound
        info = broker_info(self.broker_id, bound, self._sockets.bound_port)
        self._membership.prepare(info, self._config_notifications, self._links)
        if self._links is None:
            self._join()
            self._serve()
        else:
            # The controller is told of a broker by its registration, and talks to it at once.
            self._serve()
            self._join()
        self._undo += (self._finish_requests, self._hand_over, self._hooks.stopping)
        self._hooks.started()
        self._is_serving = True
        if services.config.current is not bound:  # since the logs were loaded
            self._scheduler.intervals_changed()
            services.config.undisturbed(lambda: self._announce(services.config.current))

    def _log_manager(self, static: BrokerConfig) -> LogManager:
        return LogManager(
            static.log_dirs,
            static,
            lambda topic: self.services.config.topic_overrides(topic),  # noqa: PLW0108 - it is made later
            files=self._hooks.files,
            now_ms=self._clock.now_ms,
            run_in_background=self._scheduler.soon,
            on_directory_failure=self._directory_failed,
        )

    def _enter_cluster(self, static: BrokerConfig, owner: MetaProperties) -> None:
        """The registry, who this broker is, and the settings that are kept there."""
        services = self.services
        directories = services.logs.directories
        if not static.zookeeper_connect and (failure := directories.all[0].failure) is not None:
            raise StartError(f"the first of log.dirs cannot be used, where the registry lies: {failure}")
        registry = services.registry = self._open_registry(static, owner, self.metrics, self._clock.now_ms)
        self._undo.append(registry.close)
        prepare_tree(registry)
        # Where there are other brokers nobody can tell whose topics those in the directories are.
        adopted = None if static.zookeeper_connect else find_topics(directories, self._hooks.files, registry)
        self.broker_id, services.cluster_id = establish_identity(static, owner, registry)
        if adopted is not None:
            enter_topics(registry, self.broker_id, adopted)
        services.broker_id = self.broker_id
        config = services.config = DynamicConfig(static, self.broker_id)
        config.on_topic_change(services.logs.update_topic_config)
        credentials = Credentials(services)
        entities = self._entities = EntityChanges(services, self._clock.monotonic_ns)
        notifications = self._config_notifications = ConfigNotificationListener(
            registry,
            config.topic_changed,
            config.broker_changed,
            self._clock.now_ms,
            entities.changed,
            entities.unreadable,
        )
        notifications.start()
        self._undo.append(notifications.stop)
        self._kept_names = begin_with_stored(config, registry, self.broker_id)
        notifications.refresh_kinds(EntityChanges.LIMITED)
        self._undo.append(credentials.stop)
        credentials.start(self._scheduler)
        if static.authorizer_class_name:
            # Others load nothing of it. From here on it is known who may do what, before anybody can connect.
            from kavka.broker.security.authorizer.opening import open_authorizer

            authorizer = open_authorizer(static, registry, services.changed, services.now_ms, self._thread_died)
            self._undo.append(authorizer.close)
            services.authorizer, services.acls = authorizer.decides, authorizer.acls

    def _take_addresses(self) -> None:
        """The network side and the cleaner, made for the settings with what was changed while the broker ran before."""
        services = self.services
        config = services.config.current
        services.logs.update_broker_config(config)
        self._scheduler.resize(config.background_threads)
        services.cleaner = LogCleaner(services.logs, config, now_ms=self._clock.now_ms, on_death=self._thread_died)
        gates = Gates(services, self._timer, self._clock.monotonic_ns)
        gates.prepare(config)
        self._undo.append(gates.stop)
        self._sockets = network_side(config, services, gates, self._hooks, self._thread_died)
        parts = RunningParts(self._sockets, gates, services.logs, services.cleaner, self._scheduler, self._announce)
        services.config.follow(parts)
        if services.config.current is not config:
            # Another broker was faster.
            parts.changed(config, services.config.current, changed_settings(config, services.config.current))
        self._entities.rates_to(self._sockets.limits.follow)
        self._sockets.bind()
        self._undo.append(self._sockets.stop_accepting)

    def _load(self) -> None:
        """The logs, and the threads that serve them."""
        services = self.services
        # Loading hands jobs to it, so a start that fails from here on has threads to wait for.
        moves = services.replica_moves = ReplicaMoves(services, self._thread_died)
        self._undo += (self._scheduler.stop, self._operations.stop, moves.stop)
        services.logs.load(known := known_partitions(services.registry), known.of_broker(self.broker_id))
        config = services.config.current
        services.logs.claim(self.broker_id, services.cluster_id, is_replicated=bool(config.zookeeper_connect))
        if (known_producer_id := services.logs.highest_producer_id()) >= 0:
            reserve_through(services.registry, self.broker_id, known_producer_id)
        heard = ControllerEpoch()
        services.metadata = MetadataCache(self.broker_id, unadvertised_listeners(config), controller_epoch=heard)
        services.metadata.on_change(partial(forget_gone_topics, services))
        workers = Workers(self._operations.soon, self._scheduler.soon, self._scheduler.flush_soon)
        coordinators = self._coordinators = Coordinators(services, self._timer, workers, self._thread_died, self._clock)
        services.metadata.on_change(coordinators.metadata_changed)
        self._undo.append(coordinators.stop)
        links = self._links = self._link() if config.zookeeper_connect else None
        if links is not None:
            services.transactions.others = links.transactions
        services.replicas = ReplicaManager(
            self.broker_id,
            services.logs,
            coordinators.leadership_changed,
            None if links is None else links.replication,
            controller_epoch=heard,
            followers=None if links is None else links.following.fetchers,
            moves=moves,
            topic_ids=None if links is None else partial(registered_ids, services.registry),
        )
        schedule_passes(self._scheduler, services.logs, services.config, self._sockets)
        services.cleaner.start()
        self._undo.append(services.cleaner.stop)
        self._sockets.start()
        self._undo.append(self._sockets.stop)

    def _link(self) -> "ClusterLinks":
        from kavka.broker.interbroker.cluster_links import ClusterLinks

        return ClusterLinks(self.services, self._membership, self._scheduler, self._timer, self._thread_died)

    def _join(self) -> None:
        """Register, and have the controller elected: a broker that stands alone leads afterwards what it leads."""
        self._membership.join(self._undo.append)
        with self._fatal_lock:
            early, self._early_failures = self._early_failures, None
        for path in early or ():
            self._membership.directory_failed(path)

    def _serve(self) -> None:
        services = self.services
        register_gauges(
            self.metrics,
            services,
            request_queue_size=lambda: self._sockets.waiting_count,
            connection_count=lambda: self._sockets.connection_count,
            transports=self._sockets.transports,
        )
        config = services.config.current
        if config.metrics_port >= 0:
            self._start_metrics_server(config)
        try:
            services.config.undisturbed(self._sockets.listen)
        except OSError as failure:
            ports = [self._sockets.bound_port(listener.name) for listener in config.listeners]
            raise refused_listening(failure, self.metrics_port, ports) from failure

    def _start_metrics_server(self, config: BrokerConfig) -> None:
        from kavka.broker.metrics.page import metrics_server

        server = metrics_server(
            config,
            self.metrics,
            self.services.served_versions,
            failure=lambda: self.fatal_reason,
            is_ready=lambda: self._is_serving and self._membership.is_settled(),
        )
        self.metrics_port = server.start()
        self._undo.append(server.stop)
        log.info("metrics are served metrics.port=%d", self.metrics_port)

    def _hand_over(self) -> None:
        if self.fatal_reason is None:
            self._membership.hand_over()

    def _finish_requests(self) -> None:
        self._sockets.stop_accepting()
        self._sockets.stop_running()
        self._coordinators.stop()
        self.services.purgatory.expire_all()

    def _announce(self, config: BrokerConfig) -> None:
        """Tell the cluster of other endpoints: the controller hears of it by the registration, and tells all."""
        if not self._is_serving:
            return
        self.services.metadata.set_unadvertised(unadvertised_listeners(config))
        self._membership.update(broker_info(self.broker_id, config, self._sockets.bound_port))

    def _directory_failed(self, path: Path, _partitions: Sequence[tuple[str, int]], left: int) -> None:
        """Called from anywhere, maybe under a log's lock: the work is done elsewhere."""
        self.metrics.count("kafka_log_logmanager_offlinelogdirectories")
        if not left:
            self._die(f"no log directory is left: {path} has failed")
            return
        with self._fatal_lock:
            if self._early_failures is not None:
                self._early_failures.append(path)
                return
        # Late in a stop there is nobody left to tell, and the caller may hold a log's lock.
        if not self._scheduler.stopped:
            self._scheduler.soon(lambda: self._membership.directory_failed(path))

    def _take_back(self) -> None:
        """Each step, whatever became of those before: a full disk must not keep the logs from being closed."""
        while self._undo:
            step = self._undo.pop()
            try:
                step()
            except EXPECTED_FAILURES as failure:
                log.error("a step of the stop failed step=%s error=%r", step.__qualname__, str(failure))
            except Exception:
                log.exception("a step of the stop failed step=%s", step.__qualname__)

    def _thread_died(self, failure: BaseException) -> None:
        log.critical(
            "a thread died thread=%s error=%r",
            threading.current_thread().name,
            str(failure),
            exc_info=failure,
        )
        self.metrics.count("kavka_dead_threads")
        self._die(f"thread {threading.current_thread().name} died: {failure!r}")

    def _die(self, reason: str) -> None:
        with self._fatal_lock:
            if self.fatal_reason is not None:
                return
            self.fatal_reason = reason
        if self._on_fatal is not None:
            self._on_fatal()
