"""The consent to a storm: a signed token that names one event and an end. It is made with the platform's secret key.

`frontrow storm` puts real load on a server. It asks the server first, and the server agrees only to a token of its own.
So a storm cannot reach a server whose operator did not ask for it, nor another event than the one that was meant.
"""

import base64
import hashlib
import hmac
from dataclasses import dataclass
from typing import Final

from frontrow.core.clock import US_PER_S
from frontrow.core.errors import Forbidden
from frontrow.shared.derived_keys import Secrets

STORM_PREFIX: Final = "frt_"
MAC_BYTES: Final = 16
MAX_CHARS: Final = 200
_PURPOSE: Final = "storm consent"


class StormRefused(Forbidden):
    code = "storm_refused"


@dataclass(frozen=True, slots=True)
class StormConsent:
    """Which event may be stormed, and until when."""

    event_id: str
    until_s: int


def write_consent(secrets: Secrets, consent: StormConsent) -> str:
    """The token: `frt_<event>.<end in seconds>.<signature>`."""
    signed = f"{consent.event_id}.{consent.until_s}"
    return f"{STORM_PREFIX}{signed}.{_sign(secrets, signed)}"


def read_consent(secrets: Secrets, token: str, now_us: int) -> StormConsent:
    """The consent in a token of this platform. Raises `StormRefused` if it is not one, or if it has ended."""
    signed, _, mac = token.removeprefix(STORM_PREFIX).rpartition(".")
    if not (len(token) <= MAX_CHARS and token.isascii() and token.startswith(STORM_PREFIX)) or not hmac.compare_digest(
        mac, _sign(secrets, signed)
    ):
        raise StormRefused(
            "this token is not of this server; make one where its secret key is, with `frontrow storm-token`"
        )
    event_id, _, until = signed.rpartition(".")
    consent = StormConsent(event_id, int(until))
    if now_us >= consent.until_s * US_PER_S:
        raise StormRefused("this token has ended; make a new one with `frontrow storm-token`")
    return consent


def _sign(secrets: Secrets, signed: str) -> str:
    digest = hmac.new(secrets.key(_PURPOSE), signed.encode(), hashlib.sha256).digest()[:MAC_BYTES]
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
