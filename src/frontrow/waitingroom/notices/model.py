"""When a turn is near, and what is kept of somebody who asked to be told. Pure values."""

import re
from enum import StrEnum
from typing import Final

import msgspec

from frontrow.core.errors import InvalidInput
from frontrow.waitingroom.model.config import Phase
from frontrow.waitingroom.model.window import Window

LEAD_S: Final = 300  # how long before the turn people are told
MOST_TRIES: Final = 5
RETRY_S: Final = 30
CLAIM_US: Final = 60_000_000  # how long one server may take to send a notice
MOST_PER_ADDRESS: Final = 3  # notices to one address in one room: nobody is flooded by somebody else
_EMAIL: Final = re.compile(r"[^@\s<>\"',;:\\()\[\]]{1,64}@[^@\s<>\"',;:\\()\[\]]{1,185}")
_PHONE: Final = re.compile(r"\+[1-9][0-9]{6,14}")


class TurnNoticeKind(StrEnum):
    EMAIL = "email"
    SMS = "sms"


class NoticeState(StrEnum):
    WAITING = "waiting"
    SENT = "sent"
    OVER = "over"  # the place was used or has expired before
    FAILED = "failed"


class TurnNotice(msgspec.Struct, frozen=True):
    """What somebody asked for. The address is erased when the notice is sent, or of no use any more."""

    id: str
    event: str
    lane: int
    epoch: int
    arrival: int
    kind: TurnNoticeKind
    address: str
    language: str
    asked_at_us: int
    tries: int = 0
    next_at_us: int = 0


class Nearness(StrEnum):
    FAR = "far"
    NEAR = "near"
    OVER = "over"


def nearness(phase: Phase, window: Window, position: int, rate_milli: int) -> Nearness:
    """Whether to tell the person of this position now. While nobody is let in, no turn is near."""
    if position <= window.lo or phase is Phase.CLOSED:
        return Nearness.OVER if position <= window.lo else Nearness.FAR
    if phase is not Phase.OPEN:
        return Nearness.FAR
    if position <= window.hi:
        return Nearness.NEAR
    return Nearness.NEAR if (position - window.hi) * 1000 <= rate_milli * LEAD_S else Nearness.FAR


def checked_address(kind: TurnNoticeKind, text: str) -> str:
    """An email address, or a phone number with its country."""
    if kind is TurnNoticeKind.EMAIL:
        address = text.strip().lower()
        if _EMAIL.fullmatch(address) and address.isprintable():
            return address
        raise InvalidInput("enter an email address such as ada@example.org", param="to")
    number = re.sub(r"[\s()/.-]", "", text)
    if not _PHONE.fullmatch(number):
        raise InvalidInput("enter a phone number with its country, such as +43 660 1234567", param="to")
    return number
