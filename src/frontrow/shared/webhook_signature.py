"""The signature of our webhooks: `Frontrow-Signature: t=<unix seconds>,v1=<hex HMAC-SHA256 of "t.body">`. Pure.

The server signs with the secret of the webhook. Receivers check with the same secret and refuse old times.
"""

import hashlib
import hmac
from typing import Final

TOLERANCE_S: Final = 300


def signature(secret: str, body: bytes, at_s: int) -> str:
    """The signature header of a body sent at this time."""
    return f"t={at_s},v1={_mac(secret, body, at_s)}"


def is_signed(header: str, secret: str, body: bytes, now_s: int, tolerance_s: int = TOLERANCE_S) -> bool:
    """Whether the header is a recent signature of this body with this secret."""
    try:
        fields = dict(part.split("=", 1) for part in header.split(","))
        at_s = int(fields["t"])
    except (ValueError, KeyError):
        return False
    fresh = abs(now_s - at_s) <= tolerance_s
    return fresh and hmac.compare_digest(_mac(secret, body, at_s).encode(), fields.get("v1", "").encode())


def _mac(secret: str, body: bytes, at_s: int) -> str:
    return hmac.new(secret.encode(), f"{at_s}.".encode() + body, hashlib.sha256).hexdigest()
