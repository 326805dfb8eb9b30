"""Derives one key per purpose from the platform's secret key."""

import hashlib
import hmac


class Secrets:
    """Derives one key per purpose from the secret key. Its `repr` reveals nothing."""

    def __init__(self, master: bytes) -> None:
        self._master = master
        self._keys: dict[str, bytes] = {}  # the purposes are few, and some are needed by every request

    def key(self, purpose: str) -> bytes:
        """The 32-byte key of this purpose, the same on every server with this secret key."""
        found = self._keys.get(purpose)
        if found is None:
            found = self._keys[purpose] = hmac.digest(self._master, b"frontrow/" + purpose.encode(), hashlib.sha256)
        return found

    def __repr__(self) -> str:
        return "Secrets(…)"
