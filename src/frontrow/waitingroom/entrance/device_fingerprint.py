"""What tells devices apart at the entrance: a short hash of the headers that a browser sends.

It is a signal and never a verdict: a device that asks for many challenges gets harder work
(`suspicion`).
"""

import hashlib
from collections.abc import Sequence

FINGERPRINT_HEADERS = (b"user-agent", b"accept-language", b"accept-encoding", b"sec-ch-ua", b"sec-ch-ua-platform")


def fingerprint(headers: Sequence[tuple[bytes, bytes]], ip: str) -> str:
    """A short hash of the headers a browser sends. A device always has the same; several devices may share one."""
    values = {name.lower(): value for name, value in headers}
    order = b",".join(name.lower() for name, _ in headers if not name.lower().startswith((b"cookie", b"content-")))
    parts = [values.get(name, b"")[:512] for name in FINGERPRINT_HEADERS]
    return hashlib.blake2b(b"\0".join([ip.encode(), order[:1024], *parts]), digest_size=12).hexdigest()
