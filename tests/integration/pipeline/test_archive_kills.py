"""kill -9 of the archive's driver at every step and at random, with compactions and lost checkpoints in between."""

import random
import shutil
import sys
from pathlib import Path

import pyarrow
import pytest
from pyspark.sql import SparkSession

from kavka.pipeline.lake.compact import Compaction
from kavka.pipeline.lake.lake import Lake
from kavka.pipeline.lake.publishing import STEPS
from tests.support.archiving import archive, lake_hash, listed_hash, source_hash, write_source
from tests.support.processes import Process

pytestmark = pytest.mark.soak

BATCHES = 30
TIMEOUT_S = 3600


def _positions(table: pyarrow.Table) -> list[tuple[object, ...]]:
    columns = [table[name].to_pylist() for name in ("topic", "partition", "offset")]
    return list(zip(*columns, strict=True))


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(2))
def test_twenty_kills_lose_and_double_nothing(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    source, lake, checkpoint = (tmp_path / name for name in ("source", "lake", "checkpoint"))
    write_source(source, BATCHES)
    steps = list(STEPS) + [chance.choice(STEPS) for _ in range(20 - len(STEPS))]
    for number, step in enumerate(steps):
        given = [str(each) for each in (source, lake, checkpoint)] + [step, str(chance.randint(1, 3))]
        process = Process([sys.executable, "-m", "tests.support.archiving", *given], tmp_path / f"{number}.log")
        try:
            assert process.wait(TIMEOUT_S) in (-9, 0), process.log_text()[-3000:]
        finally:
            process.kill()
        if (lake / "data").is_dir():
            found = _positions(Lake(lake).to_arrow())
            assert len(found) == len(set(found)), f"a row is there twice after a kill at {step}"
        if chance.random() < 0.3 and (lake / "_kavka" / "manifest").is_dir():
            Compaction(lake, keep_hours=0).run()
        if chance.random() < 0.15:
            shutil.rmtree(checkpoint, ignore_errors=True)
    archive(spark, source, lake, checkpoint)
    Compaction(lake, keep_hours=0).run()

    assert lake_hash(lake) == source_hash(source) == listed_hash(lake)
