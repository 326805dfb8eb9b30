"""Keys for each purpose, derived from the platform's one secret key."""

import hashlib
import hmac


class Secrets:
    """Keys for each purpose, all made from the one secret key; shows nothing of itself."""

    def __init__(self, master: bytes) -> None:
        self._master = master

    def key(self, purpose: str) -> bytes:
        """32 bytes that only this purpose knows, the same on every server with this secret key."""
        return hmac.new(self._master, b"frontrow/" + purpose.encode(), hashlib.sha256).digest()

    def __repr__(self) -> str:
        return "Secrets(…)"
