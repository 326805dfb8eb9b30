"""The signature of a webhook: `t=<unix seconds>,v1=<hex HMAC-SHA256 of "t.body">`. Pure.

Our webhooks to organisers carry it as `Frontrow-Signature`, Stripe's to us as `Stripe-Signature`. Sender and receiver
share a secret, and a receiver refuses old times. The time is an argument, so that simulations and tests can move it;
stripe-python reads the wall clock. A test lets Stripe's library accept what this module signs.
"""

import hashlib
import hmac
from typing import Final

from frontrow.core.clock import US_PER_S
from frontrow.core.errors import Unauthorised

TOLERANCE_S: Final = 300
MAX_PARTS: Final = 16


class BadSignature(Unauthorised):
    code = "bad_signature"


def sign(body: bytes, secret: str, now_us: int) -> str:
    """The signature header of `body` sent at `now_us`."""
    at_s = now_us // US_PER_S
    return f"t={at_s},v1={_mac(body, secret, at_s)}"


def check_signature(body: bytes, header: str, secret: str, now_us: int, tolerance_s: int = TOLERANCE_S) -> None:
    """Raise `BadSignature` unless one of the header's signatures is right and its time is recent."""
    parts = [part.strip().partition("=") for part in header.split(",")[:MAX_PARTS]]
    stamps = [value for name, _, value in parts if name == "t"]
    if len(stamps) != 1 or not (stamps[0].isascii() and stamps[0].isdigit() and len(stamps[0]) <= 12):
        raise BadSignature("the webhook has no readable signature")
    at_s = int(stamps[0])
    wanted = _mac(body, secret, at_s)
    given = [value for name, _, value in parts if name == "v1"]
    if not any(hmac.compare_digest(wanted.encode(), value.encode()) for value in given):
        raise BadSignature("the webhook's signature is wrong; check the signing secret")
    if abs(now_us // US_PER_S - at_s) > tolerance_s:
        raise BadSignature(f"the webhook is older or newer than {tolerance_s} s; check the clock")


def _mac(body: bytes, secret: str, at_s: int) -> str:
    return hmac.new(secret.encode(), str(at_s).encode() + b"." + body, hashlib.sha256).hexdigest()
