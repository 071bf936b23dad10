"""docs/compatibility.md says what the code serves, which clients the tests run, and every difference they allow."""

import json
import re
import tomllib

from kavka.broker.requests.handling import load_handlers
from kavka.protocol.api import ApiKey
from tests.integration.oracle.answers.comparing import KNOWN
from tests.support.compatibility_page import served_apis, table, versions_text
from tests.support.maven import BUNDLES, OLD_CLIENTS
from tests.tidy.sources import REPOSITORY

CLIENTS = REPOSITORY / "tests" / "clients"
PYTHON_CLIENTS = ("kafka-python", "aiokafka", "confluent-kafka")


def test_the_page_shows_the_versions_that_are_served() -> None:
    served = [
        (handler.api_key, ApiKey(handler.api_key).title, versions_text(handler.advertised_min, handler.max_version))
        for _, handler in sorted(load_handlers().items())
    ]
    assert [row[:3] for row in served_apis()] == served


def test_the_page_shows_what_brokers_of_a_cluster_serve_each_other() -> None:
    served = [
        [str(key), ApiKey(key).title, versions_text(handler.advertised_min, handler.max_version)]
        for key, handler in sorted(load_handlers(in_cluster=True).items())
        if handler.in_clusters
    ]
    assert [row[:3] for row in table("APIs between brokers")] == served


def test_the_page_says_of_every_other_api_why_it_is_not_served() -> None:
    listed = [name for _, names in table("APIs and versions", 1) for name in names.split(", ")]
    assert sorted(listed) == sorted(key.title for key in ApiKey if key not in load_handlers(in_cluster=True))


def test_the_page_names_the_versions_of_the_clients_that_the_tests_run() -> None:
    versions: dict[str, str] = {}
    for _, client, tested, *_ in table("Clients tested"):
        (name,) = re.findall(r"^`(?:org\.apache\.kafka:)?([^`]+)`", client)
        versions[name] = tested
    declared = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["dependency-groups"]["test"]
    expected = {name: text.removeprefix(name) for name in PYTHON_CLIENTS for text in declared if text.startswith(name)}
    expected |= json.loads((CLIENTS / "node" / "package.json").read_text())["dependencies"]
    required = (CLIENTS / "go" / "go.mod").read_text().partition("require (")[2].partition(")")[0]
    expected |= {
        name: version for name, version in map(str.split, required.strip().splitlines()) if "/pkg/" not in name
    }
    expected["kcat"] = "the distribution's"

    assert versions.keys() - expected.keys() == {"kafka-clients", "kafka_2.11", "kafka-streams", "kafka-tools"}
    assert {name: versions[name].partition(",")[0] for name in expected if name not in PYTHON_CLIENTS} == {
        name: text for name, text in expected.items() if name not in PYTHON_CLIENTS
    }
    assert {name: versions[name] for name in PYTHON_CLIENTS} == {name: expected[name] for name in PYTHON_CLIENTS}
    todays = [_version(f"kafka-{series}", "kafka-clients") for series in ("3.9", "4.3")]
    assert re.findall(r"\d+(?:\.\d+)+", versions["kafka-clients"]) == [*OLD_CLIENTS, *todays]
    assert versions["kafka-tools"] == ", ".join(todays)
    assert versions["kafka_2.11"] == _version("kafka-0.8", "kafka_2.11")
    assert versions["kafka-streams"] == _version("streams-4.3", "kafka-streams")


def test_the_page_has_every_difference_that_the_oracle_allows_with_its_reason() -> None:
    listed = [(scenario.strip("`"), text) for _, text, scenario in table("Differences in answers")]
    missing = [
        f"{known.scenario}: {known.reason}"
        for known in KNOWN
        if not any(scenario == known.scenario and _same(known.reason, text) for scenario, text in listed)
    ]
    assert missing == [], "docs/compatibility.md needs a row for each, with the reason in these words"
    scenarios = {known.scenario for known in KNOWN}
    assert [scenario for scenario, _ in listed if scenario not in scenarios] == [], "these rows are out of date"


def _same(reason: str, text: str) -> bool:
    return reason.casefold() in text.replace("`", "").casefold()


def _version(bundle: str, artifact: str) -> str:
    (found,) = (each.rpartition(":")[2] for each in BUNDLES[bundle] if each.split(":")[1] == artifact)
    return found
