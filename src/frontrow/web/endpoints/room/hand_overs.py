"""The hand-over to shops on other domains over HTTP: for browsers, and for the connectors of the shops.

docs/connector.md is the specification of both sides. Browsers come to the page with a wish of a registered shop. A
browser with a live visit is led on at once. Connectors exchange a hand-over for a pass, and follow the keys and the
ended visits.
"""

from collections.abc import Sequence
from urllib.parse import parse_qs

import msgspec

from frontrow.core.errors import FrontrowError, InvalidInput
from frontrow.shared.cookie_headers import cookie_names
from frontrow.waitingroom.credentials.hand_over import HandedVisit
from frontrow.web.endpoints.room.context import RoomContext
from frontrow.web.endpoints.room.documents import DocumentEndpoints
from frontrow.web.endpoints.room.shop_wishes import ShopWish
from frontrow.web.endpoints.room.visitors import ClaimBody
from frontrow.web.http.messages import (
    NO_STORE,
    EndpointRequest,
    EndpointResponse,
    Result,
    header_line,
    json_answer,
    problem_answer,
)
from frontrow.web.http.request_bodies import check_size, decode_body, is_form
from frontrow.web.http.room_credentials import cookie_of

KEPT_S = 86_400
AGAIN_S = 30
MOST_AGAIN = 3  # so many times in a row a browser is led on by itself; then the page says that something is wrong
MAX_MARK_CHARS = 1_024


def kept_cookies(event: str) -> tuple[str, str]:
    """The names of the room's cookie that keeps a visit which was handed over."""
    return cookie_names("visit", event)


def again_cookies(event: str) -> tuple[str, str]:
    """The names of the cookie that counts how often a browser came back at once."""
    return cookie_names("again", event)


class ExchangeBody(msgspec.Struct, forbid_unknown_fields=True):
    """A hand-over and the verifier of the browser that brought it."""

    token: str
    verifier: str


_decode_exchange = msgspec.json.Decoder(ExchangeBody).decode


class HandOverEndpoints:
    """Endpoints of the hand-over in every room of this process."""

    def __init__(self, context: RoomContext, documents: DocumentEndpoints) -> None:
        self._context, self._room, self._pages = context, context.room, context.pages
        self._documents = documents

    # -- browsers ------------------------------------------------------------------------------------------------------

    def page(self, event: str, request: EndpointRequest, front: str = "") -> Result:
        """GET the page people wait on. A browser with a live visit is led to the shop that it came from."""
        wish = self._pages.shop_wish_of(request)
        kept = cookie_of(request, kept_cookies(event), secure=self._pages.secure) if wish else ""
        if wish is None or not kept:
            return self._documents.page(event, request, front)
        return self._lead_on(event, request, wish, kept, front)

    async def _lead_on(
        self, event: str, request: EndpointRequest, wish: ShopWish, kept: str, front: str
    ) -> EndpointResponse:
        try:
            self._context.entry.count_ip(self._context.client_ip(request))
            visit = await self._room.hand_overs.find_kept(kept, event)
        except FrontrowError as error:
            return self._context.problem("page", error, request, event)
        if visit is None:
            return self._pages.begin_again(event, request, front)
        tried = cookie_of(request, again_cookies(event), secure=self._pages.secure)
        times = int(tried) if tried.isdecimal() and tried.isascii() and len(tried) <= 2 else 0
        if times >= MOST_AGAIN:
            self._context.count("hand_over:lost")
            return self._pages.lost_at_shop(event, request)
        again = self._pages.cookie(again_cookies(event), str(times + 1), AGAIN_S)
        return EndpointResponse(303, NO_STORE + again + header_line("location", self._onward(visit, wish)))

    async def claim(
        self, event: str, request: EndpointRequest, body: ClaimBody, wish: ShopWish, place: str, key: str | None
    ) -> EndpointResponse:
        """A page's claim where the shop is on another domain: the visit begins, and the answer leads to the shop. Who
        has a live visit is only led on. Raises as `Visits.claim` does."""
        kept = cookie_of(request, kept_cookies(event), secure=self._pages.secure)
        visit = await self._room.hand_overs.find_kept(kept, event) if kept else None
        if visit is None:
            visit = await self._room.hand_overs.begin(place, event, key, body.proof)
        cookie = self._pages.cookie(kept_cookies(event), self._room.hand_overs.keep(visit), KEPT_S)
        onward = self._onward(visit, wish)
        if is_form(request):
            return EndpointResponse(303, NO_STORE + cookie + header_line("location", onward))
        return json_answer(201, {"next": onward}, cookie)

    def _onward(self, visit: HandedVisit, wish: ShopWish) -> str:
        """With a hand-over if the shop knows this browser; else the shop sends it back with its `bind`."""
        if not wish.bind:
            return wish.url
        return wish.url_with(self._room.hand_overs.issue(visit, wish.shop, wish.bind))

    # -- connectors ----------------------------------------------------------------------------------------------------

    def exchange(self, event: str, request: EndpointRequest) -> Result:
        """POST exchange: a hand-over for a pass, once. Only refusals are counted, and by themselves: all people of a
        shop come from its server's address."""
        return self.exchange_of((event,), request)

    def exchange_of(self, events: Sequence[str], request: EndpointRequest) -> Result:
        """`exchange` for all shards of a queue."""
        try:
            body = _read_exchange(request)
        except FrontrowError as error:
            return self._refuse(request, error)
        return self._exchange(events, request, body)

    async def _exchange(self, events: Sequence[str], request: EndpointRequest, body: ExchangeBody) -> EndpointResponse:
        try:
            claimed = await self._room.hand_overs.exchange(body.token, body.verifier, events, self._pages.shops)
        except FrontrowError as error:
            return self._refuse(request, error)
        self._context.count("exchange")
        told = {"pass": claimed.pass_jwt, "expires_at_s": claimed.expires_s, "now_s": self._now_s()}
        return json_answer(200, told, self.allow_shop(request))

    def _refuse(self, request: EndpointRequest, error: FrontrowError) -> EndpointResponse:
        try:
            self._context.entry.count_ip(f"{self._context.client_ip(request)} refused exchanges")
        except FrontrowError as too_many:
            error = too_many
        self._context.count(f"exchange:{error.code}")
        return problem_answer(error, self.allow_shop(request))

    def follow(self, event: str, request: EndpointRequest) -> Result:
        """GET connector: the keys, and the visits that ended since the mark in `after`."""
        return self.follow_all((event,), request)

    def follow_all(self, events: Sequence[str], request: EndpointRequest) -> Result:
        """`follow` for all shards of a queue, whose marks are joined by commas."""
        try:
            self._context.entry.count_ip(self._context.client_ip(request))
        except FrontrowError as error:
            return self._context.problem("connector", error, request, events[0])
        return self._follow(events, request)

    async def _follow(self, events: Sequence[str], request: EndpointRequest) -> EndpointResponse:
        given = parse_qs(request.query.decode("latin-1"), max_num_fields=5).get("after", [""])[0][:MAX_MARK_CHARS]
        marks = given.split(",") if given.count(",") == len(events) - 1 else [""] * len(events)
        ended: list[str] = []
        complete = True
        told: list[str] = []
        try:
            for event, mark in zip(events, marks, strict=True):
                last, whole, some = await self._room.hand_overs.ended(event, mark)
                told.append(last)
                ended += some
                complete = complete and whole
        except FrontrowError as error:
            return self._context.problem("connector", error, request, events[0])
        known = [mark.partition(".")[0] for mark in marks] == [mark.partition(".")[0] for mark in told]
        self._context.count("connector")
        body = {
            "events": list(events),
            "keys": [key for key in self._room.passes.jwks()["keys"] if key["alg"] == "RS256"],
            "after": given if known else "",
            "mark": ",".join(told),
            "complete": complete,
            "ended": ended,
            "now_s": self._now_s(),
        }
        return json_answer(200, body, self.allow_shop(request))

    def allow_shop(self, request: EndpointRequest) -> bytes:
        """Lets the snippet on a page of a registered shop read the answer."""
        origin = request.header(b"origin")
        if origin is None or origin.decode("latin-1") not in self._pages.shops:
            return b""
        return header_line("access-control-allow-origin", origin.decode("latin-1")) + b"vary: origin\r\n"

    def _now_s(self) -> int:
        return self._room.clock() // 1_000_000


def _read_exchange(request: EndpointRequest) -> ExchangeBody:
    check_size(request)
    if not is_form(request):
        return decode_body(_decode_exchange, request.body)
    fields = parse_qs(request.body.decode("latin-1"), max_num_fields=5)
    try:
        return ExchangeBody(fields["token"][0], fields["verifier"][0])
    except KeyError as missing:
        raise InvalidInput(f"the form needs token and verifier; {missing} is not there", param="body") from None
