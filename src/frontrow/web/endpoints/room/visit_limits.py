"""Counts requests: people with a valid pass by their visit, everybody else by their address.

A campus, an office or a mobile network may share one address. The pass must be genuine, alive and not ended, else the
request counts for its address. All texts of one visit, from all addresses, count together.
"""

from frontrow.core.errors import FrontrowError
from frontrow.shared.cookie_headers import names_to_read, read_cookie
from frontrow.waitingroom.credentials.passes import MAX_PASS_CHARS, Pass
from frontrow.waitingroom.entrance.person_and_address_limits import EntranceLimits
from frontrow.waitingroom.protect.guard import PASS_COOKIES
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.web.http.messages import EndpointRequest

MAX_COOKIES = 4_096
OTHER_TOKENS = (b"frb_", b"frs_", b"frk_")  # booking tokens, sessions, API keys


class VisitLimits:
    """Reads what may be a pass, and counts the request that carries it."""

    def __init__(self, room: WaitingRoom, limiter: EntranceLimits, *, secure: bool = False) -> None:
        self._room, self._limiter, self._cookies = room, limiter, names_to_read(PASS_COOKIES, secure=secure)
        self._read_cookies: dict[bytes, str] = {}  # the last headers -> their pass: a browser sends the same again

    def count(self, request: EndpointRequest) -> None:
        """Count a request by its visit or its address. Raises `TooManyRequests`."""
        text = self.find_pass(request)[0]
        if text:
            self.count_pass(text, request)
        else:
            self._limiter.count_ip(ip_of(self._limiter, request))

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
        bearer = header = cookie = None
        for name, value in request.headers:  # once: every request of the shop comes through here
            size = len(name)
            if size == 13:  # both names have 13 letters
                low = name.lower()
                if low == b"authorization" and bearer is None:
                    bearer = value
                elif low == b"frontrow-pass" and header is None:
                    header = value
            elif size == 6 and cookie is None and name.lower() == b"cookie":
                cookie = value
        if bearer is not None and bearer[:7].lower() == b"bearer " and not bearer[7:].startswith(OTHER_TOKENS):
            return bearer[7 : 8 + MAX_PASS_CHARS].decode("latin-1").strip(), False
        if header is not None:
            return header[: 1 + MAX_PASS_CHARS].decode("latin-1").strip(), False
        if cookie is None or b"frontrow" not in cookie:
            return "", False
        text = self._read_cookies.get(cookie)
        if text is None:
            text = read_cookie(cookie.decode("latin-1"), self._cookies)
            if len(self._read_cookies) >= MAX_COOKIES:
                self._read_cookies.clear()
            if len(cookie) <= MAX_PASS_CHARS:
                self._read_cookies[cookie] = text
        return text, True


def ip_of(limiter: EntranceLimits, request: EndpointRequest) -> str:
    """The key of the caller's address. `X-Forwarded-For` is read only from trusted proxies."""
    if limiter.trusts_nobody:
        return limiter.ip_of(request.peer)
    return limiter.ip_of(request.peer, [value.decode("latin-1") for value in request.all(b"x-forwarded-for")])
