"""The keys that sign tickets (Ed25519): a key ring with one signing key and the public keys of earlier ones.

The ring is a JSON file that only its owner can read. Signing needs the seed; a gate gets only the public keys. When
the key is changed (`rotated`), tickets signed before stay valid.
"""

import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from frontrow.core.errors import ConfigError

KEY_ID_BYTES: Final = 4
SEED_BYTES: Final = 32


class _KeyFile(msgspec.Struct):
    """The content of the key file: the signing seed and the public keys of former ones, in hex."""

    seed: str
    former: list[str] = []


class VerifyingKeys:
    """Public keys by key id. A gate needs only these to verify signatures."""

    def __init__(self, public: Mapping[bytes, bytes]) -> None:
        self.public = dict(public)
        self._keys = {kid: Ed25519PublicKey.from_public_bytes(raw) for kid, raw in self.public.items()}

    @classmethod
    def of(cls, *public: bytes) -> "VerifyingKeys":
        return VerifyingKeys({key_id(raw): raw for raw in public})

    def __contains__(self, kid: bytes) -> bool:
        return kid in self._keys

    def signed(self, kid: bytes, message: bytes, signature: bytes) -> bool:
        """Whether the key with that id signed the message."""
        key = self._keys.get(kid)
        if key is None:
            return False
        try:
            key.verify(signature, message)
        except InvalidSignature:
            return False
        return True


class TicketKeys:
    """The key ring: signs with its newest key, verifies with all."""

    def __init__(self, seed: bytes, former: tuple[bytes, ...] = ()) -> None:
        if len(seed) != SEED_BYTES:
            raise ConfigError(f"a ticket key is {SEED_BYTES} bytes, not {len(seed)}", param="ticket_key")
        self._seed = seed
        self._private = Ed25519PrivateKey.from_private_bytes(seed)
        self.former = former
        self.public = self._private.public_key().public_bytes_raw()
        self.kid = key_id(self.public)
        self.verifying = VerifyingKeys.of(self.public, *former)
        self.number_secret = hmac.digest(seed, b"frontrow ticket number\0", hashlib.sha256)  # makes tickets' ids

    def __repr__(self) -> str:
        return f"TicketKeys({self.kid.hex()})"

    @classmethod
    def fresh(cls) -> Self:
        return cls(secrets.token_bytes(SEED_BYTES))

    def rotated(self, seed: bytes | None = None) -> "TicketKeys":
        """A ring with a new signing key. Tickets signed by this ring stay valid."""
        return TicketKeys(seed or secrets.token_bytes(SEED_BYTES), (self.public, *self.former))

    def sign(self, message: bytes) -> bytes:
        return self._private.sign(message)

    def rotating_secret(self, event_id: str) -> bytes:
        """The secret for the rotating codes of an event. Only the gates of this event have it."""
        return hmac.digest(self._seed, b"frontrow rotating code\0" + event_id.encode(), hashlib.sha256)

    @classmethod
    def opened(cls, path: Path) -> "TicketKeys":
        """The ring in this file, created on first use. Two processes that start at once get the same ring."""
        if not path.exists():
            _create(path, _KeyFile(secrets.token_hex(SEED_BYTES)))
        try:
            return cls.unpacked(path.read_bytes())
        except (msgspec.DecodeError, ValueError) as error:
            raise ConfigError(f"{path} does not contain ticket keys: {error}", param="ticket_keys") from None

    def packed(self) -> str:
        """The ring as one text. Keep it secret."""
        return msgspec.json.encode(_KeyFile(self._seed.hex(), [raw.hex() for raw in self.former])).decode()

    @classmethod
    def unpacked(cls, text: str | bytes) -> "TicketKeys":
        """The ring of `packed`."""
        content = msgspec.json.decode(text, type=_KeyFile)
        return cls(bytes.fromhex(content.seed), tuple(map(bytes.fromhex, content.former)))


def _create(path: Path, content: _KeyFile) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.draft")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.encode(content))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)  # fails when another process was first: then its file counts
        except FileExistsError:
            return
    finally:
        draft.unlink()


def key_id(public: bytes) -> bytes:
    """The short id of a key in ticket codes."""
    return hashlib.sha256(public).digest()[:KEY_ID_BYTES]
