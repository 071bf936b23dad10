"""Values decoded into Arrow columns, rows a second of processor time on one core, for each format.

    python -m benchmarks.pipeline_schemas [ROWS]

The same row in each: a time, two texts of which one is absent in every third row, a number and a double. In batches of
ten thousand, as Spark gives them. Beside it what Python's own decoders do. With `--spark` also a batch in Spark,
`from_json` against the Arrow function.
"""

import io
import json
import struct
import sys
import time
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
from fastavro import parse_schema, schemaless_reader, schemaless_writer
from google.protobuf.message_factory import GetMessageClass

from kavka.pipeline.schemas.declared import declared_type
from kavka.pipeline.schemas.decoded import ColumnDecoder
from kavka.pipeline.schemas.json_values import JsonDecoder
from kavka.pipeline.schemas.protobuf.linking import linked, message_of
from kavka.pipeline.schemas.registered import RegisteredDecoder
from kavka.pipeline.schemas.registry.schema import WholeSchema

BATCH: Final = 10_000
FIELDS: Final = "time timestamp, site string, ip string, hits int, rate double"
AVRO: Final = {
    "type": "record",
    "name": "Visit",
    "fields": [
        {"name": "time", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "site", "type": "string"},
        {"name": "ip", "type": ["null", "string"], "default": None},
        {"name": "hits", "type": "int"},
        {"name": "rate", "type": "double"},
    ],
}
PROTOBUF: Final = """syntax = "proto3";
message Visit { int64 time = 1; string site = 2; optional string ip = 3; int32 hits = 4; double rate = 5; }"""
HEAD: Final = b"\0" + struct.pack(">i", 7)


def row(number: int) -> dict[str, Any]:
    """One row, its time in milliseconds."""
    ip = f"10.0.{number % 200}.{number % 250}" if number % 3 else None
    at = 1_700_000_000_000 + number
    return {"time": at, "site": f"site-{number % 50}", "ip": ip, "hits": number, "rate": number / 8}


def json_values(count: int) -> list[bytes]:
    """With the time as text."""
    return [json.dumps(row(number) | {"time": "2024-01-01T00:00:00Z"}).encode() for number in range(count)]


def avro_values(count: int) -> list[bytes]:
    schema = parse_schema(AVRO)
    found = []
    for number in range(count):
        out = io.BytesIO()
        schemaless_writer(out, schema, row(number))
        found.append(HEAD + out.getvalue())
    return found


def protobuf_values(count: int) -> list[bytes]:
    make = GetMessageClass(message_of(linked(WholeSchema(7, "PROTOBUF", PROTOBUF)), None))
    return [HEAD + b"\0" + make(**row(number)).SerializeToString() for number in range(count)]


def rate(count: int, work: Callable[[], object]) -> float:
    """Rows a second of processor time: the best of three, after a first that compiles."""
    work()
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return count / best


def decoded(decoder: ColumnDecoder, values: list[bytes]) -> float:
    """The rate of a decoder. Raises ValueError if a value is bad."""
    column = pa.array(values)
    if decoder.decode(column).reasons:
        raise ValueError("a value of the benchmark is bad")
    batches = [column.slice(first, BATCH) for first in range(0, len(values), BATCH)]
    return rate(len(values), lambda: [decoder.decode(batch) for batch in batches])


def row_by_row(name: str, values: list[bytes]) -> float:
    """The rate of what Python has for one value at a time, which makes no columns yet."""
    if name == "json":
        return rate(len(values), lambda: [json.loads(value) for value in values])
    if name == "avro":
        schema = parse_schema(AVRO)
        read: Any = schemaless_reader
        return rate(len(values), lambda: [read(io.BytesIO(value[5:]), schema, None) for value in values])
    parse = GetMessageClass(message_of(linked(WholeSchema(7, "PROTOBUF", PROTOBUF)), None)).FromString
    return rate(len(values), lambda: [parse(value[6:]) for value in values])


def in_spark(values: list[bytes]) -> None:
    """JSON both ways, wall time on one thread of Spark's."""
    from pyspark.sql import SparkSession
    from pyspark.sql.functions import col, from_json

    from kavka.pipeline.schemas.decoding import decoder

    spark = SparkSession.Builder().master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    columns = pa.table({"value": values, "offset": range(len(values))})
    rows = spark.createDataFrame(columns.to_pandas()).cache()
    rows.count()
    for name in ("from_json", "arrow", "from_json", "arrow"):
        began = time.perf_counter()
        if name == "from_json":
            text = col("value").cast("string")
            rows.select("offset", from_json(text, FIELDS).alias("v")).write.format("noop").mode("append").save()
        else:
            stage = decoder({"format": "json", "fields": FIELDS})
            good, _ = stage.decode(rows)
            good.write.format("noop").mode("append").save()
            stage.release()
        print(f"spark {name:10} {len(values) / (time.perf_counter() - began):12,.0f} rows/s")
    spark.stop()


def main() -> None:
    counts = [int(each) for each in sys.argv[1:] if each.isdecimal()]
    count = counts[0] if counts else 200_000
    avro, protobuf = WholeSchema(7, "AVRO", json.dumps(AVRO)), WholeSchema(7, "PROTOBUF", PROTOBUF)
    decoders: dict[str, tuple[ColumnDecoder, list[bytes]]] = {
        "json": (JsonDecoder(declared_type(FIELDS)), json_values(count)),
        "avro": (RegisteredDecoder("avro", avro, {7: avro}, {}), avro_values(count)),
        "protobuf": (RegisteredDecoder("protobuf", protobuf, {7: protobuf}, {}), protobuf_values(count)),
    }
    for name, (made, values) in decoders.items():
        size = sum(map(len, values)) / count
        whole, single = decoded(made, values), row_by_row(name, values)
        print(f"{name:9} {whole:12,.0f} rows/s   value by value {single:12,.0f}   {size:.0f} B")
    if "--spark" in sys.argv:
        in_spark(decoders["json"][1])


if __name__ == "__main__":
    main()
