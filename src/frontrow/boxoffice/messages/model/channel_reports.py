"""What a channel's provider reports after it accepted a message, and which addresses get no more messages. Pure.

A report is neutral: the words of SES and Twilio stay in their adapters. An address that bounced for good, whose reader
complained, or who asked to stop, is blocked on its channel. It is kept as a digest, so a person whose data was erased
stays unwritten to without being known.
"""

import hashlib
import re
from enum import StrEnum
from typing import Final

import msgspec

MAX_DETAIL_CHARS: Final = 200
_ADDRESSES: Final = re.compile(r"\S+@\S+|\+\d{6,}")


class ReportKind(StrEnum):
    """What became of a message, or what its reader asked for."""

    DELIVERED = "delivered"
    DELAYED = "delayed"  # it did not arrive this time: a full mailbox, a phone that is off
    BOUNCED = "bounced"  # the address does not exist
    COMPLAINED = "complained"  # the reader said that it is spam
    STOPPED = "stopped"  # the reader wants no more messages
    RESUMED = "resumed"  # the reader wants messages again


BLOCKING: Final = frozenset({ReportKind.BOUNCED, ReportKind.COMPLAINED, ReportKind.STOPPED})


class ChannelReport(msgspec.Struct, frozen=True):
    """One report about one address. `id` identifies it, however often it is delivered."""

    id: str
    kind: ReportKind
    channel: str  # email or sms
    address: str
    detail: str = ""  # in the provider's words
    message_id: str = ""  # of ours, where the provider says it


class BlockedAddress(msgspec.Struct, frozen=True):
    """An address that gets nothing over this channel any more, and why."""

    channel: str
    reason: ReportKind
    detail: str
    since_us: int


def masked_detail(detail: str) -> str:
    """The provider's words without addresses: mail servers repeat them."""
    return _ADDRESSES.sub("…", detail)[:MAX_DETAIL_CHARS]


def address_digest(channel: str, canonical: str) -> str:
    """What stands for an address, in its one spelling, in the ledger."""
    return hashlib.sha256(f"frontrow {channel}:{canonical}".encode()).hexdigest()
