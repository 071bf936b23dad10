"""Key stores and trust stores: each format, told apart by what is in it, and what is refused."""

from __future__ import annotations

import random
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates

from kavka.client.tls import pkcs12
from kavka.client.tls.key_choice import in_javas_order
from kavka.client.tls.pkcs12_keys import NamedKey, pkcs12_keys
from kavka.client.tls.store_entries import Store
from kavka.client.tls.stores import KeyStoreSource, TrustStoreSource, read_key_store, read_trust_store
from kavka.config.errors import ConfigError
from kavka.config.values import Password
from tests.support.certificates import PASSWORD, Authority, Issued, rsa_key, write_several

SECRET = Password(PASSWORD)
NOTHING = KeyStoreSource("JKS", None, None, None, None, None)


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority(above=Authority("root"))


@pytest.fixture(scope="module")
def issued(authority: Authority) -> Issued:
    return authority.issue("broker")


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory, authority: Authority, issued: Issued) -> Path:
    directory = tmp_path_factory.mktemp("stores")
    issued.write_pem(directory / "keys.pem")
    issued.write_pem(directory / "sealed.pem", PASSWORD)
    issued.write_pkcs12(directory / "keys.p12")
    authority.write_pem(directory / "trust.pem")
    authority.write_pkcs12(directory / "trust.p12")
    return directory


def assert_is(store: Store | None, issued: Issued) -> None:
    assert store is not None
    (entry,) = store.keys
    key = load_pem_private_key(entry.key_pem, None)
    public = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert key.public_key().public_bytes(*public) == issued.key.public_key().public_bytes(*public)
    chain = [x509.load_der_x509_certificate(each) for each in entry.chain]
    assert chain == [issued.certificate, *issued.authority.chain]


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_a_pkcs12_store_is_read_under_either_name(stores: Path, issued: Issued, kind: str) -> None:
    source = NOTHING._replace(type=kind, location=str(stores / "keys.p12"), password=SECRET)
    assert_is(read_key_store(source), issued)


def test_a_pem_file_has_key_and_chain(stores: Path, issued: Issued) -> None:
    assert_is(read_key_store(NOTHING._replace(type="PEM", location=str(stores / "keys.pem"))), issued)


def test_an_encrypted_pem_key_needs_the_keys_password(stores: Path, issued: Issued) -> None:
    source = NOTHING._replace(type="PEM", location=str(stores / "sealed.pem"))
    assert_is(read_key_store(source._replace(key_password=SECRET)), issued)
    with pytest.raises(ConfigError, match=r"ssl\.key\.password is not set"):
        read_key_store(source)
    with pytest.raises(ConfigError, match=r"ssl\.key\.password wrong"):
        read_key_store(source._replace(key_password=Password("another")))


@pytest.mark.parametrize("in_one_line", [True, False])
def test_pem_may_stand_in_the_settings_themselves(issued: Issued, in_one_line: bool) -> None:
    key, chain = issued.key_pem().decode(), issued.chain_pem().decode()
    if in_one_line:
        key, chain = key.replace("\n", " "), chain.replace("\n", " ")
    source = NOTHING._replace(type="PEM", key=Password(key), certificate_chain=Password(chain))
    assert_is(read_key_store(source), issued)


def test_an_older_kind_of_pem_key_is_read() -> None:
    issued = Authority().issue("broker")
    assert isinstance(issued.key, ec.EllipticCurvePrivateKey)
    key = issued.key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()
    chain = Password(issued.chain_pem().decode())
    assert_is(read_key_store(NOTHING._replace(type="PEM", key=Password(key), certificate_chain=chain)), issued)


@pytest.mark.parametrize("name", ["trust.pem", "trust.p12"])
def test_a_trust_store_has_its_certificates(stores: Path, authority: Authority, name: str) -> None:
    password = None if name.endswith("pem") else SECRET
    trusted = read_trust_store(TrustStoreSource("JKS", str(stores / name), password, None))
    assert trusted == (authority.certificate.public_bytes(Encoding.DER),)


def test_trusted_certificates_may_stand_in_a_setting(authority: Authority) -> None:
    other = Authority("another")
    text = Password((authority.pem() + b"text between\n" + other.pem()).decode())
    trusted = read_trust_store(TrustStoreSource("PEM", None, None, text))
    assert trusted == tuple(each.certificate.public_bytes(Encoding.DER) for each in (authority, other))


@pytest.mark.java
def test_javas_own_format_is_read(tmp_path: Path, authority: Authority, issued: Issued) -> None:
    if shutil.which("java") is None:
        pytest.skip("java is not installed")
    keys, trust = issued.write_jks(tmp_path / "keys.jks"), authority.write_jks(tmp_path / "trust.jks")
    source = NOTHING._replace(location=str(keys), password=SECRET)
    assert_is(read_key_store(source), issued)
    # Without the password nothing is checked, as in Java, and certificates are no secret.
    for password in (SECRET, None):
        trusted = read_trust_store(TrustStoreSource("JKS", str(trust), password, None))
        assert trusted == (authority.certificate.public_bytes(Encoding.DER),)
    with pytest.raises(ConfigError, match="password is wrong"):
        read_key_store(source._replace(password=Password("another")))
    with pytest.raises(ConfigError, match="password of the key 'kafka' is wrong"):
        read_key_store(source._replace(key_password=Password("another")))
    data = keys.read_bytes()
    for size in range(0, len(data), 37):
        keys.write_bytes(data[:size])
        with pytest.raises(ConfigError):
            read_key_store(source)
        with pytest.raises(ConfigError):
            read_trust_store(TrustStoreSource("JKS", str(keys), None, None))


@pytest.mark.java
@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
def test_of_several_keys_java_would_show_the_same(tmp_path: Path, authority: Authority, kind: str) -> None:
    if shutil.which("java") is None:
        pytest.skip("java is not installed")
    entries = {
        "first": authority.issue("a", key=rsa_key()),
        "second": authority.issue("b"),
        "third": authority.issue("a", key=rsa_key()),
    }
    path = write_several(tmp_path / "several", kind, entries)
    store = read_key_store(NOTHING._replace(location=str(path), password=SECRET))
    assert store is not None
    # By SunX509 of Java 17.
    assert [each.alias for each in store.keys] == ["third", "second"]
    for entry in store.keys:
        assert_is(Store([entry], ()), entries[entry.alias])
    trusted = read_trust_store(TrustStoreSource("JKS", str(path), SECRET, None))
    assert trusted is not None
    assert set(trusted) >= {each.der for each in entries.values()}
    if kind == "PKCS12":
        read_damaged(path.read_bytes())


def read_damaged(data: bytes) -> None:
    chance = random.Random(13)
    for _ in range(300):
        damaged = bytearray(data)
        if chance.random() < 0.5:
            del damaged[chance.randrange(len(damaged)) :]
        for _ in range(chance.randrange(1, 4)):
            if damaged:
                damaged[chance.randrange(min(120, len(damaged)))] = chance.randrange(256)
        with suppress(ValueError, TypeError):
            pkcs12_keys(bytes(damaged), PASSWORD.encode())


def test_an_authority_with_a_key_that_nobody_knows_is_in_no_keys_way(
    tmp_path: Path, authority: Authority, issued: Issued, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a curve or an algorithm that OpenSSL has not; it lies before the second key's certificate here."""
    known, unknown = bytes.fromhex("06072a8648ce3d0201"), bytes.fromhex("06072a8648ce3d0202")
    odd = x509.load_der_x509_certificate(authority.certificate.public_bytes(Encoding.DER).replace(known, unknown))
    second = authority.issue("second", key=rsa_key())
    certificates = [odd, second.certificate]
    path = tmp_path / "odd.p12"
    path.write_bytes(serialize_key_and_certificates(b"a", issued.key, issued.certificate, certificates, NoEncryption()))
    both = [NamedKey("a", issued.key), NamedKey("b", second.key)]
    monkeypatch.setattr(pkcs12, "pkcs12_keys", lambda *_: both)

    store = read_key_store(NOTHING._replace(location=str(path)))

    assert store is not None
    assert {each.alias: each.chain[0] for each in store.keys} == {"a": issued.der, "b": second.der}


@pytest.mark.parametrize(
    ("given", "ordered"),
    [
        ("first second third", "third first second"),
        ("old new broker kafka ca-1 ca-2", "new old kafka broker ca-1 ca-2"),
        (
            "localhost kafka-2024 kafka-2025 server mykey 1 2 3 4 5 6 7 8 9 a b c",
            "localhost server a kafka-2025 b c mykey kafka-2024 1 2 3 4 5 6 7 8 9",
        ),
        ("\u00e9 \u00fc \U0001f600x", "\U0001f600x \u00e9 \u00fc"),
    ],
)
def test_aliases_are_tried_in_the_order_of_javas_hash_map(given: str, ordered: str) -> None:
    assert in_javas_order(given.split()) == ordered.split()


def test_what_is_wrong_with_a_store_is_said_in_one_line_without_secrets(stores: Path, tmp_path: Path) -> None:
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"neither this nor that")
    wrong: list[tuple[KeyStoreSource, str]] = [
        (NOTHING._replace(location=str(stores / "none"), password=SECRET), "No such file"),
        (NOTHING._replace(location=str(tmp_path), password=SECRET), "Is a directory"),
        (NOTHING._replace(location=str(garbage), password=SECRET), "none of PEM, PKCS12 and JKS"),
        (NOTHING._replace(location=str(stores / "keys.p12"), password=Password("no")), "is the password wrong"),
        (NOTHING._replace(location=str(stores / "trust.p12"), password=SECRET), "no private key"),
        (NOTHING._replace(type="PEM", location="x", password=SECRET), "password cannot be specified with PEM"),
        (NOTHING._replace(password=SECRET), "store is not specified, but key store password"),
        (NOTHING._replace(type="BCFKS", location="x"), "is not one of JKS, PKCS12, PEM"),
        (NOTHING._replace(key=SECRET), "can be specified only for PEM, but key store type is JKS"),
        (NOTHING._replace(type="PEM", key=SECRET), "but certificate chain is not specified"),
        (NOTHING._replace(type="PEM", certificate_chain=SECRET), "but private key is not specified"),
        (NOTHING._replace(type="PEM", key=SECRET, certificate_chain=SECRET), "none of PEM, PKCS12"),
    ]
    for source, expected in wrong:
        with pytest.raises(ConfigError) as caught:
            read_key_store(source)
        text = str(caught.value)
        assert expected in text
        assert "\n" not in text
        assert PASSWORD not in text
        assert PASSWORD not in repr(source)


def test_no_store_is_read_where_none_is_configured() -> None:
    assert read_key_store(NOTHING) is None
    assert read_trust_store(TrustStoreSource("JKS", None, None, None)) is None


@pytest.mark.parametrize("name", ["keys.p12", "sealed.pem", "trust.p12", "trust.pem"])
def test_damaged_stores_are_refused_and_nothing_else_happens(stores: Path, tmp_path: Path, name: str) -> None:
    data = (stores / name).read_bytes()
    chance = random.Random(13)
    target = tmp_path / name
    for _ in range(150):
        damaged = bytearray(data)
        if chance.random() < 0.5:
            del damaged[chance.randrange(len(damaged)) :]
        for _ in range(chance.randrange(1, 6)):
            if damaged:
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        target.write_bytes(damaged)
        for password in (None, SECRET):
            with suppress(ConfigError):
                read_key_store(NOTHING._replace(location=str(target), password=password, key_password=password))
            with suppress(ConfigError):
                read_trust_store(TrustStoreSource("JKS", str(target), password, None))


def test_an_entry_does_not_show_its_key(stores: Path) -> None:
    store = read_key_store(NOTHING._replace(type="PEM", location=str(stores / "keys.pem")))
    assert store is not None
    assert repr(store.keys[0]) == "KeyEntry('kafka', 2 certificates)"
