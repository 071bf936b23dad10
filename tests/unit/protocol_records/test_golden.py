"""Batches that Kafka 3.9 wrote (by tests/java/RecordsOracle.java), kept as hex so that no JVM is needed."""

import pytest

from kavka.protocol.records.batch import Record, build_batch, iter_batch_headers, iter_records, read_header, verify_crc
from kavka.protocol.records.legacy import to_v2

VECTORS = {
    "magic0-none": (
        "00000000000000640000001fd6e4d28b000000000004736974650000000d6b61766b612e6578616d706c65000000000000006500"
        "00000e795748e00000ffffffff0000000000000000000000660000000e3d314895000000000000ffffffff"
    ),
    "magic0-lz4": (
        "00000000000000660000007251faeb1d0003ffffffff0000006404224d1860401a550000001200010091640000001fd6e4d28b0f"
        "00f00604736974650000000d6b61766b612e6578616d706c1100000200000800b00e795748e00000ffffffff1300030200f00466"
        "0000000e3d314895000000000000ffffffff00000000"
    ),
    "magic0-snappy": (
        "0000000000000066000000731b68cd820002ffffffff0000006582534e41505059000000000100000001000000515f0000090120"
        "640000001fd6e4d28b050f5004736974650000000d6b61766b612e6578616d706c011101010108280e795748e00000ffffffff01"
        "130d0148660000000e3d314895000000000000ffffffff"
    ),
    "magic1-none-append": (
        "000000000000006400000027c61dd4820108000001a3185c500000000004736974650000000d6b61766b612e6578616d706c6500"
        "000000000000650000001606f1a7570108000001a3185c5000ffffffff000000000000000000000066000000164297a722010800"
        "0001a3185c500000000000ffffffff"
    ),
    "magic1-gzip": (
        "000000000000006600000072f1e047c701010000018bcfe56805ffffffff0000005c1f8b08000000000000ff63608003f52bdb2c"
        "8e3302198cdde79f668044588a334b5281346f76625976a25e6a45626e414e2a543948a598c9d9eced702dacff8100611e031348"
        "85deedf3023015e9df40c2205500ae4ca6f777000000"
    ),
    "magic1-lz4": (
        "00000000000000660000008608d42f1601030000018bcfe56805ffffffff0000007004224d186040826100000016000100e027d4"
        "b638c701000000018bcfe5681800f00604736974650000000d6b61766b612e6578616d706c1100000200002a00501634cd6bb709"
        "000133005005ffffffff1b000302009402000000162edbcf102200a067f600000000ffffffff00000000"
    ),
    "magic2-none-transactional": (
        "000000000000006400000069000000030210b86b570010000000020000018bcfe568000000018bcfe568050000000000000fa000"
        "0100000007000000035200000008736974651a6b61766b612e6578616d706c65040469701031302e302e302e31086e6f6e65010c"
        "000a020100000c001304000100"
    ),
    "magic2-gzip": (
        "00000000000000640000007affffffff020482929f0001000000020000018bcfe568000000018bcfe56805ffffffffffffffffff"
        "ffffffffff000000031f8b08000000000000ff0b626060e028ce2c4995ca4e2ccb4ed44bad48cc2dc8496561c92c103034d00341"
        "438ebcfcbc54461e062e264606061e06611606460600d9a2235a38000000"
    ),
    "magic2-snappy": (
        "00000000000000640000007effffffff02eee36ec90002000000020000018bcfe568000000018bcfe56805ffffffffffffffffff"
        "ffffffffff0000000382534e415050590000000001000000010000003938785200000008736974651a6b61766b612e6578616d70"
        "6c65040469701031302e01025031086e6f6e65010c000a020100000c001304000100"
    ),
    "magic2-lz4": (
        "000000000000006400000078ffffffff02cced0e1f0003000000020000018bcfe568000000018bcfe56805ffffffffffffffffff"
        "ffffffffff0000000304224d18604082380000805200000008736974651a6b61766b612e6578616d706c65040469701031302e30"
        "2e302e31086e6f6e65010c000a020100000c00130400010000000000"
    ),
    "magic2-zstd": (
        "000000000000006400000075ffffffff0242981ea60004000000020000018bcfe568000000018bcfe56805ffffffffffffffffff"
        "ffffffffff0000000328b52ffd0058c001005200000008736974651a6b61766b612e6578616d706c65040469701031302e302e30"
        "2e31086e6f6e65010c000a020100000c001304000100010000"
    ),
}
SITE = Record(100, 1_700_000_000_000, b"site", b"kavka.example", (("ip", b"10.0.0.1"), ("none", None)))
RECORDS = [SITE, Record(101, 1_700_000_000_005, None, b""), Record(102, 1_699_999_999_990, b"", None)]


@pytest.mark.parametrize("name", VECTORS)
def test_reads_what_kafka_wrote(name: str) -> None:
    data = bytes.fromhex(VECTORS[name])

    assert read_all(data) == expected(name)


@pytest.mark.parametrize("name", [name for name in VECTORS if not name.startswith("magic2")])
def test_converts_what_old_clients_send(name: str) -> None:
    batch = to_v2(bytes.fromhex(VECTORS[name]))

    header = read_header(batch)
    (first, *_) = iter_batch_headers(bytes.fromhex(VECTORS[name]))
    assert (header.codec, header.timestamp_type) == (first[1].codec, first[1].timestamp_type)
    assert read_all(batch) == [record._replace(offset=record.offset - 100) for record in expected(name)]


def test_builds_the_bytes_that_kafka_builds() -> None:
    batch = build_batch(
        RECORDS,
        base_offset=100,
        producer_id=4000,
        producer_epoch=1,
        base_sequence=7,
        transactional=True,
        leader_epoch=3,
    )
    assert batch.hex() == VECTORS["magic2-none-transactional"]


def expected(name: str) -> list[Record]:
    records = RECORDS if name.startswith("magic2") else [record._replace(headers=()) for record in RECORDS]
    if name.startswith("magic0"):
        return [record._replace(timestamp_ms=-1) for record in records]
    if name.endswith("append"):
        return [record._replace(timestamp_ms=1_800_000_000_000) for record in records]
    return records


def read_all(data: bytes) -> list[Record]:
    records: list[Record] = []
    for position, header in iter_batch_headers(data):
        verify_crc(data, position, header)
        records += iter_records(data, position)
    return records
