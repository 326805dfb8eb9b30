"""Formats money, numbers and times in each language, and selects plural forms (CLDR data from babel).

Mails, ticket PDFs and receipts all format with `formats_of(language)`. Times are in the venue's time zone. In a
right-to-left language a value inside a sentence is isolated, so that "A-1-12" keeps its order.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from babel import Locale
from babel.dates import format_date, format_time, get_timezone_location
from babel.numbers import format_currency, format_decimal

from frontrow.shared.local_time import local_time, zone
from frontrow.shared.money import DIGITS, Money

LANGUAGES: Final = ("en", "de", "fr", "es", "pt", "ja", "ar")
DEFAULT_LANGUAGE: Final = "en"
RIGHT_TO_LEFT: Final = frozenset({"ar"})
LOCALES: Final = {"en": "en_GB", "pt": "pt_PT"}  # of a language that is written differently in several countries
KEPT: Final = 2_048


@dataclass(frozen=True, slots=True)
class Moment:
    """A time in a time zone."""

    at_us: int
    time_zone: str


class LocaleFormats:
    """Formats values in one language."""

    def __init__(self, language: str) -> None:
        self.language = language
        self.right_to_left = language in RIGHT_TO_LEFT
        self.direction = "rtl" if self.right_to_left else "ltr"
        self._locale = Locale.parse(LOCALES.get(language, language))
        self.money = lru_cache(KEPT)(self._money)
        self.day = lru_cache(KEPT)(self._day)
        self.clock_time = lru_cache(KEPT)(self._clock_time)
        self.city = lru_cache(KEPT)(self._city)

    def number(self, value: int) -> str:
        return str(format_decimal(value, locale=self._locale))

    def percent(self, basis_points: int) -> str:
        """A tax rate. 1900 basis points are 19%, with a space before the sign where the language has one."""
        sign = "\u00a0%" if "\u00a0" in self._locale.percent_formats[None].pattern else "%"
        return str(format_decimal(Decimal(basis_points) / 100, locale=self._locale)) + sign

    def _money(self, money: Money) -> str:
        """The amount with all its cents."""
        digits = DIGITS.get(money.currency, 2)
        amount = Decimal(money.minor).scaleb(-digits)
        pattern = re.sub(
            r"\.0+", f".{'0' * digits}" if digits else "", self._locale.currency_formats["standard"].pattern
        )
        return str(format_currency(amount, money.currency, pattern, self._locale, currency_digits=False))

    def _day(self, moment: Moment) -> str:
        return str(format_date(local_time(moment.at_us, moment.time_zone), "full", locale=self._locale))

    def _clock_time(self, moment: Moment) -> str:
        local = local_time(moment.at_us, moment.time_zone)
        return str(format_time(local, "HH:mm", tzinfo=zone(moment.time_zone), locale=self._locale))

    def _city(self, time_zone: str) -> str:
        """The city of a time zone in this language, or UTC."""
        found = zone(time_zone)
        if not isinstance(found, ZoneInfo) or time_zone in ("UTC", "Etc/UTC"):
            return "UTC"
        return str(get_timezone_location(found, locale=self._locale, return_city=True))

    def plural(self, count: int) -> str:
        """The CLDR plural category of a whole number: one, two, few, many, other, …"""
        return str(self._locale.plural_form(count))


@lru_cache
def formats_of(language: str) -> LocaleFormats:
    """The formats of one of LANGUAGES, or of English for any other."""
    return LocaleFormats(language if language in LANGUAGES else DEFAULT_LANGUAGE)


def language_of(locale: str) -> str:
    """`de` for `de`, `de-AT` and `de_CH`; English for languages without texts."""
    base = locale.replace("_", "-").partition("-")[0].lower()
    return base if base in LANGUAGES else DEFAULT_LANGUAGE
