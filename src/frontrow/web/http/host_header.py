"""The `Host` of a request: refused where the framework could not read it."""

import re
from collections.abc import Sequence

from frontrow.core.errors import InvalidInput

HOST = re.compile(rb"(?:\[[0-9A-Fa-f:.]+\]|[\w.~-]*)(?::(\d{0,5}))?")


class BadHost(InvalidInput):
    """The `Host` header is no host, and no link could be made of it."""

    code = "bad_request"
    http_status = 400


def is_host(value: bytes) -> bool:
    """Whether a `Host` is a name or an address, with a port or without."""
    found = HOST.fullmatch(value)
    return found is not None and int(found[1] or 0) <= 65_535


def check_host(headers: Sequence[tuple[bytes, bytes]]) -> None:
    """Refuse a `Host` that the framework could not read."""
    for name, value in headers:
        if name == b"host" and not is_host(value):
            raise BadHost("Host must be a name or an address, like tickets.example.org:443", param="Host")
