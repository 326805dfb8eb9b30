"""Seals (encrypts) short texts that somebody who only has the ledger must not read: TOTP secrets, links in mails.

AES-256-GCM with a key derived from the platform's secret key. The purpose of a sealed text is authenticated with it, so
it cannot be moved to another row or another use. The first key seals; older keys only open.
"""

import base64
import hashlib
import os
from collections.abc import Sequence
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from frontrow.core.errors import ConfigError, Refused

MIN_KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
MAX_SEALED_CHARS: Final = 20_000


class SealBroken(Refused):
    """This text was not sealed here, or was sealed for another purpose."""

    code = "seal_broken"


class Vault:
    """Seals and opens short texts."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not keys or any(len(key) < MIN_KEY_BYTES for key in keys):
            raise ConfigError(f"sealing needs a key of {MIN_KEY_BYTES} bytes or more")
        self._boxes = [AESGCM(hashlib.sha256(b"frontrow vault" + key).digest()) for key in keys]

    def seal(self, text: str, purpose: str) -> str:
        nonce = os.urandom(NONCE_BYTES)
        sealed = self._boxes[0].encrypt(nonce, text.encode(), purpose.encode())
        return base64.urlsafe_b64encode(nonce + sealed).decode().rstrip("=")

    def open(self, sealed: str, purpose: str, *, most_chars: int = MAX_SEALED_CHARS) -> str:
        """The text, or SealBroken."""
        try:
            if len(sealed) > most_chars:
                raise ValueError
            raw = base64.urlsafe_b64decode(sealed + "=" * (-len(sealed) % 4))
        except ValueError:
            raise SealBroken("this was not sealed here") from None
        for box in self._boxes:
            try:
                return box.decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], purpose.encode()).decode()
            except (InvalidTag, ValueError):
                continue
        raise SealBroken("this was not sealed here")

    def __repr__(self) -> str:
        return "Vault(…)"
