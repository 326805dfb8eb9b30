"""The languages of the pages: gettext catalogues, and how dates, numbers and money are written.

A text is its own key, in English, with `{names}` as placeholders. A text that depends on a number has a singular and a
plural (`ngettext`). Each language has one catalogue per group of pages (`translations/<language>/<group>.po`), plus
`shared.po` for texts of several groups. The catalogues are read once, at start-up.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from io import BytesIO
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from babel import Locale, negotiate_locale
from babel.dates import format_date, format_skeleton, format_time
from babel.messages.pofile import read_po
from babel.numbers import format_currency, format_decimal, get_currency_precision
from markupsafe import Markup

from frontrow.boxoffice.seats.model.seat_names import name_in, seat_text
from frontrow.boxoffice.texts.locale_formats import LOCALES
from frontrow.core.clock import US_PER_S
from frontrow.web.http.html import N_ as N_

LANGUAGES: Final = {
    "en": "English",
    "de": "Deutsch",
    "fr": "Français",
    "es": "Español",
    "pt": "Português",
    "ja": "日本語",
    "ar": "العربية",
}
DEFAULT: Final = "en"
RIGHT_TO_LEFT: Final = frozenset({"ar"})
DAY_AND_TIME: Final = {"ja": " ", "ar": "، "}  # what stands between a day and a time, if not a comma
MAX_ACCEPTED: Final = 20
MAX_CACHED_AMOUNTS: Final = 4_096
# The order of plural forms in a catalogue that has all six, as gettext orders them for Arabic. Scripts use it too.
PLURAL_CATEGORIES: Final = ("zero", "one", "two", "few", "many", "other")
_ISOLATES: Final = "\u2068\u2069"
_ZONE_LETTERS: Final = re.compile(r"[A-Z]{2,5}")
_NAME: Final = re.compile(r"\{(\w+)\}")


class FilledText(str):
    """A text with the numbers and names to put into it, for messages that are translated later."""

    values: dict[str, int | str]

    def __new__(cls, text: str, **values: int | str) -> "FilledText":
        made = super().__new__(cls, text)
        made.values = values
        return made


class DateLeaf(NamedTuple):
    """A day as a leaf of a calendar shows it."""

    weekday: str
    day: str
    month: str


class Words:
    """One language: looks texts up and writes numbers, money and times as its readers expect."""

    def __init__(self, language: str, texts: Mapping[str, str], plurals: Mapping[str, tuple[str, ...]]) -> None:
        self.language, self._texts, self._plurals = language, texts, plurals
        self.direction = "rtl" if language in RIGHT_TO_LEFT else "ltr"
        self._locale = Locale.parse(LOCALES.get(language, language))
        self.tag = str(self._locale).replace("_", "-")  # for `lang` of a page: scripts format by it
        pattern = self._locale.currency_formats["standard"].pattern
        # Formatting an amount takes 40 µs, and a page of seats repeats the same amounts hundreds of times.
        self._number = lru_cache(MAX_CACHED_AMOUNTS)(self._write_number)
        self._money = lru_cache(MAX_CACHED_AMOUNTS)(self._write_money)
        self._pattern, self._whole_pattern = pattern, re.sub(r"\.0+", "", pattern)

    def __call__(self, text: str, **values: Any) -> str:
        """`text` in this language, with `{names}` replaced."""
        found = self._texts.get(text, text)
        if isinstance(text, FilledText):
            values = {
                name: self.number(value) if isinstance(value, int) else value for name, value in text.values.items()
            }
        return _fill(found, self._isolated(values)) if values else found

    def ngettext(self, one: str, many: str, n: int, **values: Any) -> str:
        """The form of the text for `n`, with `{n}` replaced by the number and the other `{names}` by `values`."""
        forms, category = self._plurals.get(one, (one, many)), self._locale.plural_form(n)
        if len(forms) == len(PLURAL_CATEGORIES):
            index = PLURAL_CATEGORIES.index(category)
        else:
            index = 0 if category == "one" else -1
        return _fill(forms[index], {"n": self.number(n), **self._isolated(values)})

    def _isolated(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """In a right-to-left language, values keep their own order: a seat "A-1-12" and a date stay as they are."""
        if self.direction == "ltr":
            return values
        return {name: isolate(value) if isinstance(value, str) else value for name, value in values.items()}

    def chosen(self, texts: frozenset[str]) -> dict[str, str | tuple[str, ...]]:
        """The translations of those texts, for a script; plural texts as their forms. Empty for English."""
        translations: dict[str, str | tuple[str, ...]] = {**self._texts, **self._plurals}
        return {text: translations[text] for text in sorted(texts) if text in translations}

    def seat(self, section: str, row: str, number: str) -> str:
        """The name of a seat, as mails, tickets and lists call it too."""
        return seat_text((section, row, number), self.language)

    def seats(self, ids: Iterable[str], place: Callable[[str], tuple[str, str, str]]) -> str:
        """The names of several seats; `place` knows the section, row and number of an id."""
        return "; ".join(self.seat(*place(one)) for one in ids)

    def names(self, texts: Iterable[str]) -> str:
        """Names of seats and of other things, in this language."""
        return "; ".join(name_in(text, self.language) for text in texts)

    def rate(self, basis_points: int) -> str:
        """A number of percent, such as 13 or 7.5."""
        return str(format_decimal(Decimal(basis_points) / 100, locale=self._locale))

    def number(self, value: int) -> str:
        return self._number(value)

    def money(self, minor: int, currency: str) -> str:
        """An amount, without decimals when there are none."""
        return self._money(minor, currency)

    def _write_number(self, value: int) -> str:
        return str(format_decimal(value, locale=self._locale))

    def _write_money(self, minor: int, currency: str) -> str:
        digits = get_currency_precision(currency)
        amount = Decimal(minor).scaleb(-digits)
        pattern = self._whole_pattern if amount == int(amount) else self._pattern
        return str(format_currency(amount, currency, pattern, self._locale, currency_digits=False))

    def when(self, at_us: int, zone: str = "", *, short: bool = False) -> str:
        """A moment as the clock at `zone` shows it, in this language's order. Without a zone it is in UTC, and says
        so: the page is about no place."""
        moment, where = datetime.fromtimestamp(at_us / US_PER_S, UTC), ZoneInfo(zone or "UTC")
        day = format_skeleton("MMMd" if short else "yMMMEd", moment, tzinfo=where, locale=self._locale)
        between = DAY_AND_TIME.get(self.language, ", ")
        text = (
            f"{day}{between}{format_time(moment, 'HH:mm', tzinfo=where, locale=self._locale)}{'' if zone else ' UTC'}"
        )
        return isolate(text) if self.direction == "rtl" else text

    def zoned(self, at_us: int, zone: str = "", *, short: bool = False) -> str:
        """As `when`, and which clock that is ("20:00 CET"): whoever sells may be in another zone than the venue."""
        text = self.when(at_us, zone, short=short)
        if not zone or zone == "UTC":
            return text if not zone else f"{text} UTC"
        moment, where = datetime.fromtimestamp(at_us / US_PER_S, UTC), ZoneInfo(zone)
        name = str(format_time(moment, "z", tzinfo=where, locale=self._locale))
        if not _ZONE_LETTERS.fullmatch(name):  # this language has no letters for it
            offset = f"{moment.astimezone(where):%z}"
            name = f"UTC{offset[:3]}:{offset[3:5]}".removesuffix(":00")
        named = f"{text.strip(_ISOLATES)} {name}"
        return isolate(named) if self.direction == "rtl" else named

    def leaf(self, at_us: int, zone: str) -> DateLeaf:
        """Weekday, day and month as the calendar at `zone` shows them, each short."""
        day = datetime.fromtimestamp(at_us / US_PER_S, ZoneInfo(zone or "UTC")).date()
        return DateLeaf(*(str(format_date(day, part, locale=self._locale)) for part in ("EEE", "d", "MMM")))

    def month(self, at_us: int, zone: str) -> str:
        """The month and its year at `zone`."""
        moment = datetime.fromtimestamp(at_us / US_PER_S, UTC)
        text = str(format_skeleton("yMMMM", moment, tzinfo=ZoneInfo(zone or "UTC"), locale=self._locale))
        return text[:1].upper() + text[1:]

    def day(self, iso: str) -> str:
        """A day such as 2026-11-16, in this language's order."""
        return str(format_date(date.fromisoformat(iso), "medium", locale=self._locale))

    def clock_time(self, at_us: int, zone: str = "UTC", *, seconds: bool = False) -> str:
        """The time of day as the clock at `zone` shows it."""
        moment = datetime.fromtimestamp(at_us / US_PER_S, UTC)
        return str(format_time(moment, "HH:mm:ss" if seconds else "HH:mm", tzinfo=ZoneInfo(zone), locale=self._locale))


def isolate(text: str) -> str:
    """A text that its surroundings cannot reorder (Unicode's first strong isolate); markup is left alone."""
    return text if isinstance(text, Markup) or not text else f"\u2068{text}\u2069"


def _fill(text: str, values: Mapping[str, Any]) -> str:
    return _NAME.sub(lambda name: str(values[name[1]]), text)


@lru_cache
def words_of(language: str) -> Words:
    """The words of a language; its catalogues are read once."""
    texts: dict[str, str] = {}
    plurals: dict[str, tuple[str, ...]] = {}
    if language != DEFAULT:
        for catalogue in catalogues(language):
            for message in read_po(BytesIO(catalogue.read_bytes()), locale=language):
                if isinstance(message.id, str) and message.id and isinstance(message.string, str) and message.string:
                    texts[message.id] = message.string
                elif isinstance(message.id, list | tuple) and isinstance(message.string, list | tuple):
                    plurals[message.id[0]] = tuple(message.string)
    return Words(language, texts, plurals)


def catalogues(language: str) -> list[Traversable]:
    """The catalogue files of a language, in alphabetical order."""
    folder = files("frontrow.web") / "translations" / language
    if not folder.is_dir():
        return []
    return sorted((one for one in folder.iterdir() if one.name.endswith(".po")), key=lambda one: one.name)


def load_all() -> None:
    """Read every language now, so that no visitor waits for it."""
    for language in LANGUAGES:
        words_of(language)


def best_language(cookie: str, accepted: str) -> str:
    """The language chosen by cookie, else the best match for `Accept-Language`, else English.

    Babel chooses; the header's weights are read here, because no library that we need reads them (ADR 0123).
    """
    if cookie in LANGUAGES:
        return cookie
    preferred: list[tuple[float, str]] = []
    for part in accepted.split(",")[:MAX_ACCEPTED]:
        name, _, weight = part.strip().partition(";")
        try:
            quality = float(weight.strip().removeprefix("q=")) if weight else 1.0
        except ValueError:
            quality = 0.0
        if quality > 0:
            preferred.append((quality, name.lower()))
    preferred.sort(key=lambda one: -one[0])  # stable: equal weights keep the browser's order
    return negotiate_locale([name for _, name in preferred], list(LANGUAGES), sep="-") or DEFAULT
