"""What organisers type: money, percentages, moments in a venue's time, whole numbers; with what is wrong by field.

Nothing typed is lost: a page that refuses shows the form again as it came (`Form.first`), with `Errors` beside it.
"""

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo

from babel.numbers import get_currency_precision

from frontrow.core.clock import US_PER_S
from frontrow.core.errors import FrontrowError
from frontrow.waitingroom.model.config import MAX_NUMBER
from frontrow.web.site.languages import N_, FilledText
from frontrow.web.site.routes import Form

NEEDED: Final = N_("Please fill this in.")
BAD_PRICE: Final = N_("Type an amount such as 45 or 45.50.")
BAD_PERCENT: Final = N_("Type a percentage from 0 to 100, such as 2.5.")
BAD_TAX: Final = N_("A tax rate is a number from 0 to 50, like 19 or 5.5.")
OUT_OF_RANGE: Final = N_("Type a whole number from {low} to {high}.")
BAD_TIME: Final = N_("Choose a date and a time.")
OTHERWISE: Final = N_("That is not possible.")
MAX_MINOR: Final = 10**10
_LOCAL: Final = "%Y-%m-%dT%H:%M"

# parameter of a service -> the form's field and the message there
PARAMS: Final = {
    "name": ("name", NEEDED),
    "ends_at": ("ends", N_("The show must end after it starts.")),
    "starts_at": ("starts", N_("The show would have begun already.")),
    "sale_ends_at": ("sale_ends", N_("The sale must end after it starts, and later than now.")),
    "venue": ("venue", N_("Choose a venue.")),
    "currency": ("currency", N_("A currency has three letters, such as EUR.")),
    "seats": ("seats", N_("A template has 20 to 200,000 seats.")),
    "time_zone": ("time_zone", N_("Choose a time zone from the list.")),
    "country": ("country", N_("A country has two letters, such as AT.")),
    "city": ("city", OTHERWISE),
    "withheld": ("withheld", N_("Someone holds or has bought one of these seats.")),
    "tiers": ("form", N_("Every price tier needs a price.")),
    "tax_basis_points": ("tax", BAD_TAX),
    "lanes": ("code_lane", N_("A lane's name has letters, digits, dots or dashes and differs from the other lane's.")),
    "depth_cap": ("depth", FilledText(OUT_OF_RANGE, low=0, high=MAX_NUMBER)),
    "human": ("human", N_("This server is not set up for that check.")),
    "presale_starts_at": ("presale", N_("The presale must start before the sale; once it has begun it cannot move.")),
}


class Typed(dict[str, str]):
    """The values of fields; a missing field is empty."""

    def __missing__(self, name: str) -> str:
        return ""


class Errors(dict[str, str]):
    """Error messages by field; a correct field has none."""

    def __missing__(self, field: str) -> str:
        return ""

    def add_error(self, error: FrontrowError) -> None:
        """Add the error of a service at the field it is about."""
        field, text = PARAMS.get(error.param or "", ("form", OTHERWISE))
        self.setdefault(field, text)


class Reading:
    """Reads the fields of one form."""

    def __init__(self, form: Form, zone: str = "UTC", currency: str = "EUR") -> None:
        self.form, self.errors = form, Errors()
        self._zone, self._digits = ZoneInfo(zone), get_currency_precision(currency)

    def text(self, name: str, most_chars: int = 200, *, needed: bool = True) -> str:
        found = self.form.one(name, most_chars)
        if needed and not found:
            self.errors[name] = NEEDED
        return found

    def money(self, name: str, *, needed: bool = False) -> int:
        """An amount in the smallest unit; an empty field is nothing."""
        found = self.form.one(name, 20).replace(" ", "").replace(",", ".")
        if not found:
            if needed:
                self.errors[name] = NEEDED
            return 0
        pattern = rf"[0-9]{{1,10}}(\.[0-9]{{1,{self._digits}}})?" if self._digits else "[0-9]{1,10}"
        minor = int(Decimal(found).scaleb(self._digits)) if re.fullmatch(pattern, found, re.ASCII) else MAX_MINOR + 1
        if minor > MAX_MINOR:
            self.errors[name] = BAD_PRICE
        return minor

    def percent(self, name: str, most_points: int = 10_000, wrong: str = BAD_PERCENT) -> int:
        """Hundredths of a percent; an empty field is nothing."""
        found = self.form.one(name, 8).replace(",", ".") or "0"
        typed = re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,2})?", found, re.ASCII)
        points = int(Decimal(found) * 100) if typed else most_points + 1
        if points > most_points:
            self.errors[name] = wrong
        return points

    def whole(self, name: str, low: int, high: int) -> int:
        found = self.form.one(name, 9)
        number = int(found) if found.isascii() and found.isdigit() else -1
        if not low <= number <= high:
            self.errors[name] = FilledText(OUT_OF_RANGE, low=low, high=high) if found else NEEDED
        return number

    def when(self, name: str, *, needed: bool = True) -> int:
        """A moment as the clock at the venue shows it, in microseconds; 0 for an empty field."""
        found = self.form.one(name, 25)[:16]
        if not found and not needed:
            return 0
        at_us = read_local(found, self._zone)
        if at_us is None:
            self.errors[name] = BAD_TIME
        return at_us or 0


def read_local(text: str, zone: ZoneInfo) -> int | None:
    """The moment a `datetime-local` field names; None if it names none."""
    try:
        moment = datetime.strptime(text, _LOCAL).replace(tzinfo=zone)
        at_us = int(moment.timestamp()) * US_PER_S
    except (ValueError, OverflowError):
        return None
    return at_us if at_us > 0 else None


def local_text(at_us: int, zone: str) -> str:
    """A moment for a `datetime-local` field; empty for none."""
    return datetime.fromtimestamp(at_us / US_PER_S, UTC).astimezone(ZoneInfo(zone)).strftime(_LOCAL) if at_us else ""


def money_text(minor: int, currency: str) -> str:
    """An amount for a field."""
    digits = get_currency_precision(currency)
    return f"{Decimal(minor).scaleb(-digits):.{digits}f}"


def percent_text(points: int) -> str:
    return f"{points / 100:g}"
