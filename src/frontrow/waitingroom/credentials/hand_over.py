"""Sealed texts of the hand-over to a shop on another domain.

A **handed visit** is in a cookie of the room: it says that this browser was admitted, so it can be handed over again. A
**hand-over** is in the URL that leads to the shop: one time, for a minute, for one shop, for the browser that knows the
verifier of `bind`. Both are encrypted (AES-256-GCM), because URLs end up in logs. The kind and version are part of what
is sealed, so one kind is never read as the other.
"""

import binascii
import hashlib
import hmac
import os
import re
from collections.abc import Sequence
from typing import Any, Final, TypeVar

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from frontrow.core.errors import ConfigError
from frontrow.waitingroom.credentials.places import b64, unb64
from frontrow.waitingroom.model.errors import HandOverInvalid
from frontrow.waitingroom.ports import PlaceKey

HAND_OVER_S: Final = 60
MAX_SEALED_CHARS: Final = 1_024
MAX_VERIFIER_CHARS: Final = 128
_NONCE_BYTES = 12
_BIND = re.compile(r"[A-Za-z0-9_-]{43}\Z")
_SEALED = re.compile(r"[A-Za-z0-9_-]{40,1024}\Z")


class HandedVisit(msgspec.Struct, frozen=True, array_like=True):
    """The visit of the browser that keeps this text. The store knows how long it lasts."""

    event: str
    lane: int
    epoch: int
    position: int
    person: str
    since_s: int
    jkt: str = ""

    @property
    def place(self) -> PlaceKey:
        return PlaceKey(self.lane, self.epoch, self.position)


class ShopHandOver(msgspec.Struct, frozen=True, array_like=True):
    """One way into `shop` for the browser that knows the verifier of `bind`. A room that was rebuilt has another
    `room_epoch` and refuses it."""

    visit: HandedVisit
    shop: str
    bind: str
    room_epoch: int
    expires_s: int


Sealed = TypeVar("Sealed", HandedVisit, ShopHandOver)
_KINDS: dict[type, bytes] = {HandedVisit: b"frontrow handed visit 1", ShopHandOver: b"frontrow hand-over 1"}
_encode = msgspec.json.Encoder().encode
_decoders: dict[type, msgspec.json.Decoder[Any]] = {kind: msgspec.json.Decoder(kind) for kind in _KINDS}


class HandOverSealer:
    """Seals with the first secret and opens with all, so a secret can be replaced while people are on their way."""

    def __init__(self, secrets: Sequence[bytes]) -> None:
        if not secrets:
            raise ConfigError("hand-overs need at least one secret")
        self._keys = [AESGCM(hashlib.sha256(b"frontrow hand-over key" + secret).digest()) for secret in secrets]

    def seal(self, value: HandedVisit | ShopHandOver) -> str:
        """The text of a value. Two texts of the same value differ."""
        nonce = os.urandom(_NONCE_BYTES)
        return b64(nonce + self._keys[0].encrypt(nonce, _encode(value), _KINDS[type(value)])).decode()

    def open(self, text: str, kind: type[Sealed]) -> Sealed:
        """The value, if one of our secrets sealed exactly this text as this kind. Raises HandOverInvalid."""
        try:
            raw = unb64(text.encode()) if _SEALED.match(text) else b""
            if b64(raw) != text.encode():  # the unused bits of the last character
                raise ValueError("another text of the same bytes")
            for key in self._keys:
                try:
                    plain = key.decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], _KINDS[kind])
                except InvalidTag:
                    continue
                return _decoders[kind].decode(plain)  # type: ignore[no-any-return]
        except (ValueError, binascii.Error, msgspec.MsgspecError):
            pass
        raise HandOverInvalid("this way into the shop was not issued here; go through the waiting room")


def id_of(text: str) -> str:
    """What names a sealed text among all others: its nonce."""
    return text[:16]


def is_bind(text: str) -> bool:
    """Whether this can be the hash of a verifier."""
    return bool(_BIND.match(text))


def bind_of(verifier: str) -> str:
    """The hash that binds a hand-over to the browser that keeps `verifier`."""
    return b64(hashlib.sha256(verifier.encode()).digest()).decode()


def fits(verifier: str, bind: str) -> bool:
    """Whether this verifier belongs to `bind`."""
    return len(verifier) <= MAX_VERIFIER_CHARS and hmac.compare_digest(bind_of(verifier).encode(), bind.encode())
