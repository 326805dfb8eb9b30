"""A fan proves a phone number by a code before the first SMS about tickets goes there.

A code has six digits, works once, for ten minutes and five tries. The ledger has only its digest. The text is sent
while the fan waits, after the code was stored: if it cannot be sent, the fan reads why and asks again.
"""

import hashlib
import hmac
import secrets
from typing import Final

from frontrow.boxoffice.messages.model.messages import CodeAnswer
from frontrow.boxoffice.messages.model.phone_numbers import country_of, read_phone
from frontrow.boxoffice.messages.ports.channels import Sms, SmsProvider
from frontrow.boxoffice.messages.ports.message_book import MessageBook
from frontrow.boxoffice.messages.sms_limits import SmsLimits
from frontrow.boxoffice.texts.message_texts import render
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import InvalidInput, Refused, Unavailable
from frontrow.shared.log_lines import PHONE_CODE_SENT, PHONE_PROVEN

KIND: Final = "phone_code"  # of its text (boxoffice/texts/languages/*.json)
DIGITS: Final = 6
LIFE_S: Final = 600


class SmsOff(Refused):
    """This server sends no SMS."""

    code = "sms_off"


class PhoneStopped(Refused):
    """The number gets no SMS: it does not exist, or its owner answered STOP."""

    code = "phone_stopped"


class SmsNotSent(Unavailable):
    """The SMS provider did not take the code."""

    code = "sms_not_sent"


class WrongPhoneCode(Refused):
    """This is not the code that was sent, or its time is over."""

    code = "wrong_phone_code"


class PhoneProofs:
    """Sends codes and checks them."""

    def __init__(
        self, book: MessageBook, provider: SmsProvider | None, limits: SmsLimits, clock: Clock, key: bytes
    ) -> None:
        self._book, self._provider, self._limits, self._clock, self._key = book, provider, limits, clock, key

    @property
    def offered(self) -> bool:
        """Whether this server sends SMS."""
        return self._provider is not None

    async def send_code(self, fan: str, phone: str, ip: str, locale: str) -> None:
        """Send a code to this number. The one before is void.

        Raises `SmsOff`, `PhoneStopped`, `CountryNotServed`, `TooManyTries` or `SmsNotSent`.
        """
        if self._provider is None:
            raise SmsOff("this server sends no text messages")
        phone = read_phone(phone)
        if not phone:
            raise InvalidInput("a phone number is like +436641234567", param="phone")
        if await self._book.blocked([("sms", phone)]):
            raise PhoneStopped("this number does not take our text messages; text START to our number to allow them")
        await self._limits.count_code(phone, fan, ip)
        code, now_us = f"{secrets.randbelow(10**DIGITS):0{DIGITS}}", self._clock()
        await self._book.put_phone_code(fan, phone, self._digest(fan, phone, code), now_us + LIFE_S * US_PER_S, now_us)
        text = render(KIND, locale, {"code": code, "minutes": LIFE_S // 60}, html=False).short
        outcome = await self._provider.send(Sms(phone, text, f"phone-code-{secrets.token_hex(8)}", now_us))
        if not outcome.sent:
            raise SmsNotSent("the text message could not be sent now; try again in a minute", retry_after_s=60)
        PHONE_CODE_SENT(calling_code=country_of(phone))

    async def confirm(self, fan: str, code: str) -> str:
        """The number that this code proves; it may get SMS from now on. `WrongPhoneCode` otherwise."""
        digits = "".join(char for char in code[:40] if char.isascii() and char.isdigit())
        answer = await self._book.check_phone_code(fan, lambda phone: self._digest(fan, phone, digits), self._clock())
        if answer is CodeAnswer.OVER:
            raise WrongPhoneCode("this code is over; ask for a new one", over=True)
        if answer is CodeAnswer.WRONG:
            raise WrongPhoneCode("this code is not right; look at the text message again")
        contact = await self._book.contact(fan)
        phone = contact.phone if contact is not None else ""
        PHONE_PROVEN(calling_code=country_of(phone) if phone else "")
        return phone

    def _digest(self, fan: str, phone: str, code: str) -> str:
        return hmac.new(self._key, f"{fan}\n{phone}\n{code}".encode(), hashlib.sha256).hexdigest()
