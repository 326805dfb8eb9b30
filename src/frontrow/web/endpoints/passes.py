"""The pass of a request, from a header or a cookie. In a cookie it counts only for our own pages."""

import contextlib
import zlib

from frontrow.boxoffice.checkout.purchases import Purchases
from frontrow.boxoffice.holds.model.holds import ShopPass
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import Forbidden, FrontrowError, Unauthorised
from frontrow.shared.cookies import names_to_read, read_cookie
from frontrow.waitingroom.credentials.passes import MAX_PASS_CHARS, Pass
from frontrow.waitingroom.ports import PlaceKey
from frontrow.waitingroom.protect.guard import PASS_COOKIES
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.web.http.messages import EndpointRequest

OTHER_TOKENS = (b"frb_", b"frs_", b"frk_")  # booking tokens, sessions, API keys


class ForeignPage(Forbidden):
    """A cookie came with a request that another site made."""

    code = "cross_site"


class Passes:
    """Reads the passes of requests, and gives passes to who needs no place."""

    def __init__(self, room: WaitingRoom, *, secure: bool = False) -> None:
        self._room, self._cookies = room, names_to_read(PASS_COOKIES, secure=secure)

    def of(self, event_id: str, request: EndpointRequest) -> ShopPass:
        """The pass for this event that came with the request, or 401 saying why not."""
        text = self._text(request)
        if not text:
            raise Unauthorised("a pass for this event is needed; join its waiting room", event=event_id)
        visit = self._room.visits.check_pass(text, event_id)
        self._room.visits.hear(visit.id)
        return ShopPass(visit.event, visit.person, visit.expires_s * US_PER_S, visit.id, bool(visit.place.epoch))

    async def end_bought(self, visit: ShopPass, purchases: Purchases) -> None:
        """End a visit of which the ledger says that it has bought its tickets, so that its visitor can come in again.

        Usually the box office has told the room already. It has not if the purchase took less than a second. Another
        hold of the same visit that is alive keeps it.
        """
        with contextlib.suppress(FrontrowError):  # the visit ends by itself, later
            if await purchases.held_by(visit.event_id, visit.fan) is None:
                await self._room.visits.end_visit(visit.id)

    def beside_the_line(self, event_id: str, person: str, why: str, since_us: int = 0) -> tuple[str, int]:
        """A pass for somebody who needs no place (an offer, priority) and when it ends; the same again is the same.

        `since_us`: when it was first asked for, where one pass is all there is; else it counts from now. Its place is
        of epoch 0, which no room has: renewing it is refused, giving it back ends it everywhere.
        """
        now_s = (since_us or self._room.clock()) // US_PER_S
        issued_s = now_s - now_s % 60
        ttl_s = self._room.control.view(event_id).state.config.pass_ttl_s + 60
        place = PlaceKey(0, 0, zlib.crc32(f"{person} {why} {issued_s}".encode()) & 0x3FFFFFFF)
        visit = Pass(event_id, person, place, issued_s, issued_s + ttl_s, issued_s)
        return self._room.passes.mint(visit), visit.expires_s

    def _text(self, request: EndpointRequest) -> str:
        given = request.header(b"authorization")
        if given is not None and given[:7].lower() == b"bearer " and not given[7:].startswith(OTHER_TOKENS):
            return given[7 : 8 + MAX_PASS_CHARS].decode("latin-1").strip()
        header = request.header(b"frontrow-pass")
        if header is not None:
            return header[: 1 + MAX_PASS_CHARS].decode("latin-1").strip()
        cookie = request.header(b"cookie")
        if cookie is None or b"frontrow" not in cookie:
            return ""
        text = read_cookie(cookie.decode("latin-1"), self._cookies)
        if text:
            check_same_site(request)
        return text


def check_same_site(request: EndpointRequest) -> None:
    """Refuse a request that a browser makes for another site's page."""
    site = request.header(b"sec-fetch-site")
    if site is not None:
        if site not in (b"same-origin", b"none"):
            raise ForeignPage("this request was made by another site's page")
        return
    origin = request.header(b"origin")
    if origin is not None and origin.partition(b"://")[2] != request.header(b"host"):
        raise ForeignPage("this request was made by another site's page")
