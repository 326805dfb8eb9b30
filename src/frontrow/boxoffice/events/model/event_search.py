"""Event search (B1): what a fan can search for, and the words that find an event.

Words are compared in a folded form: compatibility forms and letter case are removed, and so are accents of alphabets
in which people leave them out (Latin, Greek, Cyrillic, Hebrew, Arabic). A search matches an event if each of its words
begins a word of the event. Scripts written without spaces (Chinese, Japanese, Thai and others) are indexed from every
character on, so that any part of a name is found. City and venue are whole folded names with a prefix of their own,
which no plain word can contain.
"""

import re
import unicodedata
from collections.abc import Iterable
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from frontrow.boxoffice.events.model.events import Event, EventStatus
from frontrow.boxoffice.seats.model.venues import Venue
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import InvalidInput

MAX_QUERY_CHARS: Final = 200
MAX_PLACE_CHARS: Final = 100
MAX_QUERY_WORDS: Final = 6
MAX_EVENT_WORDS: Final = 300  # per event; a longer description is found by its beginning
MAX_WORD_CHARS: Final = 40
MAX_PAGE: Final = 100
MAX_PAGES: Final = 100  # of the numbered pages; a search that gets there should be narrower
END_OF_TIME_US: Final = 2**62
LISTED: Final = frozenset({EventStatus.ON_SALE, EventStatus.SOLD_OUT})
CITY, VENUE, VENUE_ID = "city:", "venue:", "id:"
LAST_CHARACTER: Final = "\U0010ffff"  # sorts after every character of a word

_VENUE_ID: Final = re.compile(r"ven_[A-Za-z0-9_-]{1,60}")
_ACCENTED: Final = ("LATIN", "GREEK", "CYRILLIC", "HEBREW", "ARABIC")
_UNSPACED: Final = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")
_PLAIN: Final = str.maketrans({"ø": "o", "đ": "d", "ð": "d", "ł": "l", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"})


class EventSearch(msgspec.Struct, frozen=True):
    """A search; the default finds everything on sale. The later of two times is excluded.

    `status` None means on sale or sold out. `local_*` are local times at the venue, read as if they were UTC: what a
    fan means by a date. Prices are in minor units of `currency`, or of the event's currency if that is empty; -1 means
    no limit. `free` is how many seats must be left. A page follows `after`, or has a number.
    """

    words: str = ""
    status: EventStatus | None = EventStatus.ON_SALE
    city: str = ""
    venue: str = ""
    from_us: int = 0
    before_us: int = END_OF_TIME_US
    local_from_us: int = -END_OF_TIME_US
    local_before_us: int = END_OF_TIME_US
    sale_from_us: int = 0
    sale_before_us: int = END_OF_TIME_US
    sale_ends_after_us: int = -1
    currency: str = ""
    min_price_minor: int = -1
    max_price_minor: int = -1
    free: int = 0
    after: tuple[int, str] = (-1, "")
    page: int = 1
    limit: int = 20

    def check(self) -> None:
        """Refuse what the index cannot answer in bounded time."""
        if not 1 <= self.limit <= MAX_PAGE:
            raise InvalidInput(f"limit must be 1 to {MAX_PAGE}, not {self.limit}", param="limit")
        if not 1 <= self.page <= MAX_PAGES:
            raise InvalidInput(f"page must be 1 to {MAX_PAGES}; narrow the search instead", param="page")
        if len(self.words) > MAX_QUERY_CHARS:
            raise InvalidInput(f"a search has at most {MAX_QUERY_CHARS} characters", param="q")
        for name, value in (("city", self.city), ("venue", self.venue)):
            if len(value) > MAX_PLACE_CHARS:
                raise InvalidInput(f"{name} has at most {MAX_PLACE_CHARS} characters", param=name)

    def terms(self) -> list[str]:
        """The terms to look up: an event matches if, for each term, it has a word that begins with it."""
        terms = list(dict.fromkeys(split_words(self.words)))[:MAX_QUERY_WORDS]
        if fold(self.city):
            terms.append(CITY + fold(self.city))
        if _VENUE_ID.fullmatch(self.venue):
            terms.append(VENUE_ID + self.venue)
        elif fold(self.venue):
            terms.append(VENUE + fold(self.venue))
        return terms


def local_us(at_us: int, time_zone: str) -> int:
    """The local time in `time_zone` at that moment, in microseconds as if it were UTC."""
    try:
        moment = datetime.fromtimestamp(at_us // US_PER_S, ZoneInfo(time_zone))
    except (ZoneInfoNotFoundError, ValueError, OverflowError, OSError):
        return at_us
    offset = moment.utcoffset()
    return at_us + (int(offset.total_seconds()) * US_PER_S if offset is not None else 0)


def term_bounds(term: str) -> tuple[str, str]:
    """The half-open range of words that begin with `term`; an id must be the whole word."""
    return (term, term + "\x01") if term.startswith(VENUE_ID) else (term, term + LAST_CHARACTER)


def fold(text: str) -> str:
    """`text` without case, compatibility forms, accents and punctuation; words are separated by one space."""
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_PLAIN)
    kept: list[str] = []
    base = ""
    for character in unicodedata.normalize("NFD", folded):
        if unicodedata.category(character) == "Mn":
            if not _is_in_script(base, _ACCENTED):
                kept.append(character)
            continue
        base = character
        kept.append(character if character.isalnum() or unicodedata.category(character) == "Mc" else " ")
    return " ".join(unicodedata.normalize("NFC", "".join(kept)).split())


def split_words(text: str) -> list[str]:
    """The folded words of a text, each cut to a bounded length."""
    return [word[:MAX_WORD_CHARS] for word in fold(text).split()]


def event_words(event: Event) -> list[str]:
    """The words that find an event, without those of its venue."""
    return index_texts((event.name, event.description))


def venue_words(venue: Venue) -> list[str]:
    """The words of a venue that find its events."""
    words = index_texts((venue.name, venue.city, venue.country))
    for tag, name in ((CITY, fold(venue.city)), (VENUE, fold(venue.name))):
        words += [tag + name[:MAX_PLACE_CHARS]] if name else []
    return [*words, VENUE_ID + venue.id]


def index_texts(texts: Iterable[str]) -> list[str]:
    """At most `MAX_EVENT_WORDS` distinct words that find something with these texts."""
    words: dict[str, None] = {}
    for text in texts:
        for word in split_words(text):
            unspaced = any(_is_in_script(character, _UNSPACED) for character in word)
            words |= dict.fromkeys(word[start:] for start in (range(len(word)) if unspaced else (0,)))
            if len(words) >= MAX_EVENT_WORDS:
                return list(words)[:MAX_EVENT_WORDS]
    return list(words)


def _is_in_script(character: str, scripts: tuple[str, ...]) -> bool:
    return bool(character) and unicodedata.name(character, "").startswith(scripts)
