"""A room's keys: secrets of the places, RSA keys of the passes, the Ed25519 key of the now-serving document, and the
master secret from which draws and codes are derived. The first start generates them in one folder that only the owner
can read."""

import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from frontrow.core.errors import ConfigError
from frontrow.waitingroom.credentials import passes

SECRET_BYTES = 32


class _Packed(msgspec.Struct, frozen=True):
    """All keys as one text, for a store that encrypts it."""

    places: tuple[bytes, ...]
    passes: tuple[str, ...]
    document: bytes
    master: bytes


@dataclass(frozen=True, slots=True)
class RoomKeys:
    """The newest key of each kind is the first. All processes of the same rooms need the same keys."""

    place_secrets: tuple[bytes, ...] = field(repr=False)
    pass_keys: tuple[RSAPrivateKey, ...] = field(repr=False)
    document_key: Ed25519PrivateKey = field(repr=False)
    master_secret: bytes = field(repr=False)

    @classmethod
    def generate(cls) -> "RoomKeys":
        """Fresh keys."""
        return cls(
            (secrets.token_bytes(SECRET_BYTES),),
            (passes.new_key(),),
            Ed25519PrivateKey.generate(),
            secrets.token_bytes(SECRET_BYTES),
        )

    @classmethod
    def load(cls, folder: str | Path) -> "RoomKeys":
        """The keys in `folder`, generated if it is empty. `place-*.key`, `pass-*.pem`: the last name is the newest."""
        home = Path(folder)
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not (home / "master.key").exists():
            cls.generate().save(home)
        try:
            return cls(
                tuple(path.read_bytes() for path in sorted(home.glob("place-*.key"), reverse=True)),
                tuple(passes.from_pem(path.read_bytes()) for path in sorted(home.glob("pass-*.pem"), reverse=True)),
                Ed25519PrivateKey.from_private_bytes((home / "document.key").read_bytes()),
                (home / "master.key").read_bytes(),
            )
        except (OSError, ValueError) as error:
            raise ConfigError(f"the room's keys in {home} cannot be read: {error}") from error

    def packed(self) -> str:
        """All keys as one text: a secret."""
        pems = tuple(passes.to_pem(key).decode() for key in self.pass_keys)
        whole = _Packed(self.place_secrets, pems, self.document_key.private_bytes_raw(), self.master_secret)
        return msgspec.json.encode(whole).decode()

    @classmethod
    def unpacked(cls, text: str) -> "RoomKeys":
        """The keys of `packed`."""
        whole = msgspec.json.decode(text, type=_Packed)
        pems = tuple(passes.from_pem(pem.encode()) for pem in whole.passes)
        return cls(whole.places, pems, Ed25519PrivateKey.from_private_bytes(whole.document), whole.master)

    def rotated(self, *, keep: int = 2) -> "RoomKeys":
        """These keys with new ones for places and passes; what the last `keep` keys signed stays valid. The document's
        key and the master secret stay: mirrors pin the first, draws and codes are derived from the second."""
        fresh = RoomKeys.generate()
        return RoomKeys(
            (*fresh.place_secrets, *self.place_secrets[:keep]),
            (*fresh.pass_keys, *self.pass_keys[:keep]),
            self.document_key,
            self.master_secret,
        )

    def save(self, folder: Path) -> None:
        """Write all keys; `master.key` last, so a half-written folder is written again."""
        for number, secret in enumerate(reversed(self.place_secrets), 1):
            _write(folder / f"place-{number:04}.key", secret)
        for number, key in enumerate(reversed(self.pass_keys), 1):
            _write(folder / f"pass-{number:04}.pem", passes.to_pem(key))
        _write(folder / "document.key", self.document_key.private_bytes_raw())
        _write(folder / "master.key", self.master_secret)


def _write(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
