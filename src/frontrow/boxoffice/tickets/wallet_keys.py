"""Reads and checks the keys that sign wallet passes, as organisers upload them.

Apple: a certificate for a pass type with its key, as `.p12` or PEM, and Apple's intermediate certificate (WWDR) that
issued it. Google: the JSON file of a service account. Every refusal is an `InvalidInput` whose `reason` pages put into
words. Opening a `.p12` file can take long if its author wants it to: not on the event loop.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

from frontrow.core.clock import US_PER_S
from frontrow.core.errors import InvalidInput

MAX_FILE_BYTES: Final = 32_000
MAX_CERTIFICATES: Final = 10  # in one file
MIN_RSA_BITS: Final = 2048
MAX_RSA_BITS: Final = 4096
UID_START: Final = "pass."  # every pass type identifier begins so
_KEY_BLOCK: Final = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----.+?-----END [A-Z ]*PRIVATE KEY-----", re.DOTALL)
_ISSUER_ID: Final = re.compile(r"[0-9]{5,25}", re.ASCII)
_EMAIL: Final = re.compile(r"[A-Za-z0-9._%+-]{1,120}@[A-Za-z0-9.-]{3,120}", re.ASCII)
_REFUSALS: Final = {
    "unreadable": ("certificate", "this is no certificate that can be read; send a .p12, .pem or .cer file"),
    "wrong_password": ("password", "the password does not open this file"),
    "no_key": ("key", "the private key is missing; send a .p12 file, or the key as PEM"),
    "bad_key": ("key", "this is no private key that can be read; send RSA of 2048 to 4096 bits or P-256 as PEM"),
    "other_key": ("key", "this key does not belong to the certificate"),
    "no_pass_type": (
        "certificate",
        "this is no certificate of a pass type: it has no UID like pass.org.example",
    ),
    "other_pass_type": ("pass_type_id", "the certificate is for the pass type {found}"),
    "other_team": ("team_id", "the certificate belongs to the team {found}"),
    "expired": ("certificate", "this certificate expired on {found}"),
    "not_yet_valid": ("certificate", "this certificate is not valid before {found}"),
    "no_intermediate": ("intermediate", "Apple's intermediate certificate (WWDR) is missing; the issuer is {found}"),
    "bad_intermediate": ("intermediate", "this is no certificate that can be read; send a .cer or .pem file"),
    "other_intermediate": ("intermediate", "this certificate did not issue yours; you need the one of {found}"),
    "intermediate_expired": ("intermediate", "this intermediate certificate expired on {found}"),
    "bad_issuer_id": ("issuer_id", "an issuer id is a number of 5 to 25 digits"),
    "bad_service_account": ("service_account", "this is not the JSON file of a service account: {found}"),
}


class AppleKeysGiven(msgspec.Struct, frozen=True):
    """What an organiser uploads for Apple. An empty identifier is read from the certificate."""

    certificate: bytes
    key: bytes = b""
    password: str = ""
    intermediate: bytes = b""
    pass_type_id: str = ""
    team_id: str = ""

    def __repr__(self) -> str:
        return "AppleKeysGiven(…)"


class AppleSigner(msgspec.Struct, frozen=True):
    """Signs Apple's passes. Keep it secret. All are PEM."""

    certificate: str
    key: str
    intermediate: str

    def __repr__(self) -> str:
        return "AppleSigner(…)"


class AppleKeys(msgspec.Struct, frozen=True):
    """Checked keys for Apple's wallet."""

    pass_type_id: str
    team_id: str
    expires_at_us: int
    signer: AppleSigner


class GoogleKeysGiven(msgspec.Struct, frozen=True):
    """What an organiser uploads for Google."""

    issuer_id: str
    service_account: bytes

    def __repr__(self) -> str:
        return "GoogleKeysGiven(…)"


class GoogleSigner(msgspec.Struct, frozen=True):
    """Signs Google's passes. Keep it secret. The key is PEM."""

    key: str

    def __repr__(self) -> str:
        return "GoogleSigner(…)"


class GoogleKeys(msgspec.Struct, frozen=True):
    """Checked keys for Google's wallet."""

    issuer_id: str
    client_email: str
    signer: GoogleSigner


class _Found(NamedTuple):
    """What the uploaded files contain."""

    key: Any
    certificates: list[x509.Certificate]


class _ServiceAccount(msgspec.Struct):
    """The fields that are used of Google's JSON file."""

    type: str
    client_email: str
    private_key: str


def read_apple_keys(given: AppleKeysGiven, now_us: int) -> AppleKeys:
    """The keys, or an `InvalidInput` that says what is wrong with which field."""
    found = _open_files(given)
    leaf, pass_type_id = _pass_certificate(found.certificates)
    if given.pass_type_id and given.pass_type_id != pass_type_id:
        raise _refusal("other_pass_type", pass_type_id)
    team_id = _subject(leaf, NameOID.ORGANIZATIONAL_UNIT_NAME)
    if given.team_id and given.team_id != team_id:
        raise _refusal("other_team", team_id)
    if found.key is None:
        raise _refusal("no_key")
    if _public_bytes(found.key.public_key()) != _public_bytes(leaf.public_key()):
        raise _refusal("other_key")
    _check_strength(found.key)
    now = datetime.fromtimestamp(now_us // US_PER_S, UTC)
    if leaf.not_valid_after_utc <= now:
        raise _refusal("expired", f"{leaf.not_valid_after_utc:%Y-%m-%d}")
    if leaf.not_valid_before_utc > now:
        raise _refusal("not_yet_valid", f"{leaf.not_valid_before_utc:%Y-%m-%d}")
    issuer = _find_issuer(leaf, [*found.certificates, *_read_intermediate(given)], uploaded=bool(given.intermediate))
    if issuer.not_valid_after_utc <= now:
        raise _refusal("intermediate_expired", f"{issuer.not_valid_after_utc:%Y-%m-%d}")
    ends = min(leaf.not_valid_after_utc, issuer.not_valid_after_utc)
    signer = AppleSigner(_pem(leaf), _private_pem(found.key), _pem(issuer))
    return AppleKeys(pass_type_id, team_id, int(ends.timestamp()) * US_PER_S, signer)


def read_google_keys(given: GoogleKeysGiven) -> GoogleKeys:
    """The keys, or an `InvalidInput` that says what is wrong with which field."""
    if not _ISSUER_ID.fullmatch(given.issuer_id):
        raise _refusal("bad_issuer_id")
    try:
        account = msgspec.json.decode(given.service_account, type=_ServiceAccount)
    except (msgspec.DecodeError, ValueError):
        raise _refusal("bad_service_account", "it has no type, client_email and private_key") from None
    if account.type != "service_account":
        raise _refusal("bad_service_account", "its type is another one")
    if not _EMAIL.fullmatch(account.client_email):
        raise _refusal("bad_service_account", "its client_email is no address")
    try:
        key = serialization.load_pem_private_key(account.private_key.encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise _refusal("bad_service_account", "its private_key cannot be read") from None
    if not isinstance(key, RSAPrivateKey) or not MIN_RSA_BITS <= key.key_size <= MAX_RSA_BITS:
        raise _refusal("bad_service_account", "its private_key is not RSA of 2048 to 4096 bits")
    return GoogleKeys(given.issuer_id, account.client_email, GoogleSigner(_private_pem(key)))


def _refusal(reason: str, found: str = "") -> InvalidInput:
    param, message = _REFUSALS[reason]
    return InvalidInput(message.format(found=found[:100] or "nobody"), param=param, reason=reason, found=found[:100])


def _open_files(given: AppleKeysGiven) -> _Found:
    """The certificates of the upload and the key, wherever it is."""
    password = given.password.encode() or None
    certificates = _read_certificates(given.certificate)
    if certificates:
        block = _KEY_BLOCK.search(given.key) or _KEY_BLOCK.search(given.certificate)
        if given.key and block is None:
            raise _refusal("bad_key")
        return _Found(_read_key(block.group(), password) if block else None, certificates)
    try:
        key, leaf, others = pkcs12.load_key_and_certificates(given.certificate, password)
    except UnsupportedAlgorithm:
        raise _refusal("unreadable") from None
    except ValueError as error:
        raise _refusal("wrong_password" if "password" in str(error).lower() else "unreadable") from None
    return _Found(key, [one for one in (leaf, *others[:MAX_CERTIFICATES]) if one is not None])


def _read_certificates(raw: bytes) -> list[x509.Certificate]:
    """The certificates of a PEM or DER file; none if it is something else."""
    try:
        if b"-----BEGIN" in raw:
            return x509.load_pem_x509_certificates(raw)[:MAX_CERTIFICATES]
        return [x509.load_der_x509_certificate(raw)]
    except ValueError:
        return []


def _read_key(block: bytes, password: bytes | None) -> Any:
    try:
        return serialization.load_pem_private_key(block, password)
    except TypeError:  # it is sealed and there is no password, or the other way round
        if password is None:
            raise _refusal("wrong_password") from None
        return _read_key(block, None)
    except (ValueError, UnsupportedAlgorithm):
        raise _refusal("wrong_password" if password is not None else "bad_key") from None


def _check_strength(key: Any) -> None:
    if isinstance(key, RSAPrivateKey) and MIN_RSA_BITS <= key.key_size <= MAX_RSA_BITS:
        return
    if not isinstance(key, EllipticCurvePrivateKey) or key.curve.name != "secp256r1":
        raise _refusal("bad_key")


def _pass_certificate(certificates: Sequence[x509.Certificate]) -> tuple[x509.Certificate, str]:
    """The certificate of a pass type, and which."""
    for one in certificates:
        user_id = _subject(one, NameOID.USER_ID)
        if user_id.startswith(UID_START):
            return one, user_id
    raise _refusal("no_pass_type")


def _subject(certificate: x509.Certificate, oid: x509.ObjectIdentifier) -> str:
    found = certificate.subject.get_attributes_for_oid(oid)
    return str(found[0].value)[:100] if found else ""


def _read_intermediate(given: AppleKeysGiven) -> list[x509.Certificate]:
    if not given.intermediate:
        return []
    found = _read_certificates(given.intermediate)
    if not found:
        raise _refusal("bad_intermediate")
    return found


def _find_issuer(leaf: x509.Certificate, others: Sequence[x509.Certificate], *, uploaded: bool) -> x509.Certificate:
    """The certificate that issued the leaf. A certificate that issued itself comes from no authority."""
    for one in others:
        if one != leaf and _issued(one, leaf):
            return one
    names = leaf.issuer.get_attributes_for_oid(NameOID.COMMON_NAME)
    raise _refusal("other_intermediate" if uploaded else "no_intermediate", str(names[0].value) if names else "")


def _issued(issuer: x509.Certificate, leaf: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(issuer)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _public_bytes(key: Any) -> bytes:
    return bytes(key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo))


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _private_pem(key: Any) -> str:
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return bytes(pem).decode()
