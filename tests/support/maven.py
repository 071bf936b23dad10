"""Apache Kafka's own jars, by Maven: the oracle for behaviour and bytes, and the benchmark's other runner.

`classpath("kafka-3.9")` answers a class path as text, downloading it on first use into `.cache/jars/NAME/`. Several
test processes may call at once: the first holds a lock file and downloads, the others wait for it.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.support.locks import locked

REPOSITORY = Path(__file__).resolve().parents[2]
JARS = REPOSITORY / ".cache" / "jars"

# slf4j-simple writes to stderr, where processes.py finds a server's log; Kafka 3.9's own binding needs a settings file.
BUNDLES: dict[str, tuple[str, ...]] = {
    "kafka-3.9": (
        "org.apache.kafka:kafka_2.13:3.9.2",
        "org.apache.kafka:kafka-tools:3.9.2",
        "org.apache.kafka:kafka-clients:3.9.2",
        "org.slf4j:slf4j-simple:1.7.36",
    ),
    "kafka-4.3": (
        "org.apache.kafka:kafka_2.13:4.3.1",
        "org.apache.kafka:kafka-tools:4.3.1",
        "org.apache.kafka:kafka-clients:4.3.1",
        "org.slf4j:slf4j-simple:1.7.36",
    ),
    "streams-4.3": (
        "org.apache.kafka:kafka-streams:4.3.1",
        "org.slf4j:slf4j-simple:1.7.36",
    ),
}
OLD_CLIENTS = ("0.8.2.2", "0.9.0.1", "0.10.2.2", "0.11.0.3", "1.1.1", "2.0.1", "2.8.2")
BUNDLES |= {
    f"clients-{version}": (f"org.apache.kafka:kafka-clients:{version}", "org.slf4j:slf4j-simple:1.7.36")
    for version in OLD_CLIENTS
}
# The token provider of 4.2.0 is in no repository: the connector runs with that of 4.0.0, and Spark has the rest.
BUNDLES["spark-kafka-4.2"] = (
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
BUNDLES["delta-4.4"] = ("io.delta:delta-spark_4.2_2.13:4.4.0", "io.delta:delta-storage:4.4.0")
WITHOUT_DEPENDENCIES = frozenset({"delta-4.4", "spark-kafka-4.2"})
"""Bundles of which every jar is named."""
BUNDLES["kafka-0.8"] = ("org.apache.kafka:kafka_2.11:0.8.2.2", "org.slf4j:slf4j-simple:1.7.36")
ONE_LOG_BINDING = (
    "<exclusions><exclusion><groupId>org.slf4j</groupId>"
    "<artifactId>slf4j-reload4j</artifactId></exclusion></exclusions>"
)
NO_DEPENDENCIES = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
DOWNLOAD_TIMEOUT_S = 900


class JarsUnavailableError(Exception):
    """Java or Maven is missing, or Maven could not download; the message says which and what to do."""


def classpath(bundle: str) -> str:
    """The bundle's class path for a test, which is skipped when Java is missing."""
    try:
        return resolve(bundle)
    except JarsUnavailableError as error:
        pytest.skip(str(error))


def resolve(bundle: str) -> str:
    """The bundle's class path. Raises `JarsUnavailableError` with the reason, KeyError for an unknown bundle."""
    pom = _pom(bundle, BUNDLES[bundle])
    for tool in ("java", "mvn"):
        if shutil.which(tool) is None:
            raise JarsUnavailableError(
                f"{tool} is not installed (Debian: apt-get install openjdk-17-jre-headless maven)"
            )
    target = JARS / bundle
    if not _is_ready(target, pom):
        with locked(JARS / f"{bundle}.lock"):
            if not _is_ready(target, pom):
                _download(target, pom)
    return os.pathsep.join(str(jar) for jar in sorted(target.glob("*.jar")))


def _is_ready(target: Path, pom: str) -> bool:
    """The pom lies beside the jars: a changed list of versions downloads again."""
    stamp = target / "pom.xml"
    return stamp.is_file() and stamp.read_text() == pom


def _download(target: Path, pom: str) -> None:
    with tempfile.TemporaryDirectory(dir=JARS) as scratch:
        project = Path(scratch)
        (project / "pom.xml").write_text(pom)
        command = [
            "mvn",
            "-q",
            "-B",
            "dependency:copy-dependencies",
            "-DoutputDirectory=jars",
            "-DincludeScope=runtime",
        ]
        done = subprocess.run(
            command,
            check=False,
            cwd=project,
            capture_output=True,
            text=True,
            timeout=DOWNLOAD_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode != 0:
            raise JarsUnavailableError(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        jars = project / "jars"
        (jars / "pom.xml").write_text(pom)
        shutil.rmtree(target, ignore_errors=True)
        jars.rename(target)


def _pom(bundle: str, artifacts: tuple[str, ...]) -> str:
    dependencies = ""
    exclusions = NO_DEPENDENCIES if bundle in WITHOUT_DEPENDENCIES else ONE_LOG_BINDING
    for artifact in artifacts:
        group, name, version = artifact.split(":")
        dependencies += (
            f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
            f"<version>{version}</version>{exclusions}</dependency>\n"
        )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>\n'
        f"<groupId>kavka.tests</groupId><artifactId>{bundle}</artifactId><version>1</version><packaging>pom</packaging>\n"
        f"<dependencies>\n{dependencies}</dependencies></project>\n"
    )
