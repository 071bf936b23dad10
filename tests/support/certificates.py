"""Certificates for tests: an authority, keys that it signs, and stores of each kind that servers and clients read."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from tests.support.java import SHORT_LIVED, JavaFailedError

PASSWORD: Final = "changeit-kavka"
SERVER: Final = ExtendedKeyUsageOID.SERVER_AUTH
CLIENT: Final = ExtendedKeyUsageOID.CLIENT_AUTH
HOSTS: Final = ("localhost", "127.0.0.1")
KEYTOOL_TIMEOUT_S: Final = 200.0

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
_SIGNS: Final = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


def subject(common_name: str, *, organisation: str | None = None, unit: str | None = None) -> x509.Name:
    """A name: CN, and above it OU and O."""
    parts = [(NameOID.ORGANIZATION_NAME, organisation), (NameOID.ORGANIZATIONAL_UNIT_NAME, unit)]
    named = [x509.NameAttribute(oid, text) for oid, text in parts if text is not None]
    return x509.Name([*named, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _of_issuer(key: Key) -> x509.AuthorityKeyIdentifier:
    return x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key())


class Authority:
    """Signs certificates; `certificate` is its own, which signs itself, or which `above` has signed."""

    def __init__(self, name: str = "Kavka test authority", above: Authority | None = None) -> None:
        self.key: Final = ec.generate_private_key(ec.SECP256R1())
        self.above: Final = above
        issuer, issuer_key = (subject(name), self.key) if above is None else (above.certificate.subject, above.key)
        self.certificate: Final[x509.Certificate] = (
            _builder(subject(name), issuer, self.key, timedelta(hours=-1), timedelta(days=30))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_SIGNS, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self.key.public_key()), critical=False)
            .add_extension(_of_issuer(issuer_key), critical=False)
            .sign(issuer_key, hashes.SHA256())
        )

    @property
    def chain(self) -> list[x509.Certificate]:
        """Its certificate and those above it, but for the root."""
        return [] if self.above is None else [self.certificate, *self.above.chain]

    def issue(
        self,
        name: x509.Name | str,
        *,
        hosts: Sequence[str] = HOSTS,
        purposes: Sequence[x509.ObjectIdentifier] = (SERVER, CLIENT),
        begins: timedelta = timedelta(hours=-1),
        ends: timedelta = timedelta(days=20),
        key: Key | None = None,
    ) -> Issued:
        """A key, an elliptic one if none is given, and its certificate. No `purposes`: it says nothing of them."""
        own = key if key is not None else ec.generate_private_key(ec.SECP256R1())
        whose = subject(name) if isinstance(name, str) else name
        builder = _builder(whose, self.certificate.subject, own, begins, ends).add_extension(
            x509.BasicConstraints(ca=False, path_length=None), critical=True
        )
        # Without, those of Python 3.13 that are strict refuse it.
        builder = builder.add_extension(_of_issuer(self.key), critical=False)
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_name_of(host) for host in hosts]), False)
        if purposes:
            builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        return Issued(self, own, builder.sign(self.key, hashes.SHA256()))

    def pem(self) -> bytes:
        """What trusts all that it signs."""
        return self.certificate.public_bytes(Encoding.PEM)

    def write_pem(self, path: Path) -> Path:
        """A trust store as PEM."""
        path.write_bytes(self.pem())
        return path

    def write_pkcs12(self, path: Path, password: str = PASSWORD) -> Path:
        """A trust store as keytool writes it: the certificate is marked as trusted, else Java sees none."""
        trusted = pkcs12.PKCS12Certificate(self.certificate, b"authority")
        path.write_bytes(pkcs12.serialize_java_truststore([trusted], BestAvailableEncryption(password.encode())))
        return path

    def write_jks(self, path: Path, password: str = PASSWORD) -> Path:
        """A trust store in Java's own format. By keytool."""
        pem = self.write_pem(path.with_suffix(".authority.pem"))
        _keytool("-importcert", "-noprompt", "-alias", "authority", "-file", str(pem), *_jks(path, password))
        return path


class Issued:
    """A key with its certificate."""

    def __init__(self, authority: Authority, key: Key, certificate: x509.Certificate) -> None:
        self.authority: Final = authority
        self.key: Final = key
        self.certificate: Final = certificate

    @property
    def der(self) -> bytes:
        """The certificate alone."""
        return self.certificate.public_bytes(Encoding.DER)

    def chain_pem(self) -> bytes:
        """The certificate, and those of authorities below the root."""
        chain = (self.certificate, *self.authority.chain)
        return b"".join([each.public_bytes(Encoding.PEM) for each in chain])

    def key_pem(self, password: str | None = None) -> bytes:
        """The key as PKCS#8, encrypted where there is a password."""
        encryption = NoEncryption() if password is None else BestAvailableEncryption(password.encode())
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)

    def write_pem(self, path: Path, password: str | None = None) -> Path:
        """A key store as PEM: key and chain."""
        path.write_bytes(self.key_pem(password) + self.chain_pem())
        return path

    def write_key_pem(self, path: Path, password: str | None = None) -> Path:
        """The key alone, as librdkafka takes it."""
        path.write_bytes(self.key_pem(password))
        return path

    def write_chain_pem(self, path: Path) -> Path:
        """The chain alone, as librdkafka takes it."""
        path.write_bytes(self.chain_pem())
        return path

    def write_pkcs12(self, path: Path, password: str = PASSWORD) -> Path:
        """A key store as keytool writes it since Java 9."""
        encryption = BestAvailableEncryption(password.encode())
        path.write_bytes(
            pkcs12.serialize_key_and_certificates(
                b"kafka", self.key, self.certificate, self.authority.chain or None, encryption
            )
        )
        return path

    def write_jks(self, path: Path, password: str = PASSWORD) -> Path:
        """A key store in Java's own format. By keytool."""
        source = self.write_pkcs12(path.with_suffix(".source.p12"), password)
        target = ("-destkeystore", str(path), "-deststoretype", "JKS", "-deststorepass", password)
        _keytool(
            *("-importkeystore", "-noprompt", "-srckeystore", str(source), "-srcstoretype", "PKCS12"),
            *("-srcstorepass", password, *target),
        )
        return path


def write_several(path: Path, kind: str, entries: Mapping[str, Issued], password: str = PASSWORD) -> Path:
    """A key store of that kind (PKCS12, JKS) with all of these, by alias. By keytool."""
    target = ("-destkeystore", str(path), "-deststoretype", kind, "-deststorepass", password)
    for alias, issued in entries.items():
        source = issued.write_pkcs12(path.with_suffix(".source.p12"), password)
        _keytool(
            *("-importkeystore", "-noprompt", "-srckeystore", str(source), "-srcstoretype", "PKCS12"),
            *("-srcstorepass", password, "-srcalias", "kafka", "-destalias", alias, "-destkeypass", password, *target),
        )
    return path


def rsa_key() -> rsa.RSAPrivateKey:
    """The kind of key that most listeners have."""
    return rsa.generate_private_key(65537, 2048)


def _builder(
    name: x509.Name, issuer: x509.Name, key: Key, begins: timedelta, ends: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + begins)
        .not_valid_after(now + ends)
    )


def _name_of(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _jks(path: Path, password: str) -> tuple[str, ...]:
    return "-keystore", str(path), "-storetype", "JKS", "-storepass", password


def _keytool(*arguments: str) -> None:
    """Keytool's class: its program may be missing where there is a Java."""
    command = ["java", *SHORT_LIVED, "sun.security.tools.keytool.Main", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=KEYTOOL_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise JavaFailedError(f"keytool failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
