"""Counts requests: people with a valid pass by their visit, everybody else by their address.

A campus, an office or a mobile network may share one address. The pass must be genuine, alive and not ended, else the
request counts for its address. All texts of one visit, from all addresses, count together.
"""

from frontrow.core.errors import FrontrowError
from frontrow.shared.cookies import names_to_read, read_cookie
from frontrow.waitingroom.credentials.passes import MAX_PASS_CHARS, Pass
from frontrow.waitingroom.entrance.entrance_limits import EntranceLimits
from frontrow.waitingroom.protect.guard import PASS_COOKIES
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.web.http.messages import EndpointRequest

OTHER_TOKENS = (b"frb_", b"frs_", b"frk_")  # booking tokens, sessions, API keys


class VisitLimits:
    """Reads what may be a pass, and counts the request that carries it."""

    def __init__(self, room: WaitingRoom, limiter: EntranceLimits, *, secure: bool = False) -> None:
        self._room, self._limiter, self._cookies = room, limiter, names_to_read(PASS_COOKIES, secure=secure)

    def count(self, request: EndpointRequest) -> None:
        """Count a request by its visit or its address. Raises `TooManyRequests`."""
        self.count_pass(self.find_pass(request)[0], request)

    def count_pass(self, text: str, request: EndpointRequest) -> Pass | None:
        """`count` for a pass that was found. The pass, if it is valid for any event; a forged, expired or ended one
        counts as none. A text that this process has not read before may cost a signature check, so it is counted."""
        limiter = self._limiter
        ip = ip_of(limiter, request)
        if not text:
            limiter.count_ip(ip)
            return None
        if not self._room.passes.is_cached(text):
            limiter.count_unread_pass(ip)
        try:
            visit = self._room.visits.check_pass(text)
        except FrontrowError:
            limiter.count_ip(ip)
            return None
        limiter.count_visit(visit.id, ip)
        return visit

    def find_pass(self, request: EndpointRequest) -> tuple[str, bool]:
        """What may be a pass, and whether it came in a cookie."""
        given = request.header(b"authorization")
        if given is not None and given[:7].lower() == b"bearer " and not given[7:].startswith(OTHER_TOKENS):
            return given[7 : 8 + MAX_PASS_CHARS].decode("latin-1").strip(), False
        header = request.header(b"frontrow-pass")
        if header is not None:
            return header[: 1 + MAX_PASS_CHARS].decode("latin-1").strip(), False
        cookie = request.header(b"cookie")
        if cookie is None or b"frontrow" not in cookie:
            return "", False
        return read_cookie(cookie.decode("latin-1"), self._cookies), True


def ip_of(limiter: EntranceLimits, request: EndpointRequest) -> str:
    """The key of the caller's address. `X-Forwarded-For` is read only from trusted proxies."""
    if limiter.trusts_nobody:
        return limiter.ip_of(request.peer)
    return limiter.ip_of(request.peer, [value.decode("latin-1") for value in request.all(b"x-forwarded-for")])
