"""The waiting-room page: one answer of at most 14 KB with everything in it, readable without JavaScript.

Without scripts the page refreshes itself at the pace the room sets; join and claim are plain forms. With scripts it
follows the stream, and enters the shop by itself. The place lives in a cookie that scripts cannot read. The content
security policy allows exactly our own style and script, by their hashes, plus the CAPTCHA provider if one is chosen.
"""

import functools
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Protocol
from urllib.parse import parse_qs, quote, urlsplit

import jinja2

from frontrow.core.errors import Forbidden, FrontrowError, Unauthorised
from frontrow.shared.cookie_headers import cookie_line, cookie_names
from frontrow.waitingroom.credentials.key_binding import place_hash
from frontrow.waitingroom.entrance.person_and_address_limits import EntranceLimits
from frontrow.waitingroom.model.results import ClaimedPass, Joined, PlaceStatus
from frontrow.waitingroom.model.window import PlaceState
from frontrow.waitingroom.protect.guard import PASS_COOKIES, is_page
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.web.endpoints.room.page_texts import (
    HEADINGS,
    LOST_AT_SHOP,
    PLAIN_WORDS,
    REFUSALS,
    REFUSED,
    WHY,
    progress,
    wait_text,
)
from frontrow.web.endpoints.room.shop_wishes import ShopWish, bind_of_query, read_shop_wish
from frontrow.web.http.html import page_head, policy_hash, safe
from frontrow.web.http.messages import (
    HTML,
    NO_STORE,
    EndpointRequest,
    EndpointResponse,
    encode_json,
    header_line,
    json_answer,
)
from frontrow.web.http.overflow_page import OVERFLOW, OVERFLOW_AGAIN_S, Notices
from frontrow.web.http.room_credentials import cookie_of, joined_at_cookies, keeps_place, place_cookies, place_of

PLACE_DAYS = 7
INSIDE_PATH = "/inside"  # of a room that is served alone
INSIDE = {
    "heading": "You’re in",
    "note": "Your shop would be here",
    "text": "This room has no shop behind it yet. Start it with --shop https://shop.example.org/ or set room.shop_url.",
}
URL_CHARS = "".join(set(string.punctuation) - set('"#<>\\'))
CAPTCHA_HOSTS = {  # kind -> what its widget loads, connects to and frames
    "turnstile": "https://challenges.cloudflare.com",
    "hcaptcha": "https://*.hcaptcha.com",
    "recaptcha": "https://www.google.com/recaptcha/ https://www.gstatic.com/recaptcha/ https://recaptcha.google.com/recaptcha/",
}
CAPTCHA_WIDGETS = {  # kind -> its script and the class of its element
    "turnstile": ("https://challenges.cloudflare.com/turnstile/v0/api.js", "cf-turnstile"),
    "hcaptcha": ("https://js.hcaptcha.com/1/api.js", "h-captcha"),
    "recaptcha": ("https://www.google.com/recaptcha/api.js", "g-recaptcha"),
}


@dataclass(frozen=True, slots=True)
class PageSettings:
    """The brand and addresses of the page. `titles` names each event for people; `next_url` is the shop."""

    brand: str = "Frontrow"
    titles: tuple[tuple[str, str], ...] = ()
    next_url: str = ""  # where the shop is; empty: there is none, and the room says so itself
    secure_cookies: bool = False
    theme: str = ""  # a style that goes after the page's own
    shops: tuple[str, ...] = ()  # origins of shops on other domains, whose connectors take a hand-over


def read_wish(query: str) -> str:
    """The page after `return=`: quoted, or as nginx's `$request_uri` writes it, a query of its own included. With the
    `bind` of a shop on another domain before it: see `shop_wishes`."""
    raw = f"&{query}".partition("&return=")[2]
    if "?" in raw:
        return raw
    decoded = parse_qs(query).get("return", [""])[0]
    bind = bind_of_query(query)
    return f"{bind}@{quote(decoded, safe=URL_CHARS)}" if bind else quote(decoded, safe=URL_CHARS)


class PageSurroundings(Protocol):
    """What depends on where the page is shown: its language, the event's name, what refusals look like."""

    def words(self, request: EndpointRequest, event: str = "") -> Any:
        """The texts in the visitor's language, as far as the event's page is offered in it."""

    def shared_words(self, request: EndpointRequest) -> tuple[Any, bytes]:
        """The texts of a page that caches keep, and the header that says what they depend on."""

    def error_text(self, error: FrontrowError, request: EndpointRequest) -> str:
        """A refusal in words."""

    def missing_page(self, error: FrontrowError, request: EndpointRequest) -> EndpointResponse | None:
        """The page when there is no such room; None for problem+json."""

    def fields(self, event: str, base: str, words: Any) -> dict[str, Any]:
        """Fields of the template beyond the room: the event's title, where to get ready, hints, script texts, the
        owner's own text, and the brand of who sells (`house`, if it has one). `base` is the path of the event's
        endpoints."""

    def default_wish(self, event: str) -> str:
        """The page of the shop for visitors who asked for none; nothing for the shop's front."""

    def shop_url(self, event: str) -> str | None:
        """Where the shop behind this room is; None: as the settings say."""


class PlainSurroundings:
    """Implements `PageSurroundings` for the room as a server of its own: English, problem+json, titles as set."""

    def __init__(self, titles: Sequence[tuple[str, str]] = ()) -> None:
        self._titles = dict(titles)

    def words(self, request: EndpointRequest, event: str = "") -> Any:
        return PLAIN_WORDS

    def shared_words(self, request: EndpointRequest) -> tuple[Any, bytes]:
        return PLAIN_WORDS, b""

    def error_text(self, error: FrontrowError, request: EndpointRequest) -> str:
        return REFUSALS.get(error.code, REFUSED)

    def missing_page(self, error: FrontrowError, request: EndpointRequest) -> EndpointResponse | None:
        return None

    def fields(self, event: str, base: str, words: Any) -> dict[str, Any]:
        return {
            "event_title": self._titles.get(event, event),
            "ready_url": "",
            "home": "",
            "script_words": "",
            "hint": "",
            "hint_link": ("", ""),
            "house": None,
            "own_text": "",
            "notice_kinds": (),
        }

    def default_wish(self, event: str) -> str:
        return ""

    def shop_url(self, event: str) -> str | None:
        return None


@functools.cache
def _page_files(theme: str) -> tuple[str, str, jinja2.Template]:
    """Style, script and template of the page, read once per process and theme."""
    html, css, js = map(_file, ("room.html", "room.css", "room.js"))
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    for name in re.findall("--[a-z0-9-]+:", theme):  # no bytes for a colour that the theme replaces
        css = re.sub(rf"{name}[^;}}]+;?", "", css, count=1)
    return f"{css}\n{theme}", js, environment.from_string(html)


def _file(name: str) -> str:
    return (files("frontrow.web") / "templates" / name).read_text("utf-8")


class RoomPages:
    """Renders the page, the overflow page and the answers to forms."""

    def __init__(
        self,
        room: WaitingRoom,
        entry: EntranceLimits,
        settings: PageSettings | None = None,
        surroundings: PageSurroundings | None = None,
    ) -> None:
        self._room = room
        self._entry = entry
        self._settings = settings or PageSettings()
        self._surroundings = surroundings or PlainSurroundings(self._settings.titles)
        self._css, self._js, self._page = _page_files(self._settings.theme)
        self.notices = Notices(self._settings.brand, self._settings.theme)

    def words(self, request: EndpointRequest) -> Any:
        """The texts in the visitor's language."""
        return self._surroundings.words(request)

    # -- the page ----------------------------------------------------------------------------------------------------

    def page(self, event: str, request: EndpointRequest, front: str = "") -> EndpointResponse:
        """The page for this browser; `front` is the name to join under, if it differs from the event."""
        view = self._room.control.view(event)
        status = self._find_status(event, request)
        cap = view.state.config.depth_cap
        if status is None and cap and view.waiting >= cap:
            return self.overflow(503, request)
        return self._render(event, status, "", 200, request, front)

    def begin_again(self, event: str, request: EndpointRequest, front: str = "") -> EndpointResponse:
        """The page for a browser whose visit has ended: without its place, which is used up."""
        response = self._render(event, None, "", 200, request, front)
        for names in (place_cookies(event), joined_at_cookies(event), cookie_names("visit", event)):
            response.head += self.cookie(names, "", 0)
        return response

    def lost_at_shop(self, event: str, request: EndpointRequest) -> EndpointResponse:
        """The page for a browser that the shop sends back again and again: it has to do something."""
        return self._render(event, None, self._surroundings.words(request)(LOST_AT_SHOP), 200, request, shown="lost")

    def overflow(self, status: int, request: EndpointRequest) -> EndpointResponse:
        """The static page for people beyond the depth cap; costs nothing to make."""
        words, varies = self._surroundings.shared_words(request)
        head = b"cache-control: public, max-age=60\r\n" + varies + (b"retry-after: 60\r\n" if status == 503 else b"")
        return self.notices.answer(status, words, OVERFLOW, refresh_s=OVERFLOW_AGAIN_S, head=head)

    def inside(self) -> EndpointResponse:
        """The page after the room where no shop is set."""
        return self.notices.answer(200, PLAIN_WORDS, INSIDE, head=NO_STORE)

    def instead_of_problem(self, event: str, error: FrontrowError, request: EndpointRequest) -> EndpointResponse | None:
        """For a browser's form: the page with the error in words, or the overflow page; None for API clients."""
        accept = request.header(b"accept")
        if accept is None or b"text/html" not in accept:
            return None
        if error.code == "room_overflow":
            return self.overflow(503, request)
        if error.http_status == 404:
            return self._surroundings.missing_page(error, request)
        used_up = error.code == "already_claimed"  # the page offers to join again
        status = None if used_up else self._find_status(event, request)
        return self._render(event, status, self._surroundings.error_text(error, request), error.http_status, request)

    def _find_status(self, event: str, request: EndpointRequest) -> PlaceStatus | None:
        """The status of this browser's place, if it has a valid one."""
        try:
            return self._room.statuses.of(place_of(event, request, secure=self.secure), event)
        except (Unauthorised, Forbidden):
            return None

    def _render(
        self,
        event: str,
        status: PlaceStatus | None,
        error: str,
        http_status: int,
        request: EndpointRequest,
        front: str = "",
        shown: str = "none",
    ) -> EndpointResponse:
        facts: dict[str, Any] = {"state": shown, "number": 0, "lane": 0, "from_hi": 0, "ahead": 0, "progress": 0}
        state = self._room.control.view(event).state
        words = self._surroundings.words(request, event)
        facts |= {"eta": words("not known yet"), "rate": "–", "why": "", "refresh_s": 0}
        if status is not None:
            facts |= self._facts(status, event, self._joined_at(event, request), words)
        human, human_now = self._entry.kind_of(event), self._entry.kind_now(event)
        wish = read_wish(request.query.decode("latin-1")) or self._surroundings.default_wish(event)
        base = self.base(front or event)
        bound = self._bound_hash(event, request) if status is not None else ""
        fields = self._surroundings.fields(event, self.base(event), words)
        house = fields["house"]
        own_css = house.style.inline_css if house and house.style else ""
        policy = self._policy(human_now, own_css, self._shop_of(wish, event), images=bool(house and house.logo))
        body = self._page.render(
            facts,
            css=safe(self._css),
            own_css=safe(own_css),
            js=safe(self._js),
            base=base,
            event=event,
            ath=bound,
            brand=self._settings.brand,
            _=words,
            words=words,
            title=words(HEADINGS[facts["state"]]),
            heading=words(HEADINGS[facts["state"]]),
            **fields,
            phase=state.phase.value,
            message=state.config.message,
            error=error,
            codes=len(state.config.lanes) > 1,  # a code leads into a lane of its own
            next=self.next_url(wish, event),
            human=human,
            wish=wish,
            needs_scripts=human_now in CAPTCHA_HOSTS,
            captcha=CAPTCHA_WIDGETS.get(human_now),
            site_key=self._entry.site_key_of(event),
        )
        return EndpointResponse(http_status, HTML + NO_STORE + page_head(policy), body.encode())

    def _bound_hash(self, event: str, request: EndpointRequest) -> str:
        """The hash of a place that is bound to the browser's key: its proof must name it."""
        text = place_of(event, request, secure=self.secure)
        return place_hash(text) if self._room.places.verify(text, event).jkt else ""

    def _facts(self, status: PlaceStatus, event: str, from_hi: int, words: Any) -> dict[str, Any]:
        view = self._room.control.view(event)
        lane = view.state.config.lane_index(status.lane)
        window, number = view.state.lanes[lane], status.position or 0
        state = "waiting" if status.state is PlaceState.WAITING else status.state.value
        per_minute = round(view.rates_milli[lane] * 60 / 1000)
        return {
            "state": state,
            "number": number,
            "lane": lane,
            "from_hi": from_hi,
            "ahead": status.ahead or 0,
            "progress": progress(from_hi, window.hi, number),
            "eta": wait_text(status.wait, words),
            "rate": words.number(per_minute) if per_minute else "–",
            "why": words(WHY.get(status.wait.reason, WHY.get(status.phase, ""))),
            "refresh_s": max(5, status.poll_after_s) if state == "waiting" else 0,
        }

    # -- forms -------------------------------------------------------------------------------------------------------

    def next_url(self, wish: str, event: str) -> str:
        """Where to go with the pass: the page of the shop that the visitor wanted, else the shop's front."""
        elsewhere = self.shop_wish(wish)
        if elsewhere is not None:
            return elsewhere.url
        if wish and is_page(wish):
            return self._shop_origin(event) + wish
        return self._shop_url(event) or INSIDE_PATH

    def _shop_url(self, event: str) -> str:
        own = self._surroundings.shop_url(event)
        return self._settings.next_url if own is None else own

    def _shop_origin(self, event: str) -> str:
        shop = urlsplit(self._shop_url(event))
        return f"{shop.scheme}://{shop.netloc}" if shop.netloc else ""

    def joined(self, event: str, joined: Joined, *, is_form: bool, wish: str = "") -> EndpointResponse:
        """The place as a cookie: a form goes back to the page, a script gets its status."""
        state = self._room.control.view(event).state
        hi = state.lanes[state.config.lane_index(joined.status.lane)].hi
        cookie = self.cookie(place_cookies(event), joined.place_jwt, PLACE_DAYS * 86_400)
        cookie += self.cookie(joined_at_cookies(event), str(hi), PLACE_DAYS * 86_400)
        if is_form:
            return self.to_room(event, wish, cookie)
        return EndpointResponse(
            201, b"content-type: application/json\r\n" + NO_STORE + cookie, encode_json(joined.status)
        )

    def to_room(self, event: str, wish: str = "", head: bytes = b"") -> EndpointResponse:
        """To the page people wait on, and from there to `wish`."""
        page = self.base(event) + "/"
        elsewhere = self.shop_wish(wish) if wish else None
        if elsewhere is not None:
            bind = f"bind={elsewhere.bind}&" if elsewhere.bind else ""
            page += f"?{bind}return={quote(elsewhere.url, safe='/')}"
        elif wish and is_page(wish):
            page += f"?return={quote(wish, safe='/')}"
        return EndpointResponse(303, NO_STORE + head + header_line("location", page))

    def entered(self, event: str, claimed: ClaimedPass, request: EndpointRequest) -> EndpointResponse:
        """Into the shop, by a place that this browser never had to keep; an older one is of no use any more."""
        response = self.claimed(event, claimed, is_form=True, wish=self._surroundings.default_wish(event))
        if keeps_place(event, request, secure=self.secure):
            response.head += self.cookie(place_cookies(event), "", 0) + self.cookie(joined_at_cookies(event), "", 0)
        return response

    def claimed(self, event: str, claimed: ClaimedPass, *, is_form: bool, wish: str = "") -> EndpointResponse:
        """The pass as a cookie, and the way to the shop."""
        cookie = self.keep_pass(claimed)
        onward = self.next_url(wish, event)
        if is_form:
            return EndpointResponse(303, NO_STORE + cookie + header_line("location", onward))
        body = {"next": onward, "expires_at_s": claimed.expires_s, "repeated": claimed.repeated}
        return json_answer(201, body, cookie)

    def keep_pass(self, claimed: ClaimedPass) -> bytes:
        """The header line that keeps the pass in the browser."""
        return self.cookie(PASS_COOKIES, claimed.pass_jwt, 86_400)

    def forget_pass(self) -> bytes:
        """The header lines that remove the pass from the browser, under both of its names."""
        return b"".join(
            header_line("set-cookie", cookie_line(PASS_COOKIES, "", 0, secure=secure))
            for secure in ((True, False) if self._settings.secure_cookies else (False,))
        )

    def shop_is_elsewhere(self, event: str) -> bool:
        """Whether the shop has an address of its own."""
        return bool(self._shop_origin(event) or self.shops)

    @property
    def shops(self) -> tuple[str, ...]:
        """The origins of shops on other domains."""
        return self._settings.shops

    def shop_wish(self, wish: str) -> ShopWish | None:
        """The page that is wished at a shop on another domain; None for a page of the room's own host. A wish for a
        site that is not registered leads to the first shop."""
        if is_page(wish) and (self._settings.next_url or not self.shops):
            return None
        if is_page(wish):
            return ShopWish(self.shops[0], wish)
        return read_shop_wish(wish, self.shops)

    def shop_wish_of(self, request: EndpointRequest) -> ShopWish | None:
        """`shop_wish` of a request for the page."""
        return self.shop_wish(read_wish(request.query.decode("latin-1"))) if self.shops else None

    def _shop_of(self, wish: str, event: str) -> str:
        """The origin that the form which enters leads to; nothing if it is the room's own."""
        elsewhere = self.shop_wish(wish)
        return elsewhere.shop if elsewhere is not None else self._shop_origin(event)

    @property
    def secure(self) -> bool:
        """Whether people come by https: then only cookies bound to the host count."""
        return self._settings.secure_cookies

    def _joined_at(self, event: str, request: EndpointRequest) -> int:
        """Where the window was when this browser joined: the start of its progress bar."""
        value = cookie_of(request, joined_at_cookies(event), secure=self.secure)
        return int(value) if value.isdecimal() and value.isascii() and len(value) <= 12 else 0

    def base(self, event: str) -> str:
        """The path of this event's endpoints. A proxy before room and shop passes it on unchanged."""
        return f"/v1/events/{event}/room"

    # -- pieces ------------------------------------------------------------------------------------------------------

    def cookie(self, names: tuple[str, str], value: str, max_age_s: int) -> bytes:
        """The header line that keeps a value in the browser."""
        return header_line("set-cookie", cookie_line(names, value, max_age_s, secure=self._settings.secure_cookies))

    def _policy(self, human: str, own_css: str, shop: str, *, images: bool) -> str:
        host = CAPTCHA_HOSTS.get(human, "")
        extra, frames = (f" {host}", f"; frame-src {host}") if host else ("", "")
        styles = " ".join(map(policy_hash, (self._css, own_css) if own_css else (self._css,)))
        onward = f" {shop}" if shop else ""  # the form that enters leads there
        shown = "img-src 'self'; " if images else ""
        return (
            f"default-src 'none'; style-src {styles}; script-src {policy_hash(self._js)}{extra}; {shown}"
            f"connect-src 'self'{extra}{frames}; form-action 'self'{onward}; base-uri 'none'; frame-ancestors 'none'"
        )
