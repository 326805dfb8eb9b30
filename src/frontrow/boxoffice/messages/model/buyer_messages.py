"""Messages from an organiser to the people who have tickets: who gets one, what may be in it, how far it is. Pure.

draft -> sending -> sent. A message goes to the holders of valid tickets: the buyer, or whoever a ticket was transferred
to. Each address gets it once, however many tickets it has. The text is the organiser's own, as light Markdown, with
`{name}`, `{event}`, `{date}` and `{booking}` where a value of the reader belongs.
"""

import re
import unicodedata
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec

from frontrow.core.errors import InvalidInput, NotFound, Refused

MAX_SUBJECT_CHARS: Final = 150
MAX_TEXT_CHARS: Final = 5_000
DAY_US: Final = 86_400_000_000
MAX_PER_DAY: Final = 5  # messages to many people, per event in 24 hours
MAX_PER_BOOKING_AND_DAY: Final = 5  # messages to one booking
VARIABLES: Final = ("name", "event", "date", "booking")
NOT_NEEDED: Final = "the message is no longer needed"  # the outcome for somebody who has no valid ticket any more
_VARIABLE: Final = re.compile(r"\{(\w+)\}")


class UnknownVariable(InvalidInput):
    """The text has a name in braces that stands for nothing."""


class AudienceKind(StrEnum):
    ALL = "all"
    SECTION = "section"
    TIER = "tier"
    BOOKING = "booking"


class Audience(msgspec.Struct, frozen=True):
    """Who gets a message. `key` is the section, the price tier or the booking; empty for all."""

    kind: AudienceKind = AudienceKind.ALL
    key: str = ""


class BuyerMessageState(StrEnum):
    DRAFT = "draft"
    SENDING = "sending"
    SENT = "sent"


class BuyerMessage(msgspec.Struct, frozen=True):
    """A message with how far it is. `recipients` were counted when it was sent; the last three when it was done."""

    id: str
    event_id: str
    made_by: str  # the team member or API key
    audience: Audience
    subject: str
    text: str
    state: BuyerMessageState
    created_at_us: int  # when it was written, then when it was sent
    recipients: int = 0
    last_fence: int = 0  # up to this booking all deliveries are queued
    all_queued: bool = False
    sent: int = 0
    failed: int = 0
    skipped: int = 0


class TicketHolder(msgspec.Struct, frozen=True):
    """Somebody with valid tickets of a booking: its buyer, or the recipient of a transfer."""

    booking_id: str
    fan: str  # of the booking
    transfer_id: str
    address: str  # canonical; empty: there is none

    @property
    def is_buyer(self) -> bool:
        return not self.transfer_id


class AudienceScope(msgspec.Struct, frozen=True):
    """An audience as the ledger selects it: seats from `first` to before `end`, of one tier, of one booking."""

    event_id: str
    plan_hash: str
    first: int
    end: int
    tier: str = ""
    booking_id: str = ""


class RecipientCount(msgspec.Struct, frozen=True):
    """How many addresses a message goes to, and how many holders have none."""

    addresses: int
    without_address: int


class MailCounts(msgspec.Struct, frozen=True):
    """A message's mails by what became of them. `skipped`: no valid ticket any more when it was their turn.

    `untried` is the part of those still waiting that nobody has tried to send yet.
    """

    total: int
    sent: int = 0
    failed: int = 0
    skipped: int = 0
    untried: int = 0

    @property
    def waiting(self) -> int:
        return max(0, self.total - self.sent - self.failed - self.skipped)


class BuyerMessageNotFound(NotFound):
    code = "buyer_message_not_found"

    def __init__(self, message_id: str) -> None:
        super().__init__("this event has no such message", message_id=message_id[:60])


class NoRecipients(Refused):
    """Nobody would get this message."""

    code = "no_recipients"


class TooManyMessages(Refused):
    """The event, or the booking, got all the messages it may get in a day."""

    code = "too_many_messages"


def check_message(subject: str, text: str) -> tuple[str, str]:
    """Subject and text as they are sent; otherwise an `InvalidInput` that names the field."""
    subject, text = " ".join(subject.split()), text.replace("\r\n", "\n").strip()
    for param, value, most in (("subject", subject, MAX_SUBJECT_CHARS), ("text", text, MAX_TEXT_CHARS)):
        if not value:
            raise InvalidInput(f"{param} is required", param=param)
        if len(value) > most:
            raise InvalidInput(f"{param} has at most {most:,} characters, not {len(value):,}", param=param)
        if any(unicodedata.category(letter) in ("Cc", "Cs") and letter not in "\n\t" for letter in value):
            raise InvalidInput(f"{param} has a character that cannot be sent", param=param)
        for name in _VARIABLE.findall(value):
            if name not in VARIABLES:
                known = ", ".join(f"{{{one}}}" for one in VARIABLES)
                raise UnknownVariable(f"there is no {{{name[:40]}}}; there are {known}", param=param)
    return subject, text


def fill_variables(text: str, values: Mapping[str, str]) -> str:
    """The text with the values of one reader. Other braces stay as they are."""
    return _VARIABLE.sub(lambda found: values.get(found[1], found[0]), text)


def check_daily_limit(audience: Audience, sent_to_many: int, sent_to_booking: int) -> TooManyMessages | None:
    """Why this message may not be sent today; None if it may."""
    if audience.kind is AudienceKind.BOOKING:
        if sent_to_booking >= MAX_PER_BOOKING_AND_DAY:
            return TooManyMessages(
                f"a booking gets at most {MAX_PER_BOOKING_AND_DAY} messages in 24 hours; try again tomorrow"
            )
    elif sent_to_many >= MAX_PER_DAY:
        return TooManyMessages(f"an event sends at most {MAX_PER_DAY} messages in 24 hours; try again tomorrow")
    return None
