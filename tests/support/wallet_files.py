"""Certificates and keys as organisers get them from Apple and Google, made here."""

import functools
import json
from datetime import UTC, datetime, timedelta
from typing import Any

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
from cryptography.x509.oid import NameOID

PASS_TYPE_ID = "pass.org.example.tickets"
TEAM_ID = "A1B2C3D4E5"
ISSUER_ID = "3388000000012345678"
CLIENT_EMAIL = "wallet@frontrow-test.iam.gserviceaccount.com"
BEGIN = datetime(2020, 1, 1, tzinfo=UTC)
END = datetime(2040, 1, 1, tzinfo=UTC)


@functools.cache
def rsa_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65_537, 2048)


@functools.cache
def authority(name: str = "Test WWDR", end: datetime = END) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """An intermediate certificate that stands for Apple's, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    return _certificate(subject, key.public_key(), subject, key, END if end == END else end, authority=True), key


def pass_certificate(
    pass_type_id: str = PASS_TYPE_ID, *, key: Any = None, begin: datetime = BEGIN, end: datetime = END
) -> x509.Certificate:
    """A certificate for a pass type, issued by the authority."""
    issuer, issuer_key = authority()
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.USER_ID, pass_type_id),
            x509.NameAttribute(NameOID.COMMON_NAME, f"Pass Type ID: {pass_type_id}"),
            x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, TEAM_ID),
        ]
    )
    return _certificate(subject, (key or rsa_key()).public_key(), issuer.subject, issuer_key, end, begin=begin)


def _certificate(
    subject: x509.Name,
    public: Any,
    issuer: x509.Name,
    key: Any,
    end: datetime,
    *,
    begin: datetime = BEGIN,
    authority: bool = False,
) -> x509.Certificate:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(public)
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(min(begin, end - timedelta(days=1))).not_valid_after(end)
    builder = builder.add_extension(x509.BasicConstraints(authority, None), critical=True)
    return builder.sign(key, hashes.SHA256())


def pem(thing: Any, password: bytes = b"") -> bytes:
    """A certificate or a private key as PEM."""
    if isinstance(thing, x509.Certificate):
        return thing.public_bytes(Encoding.PEM)
    encryption = BestAvailableEncryption(password) if password else NoEncryption()
    return bytes(thing.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))


def der(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.DER)


def p12(certificate: x509.Certificate, key: Any = None, password: bytes = b"secret", *more: x509.Certificate) -> bytes:
    """A `.p12` file as Keychain exports it."""
    return pkcs12.serialize_key_and_certificates(
        b"pass", key or rsa_key(), certificate, more, BestAvailableEncryption(password)
    )


def service_account(**changes: Any) -> bytes:
    """Google's JSON file of a service account."""
    fields = {"type": "service_account", "project_id": "frontrow-test", "client_email": CLIENT_EMAIL}
    return json.dumps(fields | {"private_key": pem(rsa_key()).decode()} | changes).encode()
