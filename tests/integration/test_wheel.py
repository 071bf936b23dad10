"""What `pip install kavka` brings: everything under `kavka`, and beside it the module that Spark looks for."""

import email
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.kavka_process import KavkaProcess
from tests.support.wire import Wire, batch_of, create_topic, produce, read_values

REPOSITORY = Path(__file__).parents[2]
USER_CODE = """
import client, config, testing
assert (client.OWNER, config.OWNER, testing.OWNER) == ("user", "user", "user")
import kavka.broker.server, kavka.cli.main, kavka.config
assert kavka.__file__.startswith({target!r}), kavka.__file__
assert kavka.config.__file__.startswith({target!r})
raise SystemExit(kavka.cli.main.main(["broker", "--help"]))
"""


USERS_TESTS = """
import asyncio
import pytest
import client, config, testing


@pytest.mark.parametrize("number", range(6))
def test_names_are_the_users(kavka_shared, number):
    assert (client.OWNER, config.OWNER, testing.OWNER) == ("user", "user", "user")
    kavka_shared.create_topic("birds")
    kavka_shared.produce("birds", [str(number)])
    kavka_shared.assert_records("birds", [str(number)])


def test_kafka_python(kavka_broker):
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=kavka_broker.bootstrap_servers)
    producer.send("birds", b"x").get(60)
    producer.close()
    kavka_broker.assert_records("birds", ["x"])


def test_aiokafka(kavka_broker):
    from aiokafka import AIOKafkaProducer

    async def run():
        async with AIOKafkaProducer(bootstrap_servers=kavka_broker.bootstrap_servers) as producer:
            await producer.send_and_wait("birds", b"x")

    asyncio.run(run())
    kavka_broker.assert_records("birds", ["x"])


def test_confluent(kavka_broker):
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": kavka_broker.bootstrap_servers})
    producer.produce("birds", b"x")
    assert producer.flush(60) == 0
    kavka_broker.assert_records("birds", ["x"])


def test_own_client(kavka_broker):
    from kavka.client import Producer

    with Producer(bootstrap_servers=kavka_broker.bootstrap_servers) as producer:
        producer.send("birds", b"x").result(60)
    kavka_broker.assert_records("birds", ["x"])


@pytest.mark.parametrize("size", [1, 3])
def test_cluster(kavka_cluster, size):
    cluster = kavka_cluster(size)
    cluster.create_topic("birds", replication_factor=size)
    cluster.produce("birds", ["x"])
    cluster.assert_records("birds", ["x"])
"""


def run(*command: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    arguments = list(map(str, command))
    done = subprocess.run(arguments, cwd=cwd, env=env or None, capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the sdist, as an installer without a wheel would."""
    folder = tmp_path_factory.mktemp("wheel")
    backend = "from setuptools import build_meta; print(build_meta.build_sdist({!r}))"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    tools = folder / "tools"
    run(*pip, "install", "-q", "--target", tools, "setuptools>=77", "wheel", cwd=folder)
    built = run(
        sys.executable, "-c", backend.format(str(folder)), cwd=REPOSITORY, PYTHONPATH=str(tools), PATH="/usr/bin:/bin"
    )
    sdist = folder / built.stdout.splitlines()[-1]
    run(*pip, "wheel", "-q", "--no-deps", "-w", folder, sdist, cwd=folder)
    return next(folder.glob("kavka-*.whl"))


@pytest.mark.slow
def test_a_wheel_holds_all_rooms_and_nothing_at_the_top_but_kavka_and_what_spark_looks_for(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()

    assert {name.split("/")[0].partition("-")[0] for name in names} == {"kavka", "pyspark_kavka.py"}
    rooms = {path.name for path in (REPOSITORY / "kavka").iterdir() if path.is_symlink()}
    shipped = {name.split("/")[1] for name in names if name.count("/") > 1 and name.endswith(".py")}
    assert rooms <= shipped
    modules = {str(path.relative_to(REPOSITORY)) for room in rooms for path in (REPOSITORY / room).rglob("*.py")}
    assert {f"kavka/{module}" for module in modules} <= set(names)
    assert "kavka/config/server.properties" in names


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Somebody's project, with modules named like rooms of ours."""
    folder = tmp_path / "project"
    for room in ("client", "broker"):
        (folder / room).mkdir(parents=True)
        (folder / room / "__init__.py").write_text('OWNER = "user"\n')
    for name in ("config.py", "testing.py"):
        (folder / name).write_text('OWNER = "user"\n')
    return folder


class Installed(KavkaProcess):
    """A broker that is started from an environment of its own, in the folder of a project."""

    def __init__(self, environment: Path, project: Path) -> None:
        super().__init__(project / "data", env={"PYTHONPATH": str(project)})
        self._kavka = environment / "bin" / "kavka"

    def command(self) -> list[str]:
        return ["env", "-C", str(self.directory.parent), str(self._kavka), *super().command()[1:]]


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh one that has the wheel and what that asks for."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", folder, cwd=folder)
    run(folder / "bin" / "pip", "install", "-q", "--disable-pip-version-check", wheel, cwd=folder)
    return folder


@pytest.mark.slow
def test_it_serves_from_a_fresh_environment_beside_a_project(environment: Path, project: Path) -> None:
    values = [b"one", b"two"]

    with Installed(environment, project) as broker:
        with Wire(broker.host, broker.port) as client:
            create_topic(client, "visits")
            assert produce(client, "visits", batch_of(values, timestamp_ms=1)).error_code == 0
            assert list(read_values(client, "visits")) == values
        assert broker.process.stop() == 0
        broker.start()
        with Wire(broker.host, broker.port) as client:
            assert list(read_values(client, "visits")) == values

    shown = run(environment / "bin" / "kavka", "storage", "info", "--log-dirs", broker.log_dir, cwd=project)
    assert "visits" in shown.stdout


@pytest.mark.slow
def test_its_fixtures_serve_a_projects_tests_under_xdist(wheel: Path, environment: Path, project: Path) -> None:
    needed = [f"{wheel}[testing]", "pytest-xdist", "kafka-python", "aiokafka", "confluent-kafka"]
    run(environment / "bin" / "pip", "install", "-q", "--disable-pip-version-check", *needed, cwd=project)
    (project / "test_birds.py").write_text(USERS_TESTS)

    done = run(environment / "bin" / "python", "-m", "pytest", "-q", "-n4", "-p", "no:cacheprovider", cwd=project)

    assert "12 passed" in done.stdout


@pytest.mark.slow
def test_its_metadata_says_what_it_needs_and_under_which_licence(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (path,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = email.message_from_bytes(archive.read(path))

    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["License-File"] == "LICENSE"
    assert "Operating System :: POSIX :: Linux" in metadata.get_all("Classifier", [])
    assert [each for each in metadata.get_all("Requires-Dist", []) if "crcmod" in each and "extra" not in each] == [
        'crcmod<2,>=1.7; platform_machine != "x86_64" and platform_machine != "aarch64" and platform_machine != "i686"'
    ]


@pytest.mark.slow
def test_it_lives_beside_a_project_with_modules_of_the_same_names(wheel: Path, tmp_path: Path, project: Path) -> None:
    target = tmp_path / "site"
    run(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", target, wheel, cwd=tmp_path)
    shown = run(sys.executable, "-c", USER_CODE.format(target=str(target)), cwd=project, PYTHONPATH=str(target))

    assert "server.properties" in shown.stdout
