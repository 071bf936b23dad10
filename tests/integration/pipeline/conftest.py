"""What the pipeline's tests share: one Spark session per test process."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.support.spark_session import spark_session


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Spark, with its own Kafka connector beside ours."""
    with spark_session(tmp_path_factory.mktemp("spark")) as session:
        yield session
