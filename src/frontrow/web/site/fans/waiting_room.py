"""The waiting-room page inside the platform: in the visitor's language, with the event's name and a way to get ready.

It stays the one self-contained answer of `endpoints.room.page`; only its words and surroundings differ. After the room
it leads to the event's seats.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

from frontrow.boxoffice.events.model.events import Event
from frontrow.core.errors import FrontrowError
from frontrow.waitingroom.notices.model import TurnNoticeKind
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.web.endpoints.room.page import PageSettings
from frontrow.web.endpoints.room.page_texts import REFUSALS, REFUSED
from frontrow.web.http.brand_styles import ShownBrand
from frontrow.web.http.html import safe
from frontrow.web.http.messages import EndpointRequest, EndpointResponse
from frontrow.web.http.overflow_page import Notices
from frontrow.web.site.assets import texts_in
from frontrow.web.site.error_pages import accepted, problem_notice, words_in
from frontrow.web.site.languages import best_language, words_of
from frontrow.web.site.render import as_json


class SiteSurroundings:
    """Implements `PageSurroundings` for the platform. `events` are those of this server by id, `zones` the time zones
    of their venues, `brand_of` how an event is shown; all change while the server runs."""

    def __init__(
        self,
        room: WaitingRoom,
        settings: PageSettings,
        events: Mapping[str, Event],
        zones: Mapping[str, str],
        brand_of: Callable[[Event], ShownBrand | None],
        notice_kinds: tuple[TurnNoticeKind, ...] = (),
    ) -> None:
        """`notice_kinds`: how people can be told before their turn."""
        self._room = room
        self._events = events
        self._zones = zones
        self._brand_of = brand_of
        self._notice_kinds = notice_kinds
        self._own_shop = settings.next_url in ("", "/")
        self._notices = Notices(settings.brand, settings.theme)

    def words(self, request: EndpointRequest, event: str = "") -> Any:
        return words_in(request)

    def shared_words(self, request: EndpointRequest) -> tuple[Any, bytes]:
        return words_of(best_language("", accepted(request))), b"vary: accept-language\r\n"  # no cookie: caches keep it

    def error_text(self, error: FrontrowError, request: EndpointRequest) -> str:
        return str(words_in(request)(REFUSALS.get(error.code, REFUSED)))

    def missing_page(self, error: FrontrowError, request: EndpointRequest) -> EndpointResponse | None:
        return problem_notice(self._notices, request, error, is_form=False)

    def fields(self, event: str, base: str, words: Any) -> dict[str, Any]:
        listed = self._events.get(event)
        return {
            "event_title": listed.name if listed else event,
            "ready_url": f"/ready?back={base}/",
            "home": f"/events/{event}",
            "script_words": script_words(words.language),
            "house": self._brand_of(listed) if listed else None,
            "own_text": "",
            "notice_kinds": self._notice_kinds,
            **self._hint(event, base, words),
        }

    def _hint(self, event: str, base: str, words: Any) -> dict[str, Any]:
        """What somebody should know before joining: the presale, or that everybody has one place."""
        config = self._room.control.view(event).state.config
        if config.codes_until_us > self._room.sale_clock():
            when = words.when(config.codes_until_us, self._zones.get(event, "UTC"))
            text = words("This is a presale for people with a code. The general sale begins {when}.", when=when)
            return {"hint": text, "hint_link": (f"/events/{event}", words("About the sale"))}
        if config.one_place_per_person:
            text = words("In this queue everyone has one place. Please sign in before you join.")
            return {"hint": text, "hint_link": (f"/sign-in?back={base}/", words("Sign in"))}
        return {"hint": "", "hint_link": ("", "")}

    def default_wish(self, event: str) -> str:
        return f"/events/{event}/seats" if self._own_shop else ""

    def shop_url(self, event: str) -> str | None:
        return None


@lru_cache
def script_words(language: str) -> Any:
    """The translations of the page's script, once a language."""
    source = (files("frontrow.web") / "templates" / "room.js").read_text("utf-8")
    words = words_of(language)
    found = words.chosen(frozenset(texts_in(source)))
    if found:  # the script has only the code of a refusal; in English it shows the refusal's own sentence
        found |= {code: words(text) for code, text in REFUSALS.items()}
    return as_json(found) if found else safe("")
