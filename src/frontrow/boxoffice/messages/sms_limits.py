"""How many SMS go to one number and to one country, so that nobody can make us pay for calls to numbers of their own.

Every SMS counts, codes included. Codes also count per person and per network address. What is counted is shared by all
servers that have a Redis.
"""

from collections.abc import Sequence
from typing import Final

from frontrow.boxoffice.attempt_limit import AttemptLimit
from frontrow.boxoffice.messages.model.phone_numbers import check_country, country_of
from frontrow.core.clock import Clock

CODES_PER_NUMBER: Final = ("3/hour", "6/day")
CODES_PER_FAN: Final = ("5/hour", "10/day")
CODES_PER_IP: Final = ("20/hour",)


class SmsLimits:
    """Counts SMS and refuses those over a cap."""

    def __init__(
        self, store: str, clock: Clock | None, *, per_number: str, per_country: str, countries: Sequence[str] = ()
    ) -> None:
        self._countries = tuple(countries)
        self._number = AttemptLimit("sms-number", [per_number], store, clock)
        self._country = AttemptLimit("sms-country", [per_country], store, clock)
        self._code_number = AttemptLimit("sms-code-number", CODES_PER_NUMBER, store, clock)
        self._code_fan = AttemptLimit("sms-code-fan", CODES_PER_FAN, store, clock)
        self._code_ip = AttemptLimit("sms-code-ip", CODES_PER_IP, store, clock)

    def check_country(self, phone: str) -> None:
        """Raise `CountryNotServed` if no SMS goes there."""
        check_country(phone, self._countries)

    async def count(self, phone: str) -> None:
        """Count one SMS before it is sent. Raises `CountryNotServed` or `TooManyTries`."""
        self.check_country(phone)
        await self._number.count_attempt(phone)
        await self._country.count_attempt(country_of(phone))

    async def count_code(self, phone: str, fan: str, ip: str) -> None:
        """Count a code that somebody asked for, and its SMS."""
        self.check_country(phone)
        await self._code_ip.count_attempt(ip)
        await self._code_fan.count_attempt(fan)
        await self._code_number.count_attempt(phone)
        await self.count(phone)

    async def aclose(self) -> None:
        for one in (self._number, self._country, self._code_number, self._code_fan, self._code_ip):
            await one.aclose()
