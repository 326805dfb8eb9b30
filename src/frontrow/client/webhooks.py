"""For receivers of webhooks: is this delivery from the server, and new?"""

import time

from frontrow.core.clock import US_PER_S
from frontrow.shared.webhook_signature import TOLERANCE_S, BadSignature
from frontrow.shared.webhook_signature import check_signature as check_or_raise


def check_signature(
    header: str | None, secret: str, body: bytes, *, now_s: float | None = None, tolerance_s: int = TOLERANCE_S
) -> bool:
    """Whether `header` (the request's `Frontrow-Signature`) is a recent signature of `body` with the webhook's secret.

    `body` is what was received, byte for byte, before any JSON is read. Answer 400 if this is false.
    """
    now = time.time() if now_s is None else now_s
    try:
        check_or_raise(body, header or "", secret, int(now) * US_PER_S, tolerance_s)
    except BadSignature:
        return False
    return True
