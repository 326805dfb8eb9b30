"""For receivers of webhooks: is this delivery from the server, and new?"""

import time

from frontrow.shared.webhook_signature import TOLERANCE_S, is_signed


def check_signature(
    header: str | None, secret: str, body: bytes, *, now_s: float | None = None, tolerance_s: int = TOLERANCE_S
) -> bool:
    """Whether `header` (the request's `Frontrow-Signature`) is a recent signature of `body` with the webhook's secret.

    `body` is what was received, byte for byte, before any JSON is read. Answer 400 if this is false.
    """
    now = time.time() if now_s is None else now_s
    return header is not None and is_signed(header, secret, body, int(now), tolerance_s)
