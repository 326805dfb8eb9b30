"""The id of a request: taken over from a trusted proxy, else made here; log lines carry it."""

import itertools
import re
import secrets
from collections.abc import Sequence
from contextvars import ContextVar

from frontrow.waitingroom.entrance.person_and_address_limits import EntranceLimits

REQUEST_ID = re.compile(rb"[A-Za-z0-9_.:-]{1,64}\Z")
request_id: ContextVar[str] = ContextVar(
    "request_id", default=""
)  # of the request that this task answers, for log lines


class RequestIds:
    """Makes ids that are short, unique over all servers and cheap."""

    def __init__(self, entry: EntranceLimits) -> None:
        self._prefix = secrets.token_hex(5).encode()
        self._numbers = itertools.count(1)
        self._entry = entry

    def of(self, headers: Sequence[tuple[bytes, bytes]], peer: str) -> bytes:
        """The proxy's id if a proxy of ours sent the request, else a new one."""
        if not self._entry.trusts_nobody and self._entry.is_proxy(peer):
            for name, value in headers:
                if len(name) == 12 and name.lower() == b"x-request-id" and REQUEST_ID.match(value):
                    return value
        return b"%s%x" % (self._prefix, next(self._numbers))
