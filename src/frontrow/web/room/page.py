"""The waiting-room page: one answer of at most 14 KB with everything in it, readable without JavaScript.

Without scripts the page refreshes itself at the pace the room asks for; join and claim are plain forms. With them, it
follows the stream, and goes in by itself. The place lives in a cookie that scripts cannot read. The policy (CSP) allows
exactly our own style and script, by policy_hash, plus the CAPTCHA provider if one is chosen.
"""

import functools
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, TypeVar
from urllib.parse import parse_qs, quote, urlsplit

import jinja2
import msgspec

from frontrow.core.cookies import cookie_line, names_to_read, read_cookie
from frontrow.core.errors import Forbidden, FrontrowError, InvalidInput, Unauthorised
from frontrow.waitingroom.credentials.key_binding import place_hash
from frontrow.waitingroom.door.door_limits import Entry
from frontrow.waitingroom.model.window import PlaceState
from frontrow.waitingroom.protect.guard import PASS_COOKIES, is_plain
from frontrow.waitingroom.service.room import Claimed, Joined, PlaceStatus, WaitingRoom
from frontrow.web.endpoints.messages import (
    HTML,
    NO_STORE,
    EndpointRequest,
    EndpointResponse,
    encode_json,
    header_line,
    json_answer,
)
from frontrow.web.room.page_parts import (
    HEADINGS,
    PLAIN_WORDS,
    WHY,
    from_cookies,
    lean,
    lean_script,
    page_head,
    place_cookies,
    policy_hash,
    progress,
    safe,
    short_names,
    wait_text,
)
from frontrow.web.server.overflow_page import OVERFLOW, OVERFLOW_AGAIN_S, Notices

Body = TypeVar("Body")
PLACE_DAYS = 7
CAPTCHA_HOSTS = {"turnstile": "https://challenges.cloudflare.com", "hcaptcha": "https://*.hcaptcha.com"}
CAPTCHA_WIDGETS = {  # kind -> its script and the class of its element
    "turnstile": ("https://challenges.cloudflare.com/turnstile/v0/api.js", "cf-turnstile"),
    "hcaptcha": ("https://js.hcaptcha.com/1/api.js", "h-captcha"),
}


@dataclass(frozen=True, slots=True)
class PageSettings:
    """How the page speaks and where it leads. `titles` names each event for people; `next_url` is the shop."""

    brand: str = "Frontrow"
    titles: tuple[tuple[str, str], ...] = ()
    next_url: str = "/"
    secure_cookies: bool = False
    root_event: str = ""  # the event that is also served at the root


@functools.cache
def _page_files() -> tuple[str, str, jinja2.Template]:
    """Style, script and template of the page, made lean once in each process."""
    folder = files("frontrow.web") / "templates"
    read = {name: (folder / name).read_text("utf-8") for name in ("room.html", "room.css", "room.js")}
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    css, script = short_names(lean(read["room.css"])), lean_script(read["room.js"])
    return css, script, environment.from_string(lean(read["room.html"]))


class RoomPages:
    """Renders the page, the overflow page and the answers to forms."""

    def __init__(self, room: WaitingRoom, entry: Entry, settings: PageSettings | None = None) -> None:
        self._room = room
        self._entry = entry
        self._settings = settings or PageSettings()
        self._css, self._js, self._page = _page_files()
        self.notices = Notices(self._settings.brand)

    # -- what the platform's pages do differently (`site.room`) -----------------------------------------------------

    def words(self, ask: EndpointRequest) -> Any:
        """The words of the visitor's language."""
        return PLAIN_WORDS

    def shared_words(self, ask: EndpointRequest) -> tuple[Any, bytes]:
        """The words of a page that caches keep, and the header that says what they depend on."""
        return PLAIN_WORDS, b""

    def told(self, error: FrontrowError, ask: EndpointRequest) -> str:
        """An error in words for the page."""
        return error.message

    def missing(self, error: FrontrowError, ask: EndpointRequest) -> EndpointResponse | None:
        """The page when there is no such room; None for problem+json."""
        return None

    def surroundings(self, event: str, words: Any) -> dict[str, Any]:
        """What the page knows beyond the room: the event's title, where to get ready, its script's translations."""
        title = dict(self._settings.titles).get(event, event)
        return {
            "event_title": title,
            "ready_url": "",
            "home": "",
            "script_words": "",
            "hint": "",
            "hint_link": ("", ""),
        }

    # -- the page ----------------------------------------------------------------------------------------------------

    def page(self, event: str, ask: EndpointRequest, front: str = "") -> EndpointResponse:
        """The page as this browser should see it now; `front` is the name to join under, if it is another."""
        view = self._room.view(event)
        told, error = self._told(event, ask)
        cap = view.state.config.depth_cap
        if told is None and cap and view.waiting >= cap:
            return self.overflow(503, ask)
        return self._render(event, told, error, 200, ask, front)

    def overflow(self, status: int, ask: EndpointRequest) -> EndpointResponse:
        """The static page for those the room has no place for; costs nothing to make."""
        words, varies = self.shared_words(ask)
        head = b"cache-control: public, max-age=60\r\n" + varies + (b"retry-after: 60\r\n" if status == 503 else b"")
        return self.notices.answer(status, words, OVERFLOW, refresh_s=OVERFLOW_AGAIN_S, head=head)

    def instead_of_problem(self, event: str, error: FrontrowError, ask: EndpointRequest) -> EndpointResponse | None:
        """For a browser's form: the page with the error in words, or the overflow page; None for everybody else."""
        accept = ask.header(b"accept")
        if accept is None or b"text/html" not in accept:
            return None
        if error.code == "room_overflow":
            return self.overflow(503, ask)
        if error.http_status == 404:
            return self.missing(error, ask)
        place = None if error.code == "already_claimed" else self._told(event, ask)[0]  # it is used up: join again
        return self._render(event, place, self.told(error, ask), error.http_status, ask)

    def _told(self, event: str, ask: EndpointRequest) -> tuple[PlaceStatus | None, str]:
        try:
            return self._room.status(self.place_of(event, ask), event), ""
        except (Unauthorised, Forbidden):
            return None, ""

    def _render(
        self, event: str, told: PlaceStatus | None, error: str, status: int, ask: EndpointRequest, front: str = ""
    ) -> EndpointResponse:
        state = self._room.view(event).state
        facts: dict[str, Any] = {"state": "none", "number": 0, "lane": 0, "from_hi": 0, "ahead": 0, "progress": 0}
        words = self.words(ask)
        facts |= {"eta": words("not known yet"), "rate": "–", "why": "", "refresh_s": 0}
        if told is not None:
            facts |= self._facts(told, event, self._from_hi(event, ask), words)
        human = self._entry.kind_of(event)
        wish = parse_qs(ask.query.decode("latin-1")).get("return", [""])[0] or self.default_wish(event)
        base = self.base(front or event)
        bound = self._bound(event, ask) if told is not None else ""
        body = self._page.render(
            facts,
            css=safe(self._css),
            js=safe(self._js),
            base=base,
            event=event,
            ath=bound,
            brand=self._settings.brand,
            _=words,
            words=words,
            title=words(HEADINGS[facts["state"]]),
            heading=words(HEADINGS[facts["state"]]),
            **self.surroundings(event, words),
            phase=state.phase.value,
            message=state.config.message,
            error=error,
            next=self.next_url(wish),
            human=human,
            wish=wish,
            captcha=CAPTCHA_WIDGETS.get(human),
            site_key=self._entry.site_key_of(event),
        )
        return EndpointResponse(status, HTML + NO_STORE + page_head(self._policy(human)), body.encode())

    def _bound(self, event: str, ask: EndpointRequest) -> str:
        """What the browser's proof must name, if its place is bound to its key: the place's hash."""
        text = self.place_of(event, ask)
        return place_hash(text) if self._room.places.verify(text, event).jkt else ""

    def _facts(self, told: PlaceStatus, event: str, from_hi: int, words: Any) -> dict[str, Any]:
        view = self._room.view(event)
        lane = view.state.config.lane_index(told.lane)
        window, number = view.state.lanes[lane], told.position or 0
        state = "waiting" if told.state is PlaceState.WAITING else told.state.value
        per_minute = round(view.rates_milli[lane] * 60 / 1000)
        return {
            "state": state,
            "number": number,
            "lane": lane,
            "from_hi": from_hi,
            "ahead": told.ahead or 0,
            "progress": progress(from_hi, window.hi, number),
            "eta": wait_text(told.wait, words),
            "rate": words.number(per_minute) if per_minute else "–",
            "why": words(WHY.get(told.wait.reason, WHY.get(told.phase, ""))),
            "refresh_s": max(5, told.poll_after_s) if state == "waiting" else 0,
        }

    # -- forms -------------------------------------------------------------------------------------------------------

    def form(self, ask: EndpointRequest, kind: type[Body]) -> Body:
        """The fields of a browser's form as the body an endpoint expects; another site's form is refused."""
        site = ask.header(b"sec-fetch-site")
        if site is not None and site not in (b"same-origin", b"none"):
            raise Forbidden("this form came from another site")
        fields = parse_qs(ask.body.decode("utf-8", "replace"), max_num_fields=20)
        plain: dict[str, Any] = {name: values[0] for name, values in fields.items() if values[0]}
        for wide in ("altcha", "cf-turnstile-response", "h-captcha-response"):  # what the providers' widgets send
            if plain.pop(wide, None):
                plain["proof"] = fields[wide][0]
        try:
            return msgspec.convert(plain, kind, strict=False)
        except msgspec.MsgspecError as error:
            raise InvalidInput(f"the form is not what is expected here: {error}", param="body") from None

    def default_wish(self, event: str) -> str:
        """The page of the shop for who names none."""
        return ""

    def next_url(self, wish: str) -> str:
        """Where to go with the pass: the page of the shop somebody came from, if it is plainly one, else its front."""
        shop = urlsplit(self._settings.next_url)
        if wish and len(wish) <= 512 and is_plain(wish):
            return f"{shop.scheme}://{shop.netloc}{wish}" if shop.netloc else wish
        return self._settings.next_url

    def joined(self, event: str, joined: Joined, *, is_form: bool, wish: str = "") -> EndpointResponse:
        """The place as a cookie: for a form back to the page, for a script its status."""
        state = self._room.view(event).state
        hi = state.lanes[state.config.lane_index(joined.status.lane)].hi
        cookie = self._cookie(place_cookies(event), joined.place_jwt, PLACE_DAYS * 86_400)
        cookie += self._cookie(from_cookies(event), str(hi), PLACE_DAYS * 86_400)
        if is_form:
            back = self.base(event) + "/" + (f"?return={quote(wish, safe='/')}" if wish and is_plain(wish) else "")
            return EndpointResponse(303, NO_STORE + cookie + header_line("location", back))
        return EndpointResponse(
            201, b"content-type: application/json\r\n" + NO_STORE + cookie, encode_json(joined.status)
        )

    def claimed(self, claimed: Claimed, *, is_form: bool, wish: str = "") -> EndpointResponse:
        """The pass as a cookie, and on to the shop."""
        cookie = self._cookie(PASS_COOKIES, claimed.pass_jwt, 86_400)
        onward = self.next_url(wish)
        if is_form:
            return EndpointResponse(303, NO_STORE + cookie + header_line("location", onward))
        body = {"next": onward, "expires_at_s": claimed.expires_s, "repeated": claimed.repeated}
        return json_answer(201, body, cookie)

    def forget_pass(self) -> bytes:
        """The header lines that remove the pass from the browser, under both of its names."""
        return b"".join(
            header_line("set-cookie", cookie_line(PASS_COOKIES, "", 0, secure=secure))
            for secure in ((True, False) if self._settings.secure_cookies else (False,))
        )

    def place_of(self, event: str, ask: EndpointRequest) -> str:
        """The place of this request: the bearer token, or the page's cookie."""
        for name, given in ask.headers:
            if len(name) == 13 and name.lower() == b"authorization":
                if not given.startswith(b"Bearer ") and given[:7].lower() != b"bearer ":
                    raise Unauthorised("send the place as a bearer token")
                return given[7:].decode("latin-1")
        cookie = ask.header(b"cookie")
        kept = self._read(cookie, place_cookies(event)) if cookie is not None else ""
        if kept:
            return kept
        raise Unauthorised("send the place you got from join as a bearer token")

    @property
    def secure(self) -> bool:
        """Whether people come by https: then only cookies that are bound to the host count."""
        return self._settings.secure_cookies

    def keeps_place(self, event: str, ask: EndpointRequest) -> bool:
        """Whether this browser keeps a place of the event."""
        cookie = ask.header(b"cookie")
        return cookie is not None and bool(self._read(cookie, place_cookies(event)))

    def _read(self, cookie: bytes, names: tuple[str, str]) -> str:
        return read_cookie(cookie.decode("latin-1"), names_to_read(names, secure=self.secure))

    def _from_hi(self, event: str, ask: EndpointRequest) -> int:
        """How far the window was when this browser joined: where its progress bar begins."""
        kept = self._read(ask.header(b"cookie") or b"", from_cookies(event))
        return int(kept) if kept.isdecimal() and kept.isascii() and len(kept) <= 12 else 0

    def base(self, event: str) -> str:
        """Where this event's endpoints are: at the root, or under their own path."""
        return "" if event == self._settings.root_event else f"/v1/events/{event}/room"

    # -- pieces ------------------------------------------------------------------------------------------------------

    def _cookie(self, names: tuple[str, str], value: str, max_age_s: int) -> bytes:
        return header_line("set-cookie", cookie_line(names, value, max_age_s, secure=self._settings.secure_cookies))

    def _policy(self, human: str) -> str:
        host = CAPTCHA_HOSTS.get(human, "")
        extra, frames = (f" {host}", f"; frame-src {host}") if host else ("", "")
        return (
            f"default-src 'none'; style-src {policy_hash(self._css)}; script-src {policy_hash(self._js)}{extra}; "
            f"connect-src 'self'{extra}{frames}; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        )
