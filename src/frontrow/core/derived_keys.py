"""Derives one key per purpose from the platform's secret key."""

import hashlib
import hmac


class Secrets:
    """Derives one key per purpose from the secret key. Its `repr` reveals nothing."""

    def __init__(self, master: bytes) -> None:
        self._master = master

    def key(self, purpose: str) -> bytes:
        """The 32-byte key of this purpose, the same on every server with this secret key."""
        return hmac.new(self._master, b"frontrow/" + purpose.encode(), hashlib.sha256).digest()

    def __repr__(self) -> str:
        return "Secrets(…)"
