"""The waiting-room page inside the platform: in the visitor's language, with the event's name and a way to get ready.

It stays the one self-contained answer of `room_pages`, so that the hot lane can give it to millions; only its words and
surroundings differ. After the room it leads to the event's seats.
"""

import re
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

from frontrow.boxoffice.model.events import Event
from frontrow.web.page_parts import safe
from frontrow.web.room_pages import RoomPages
from frontrow.web.site.assets import texts_in
from frontrow.web.site.render import LANGUAGE_COOKIE, as_json
from frontrow.web.site.words import best_language, words_of
from frontrow.web.wire import Ask

_COOKIE: Final = re.compile(rb"(?:^|; )" + LANGUAGE_COOKIE.encode() + rb"=([a-z]{2})(?:;|$)")


class SiteRoomPages(RoomPages):
    """See the module. `events` are those of this server, by id."""

    events: dict[str, Event] = {}  # noqa: RUF012 - set once, by the composition

    def words(self, ask: Ask) -> Any:
        chosen = _COOKIE.search(ask.header(b"cookie") or b"")
        accepted = (ask.header(b"accept-language") or b"")[:200].decode("latin-1")
        return words_of(best_language(chosen[1].decode() if chosen else "", accepted))

    def surroundings(self, event: str, words: Any) -> dict[str, Any]:
        known = self.events.get(event)
        return {
            "event_title": known.name if known else event,
            "ready_url": f"/ready?back={self.base(event)}/",
            "home": f"/events/{event}",
            "script_words": script_words(words.language),
        }

    def default_wish(self, event: str) -> str:
        return f"/events/{event}/seats" if self._settings.next_url == "/" else ""


@lru_cache
def script_words(language: str) -> Any:
    """The translations of the page's script, once a language."""
    source = (files("frontrow.web") / "pages" / "room.js").read_text("utf-8")
    found = words_of(language).chosen(frozenset(texts_in(source)))
    return as_json(found) if found else safe("")
