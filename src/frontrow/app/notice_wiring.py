"""Sends the notices of waiting rooms through the platform's channels, in the visitor's language.

Nobody has proven the number that they type into a room's page. So SMS go only to countries that the operator has named
(`messages.sms_countries`), within the caps per number and country.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from frontrow.boxoffice.adapters.channels.from_settings import MessageSettings, open_mail, open_sms, open_sms_limits
from frontrow.boxoffice.adapters.channels.sms import SmsChannel
from frontrow.boxoffice.messages.deliveries import OpenAddresses
from frontrow.boxoffice.messages.model.messages import Contact, Message
from frontrow.boxoffice.messages.ports.channels import Channel, SmsProvider
from frontrow.boxoffice.messages.ports.message_book import MessageBook
from frontrow.boxoffice.messages.sms_limits import SmsLimits
from frontrow.core.clock import Clock
from frontrow.settings.platform import PlatformSettings
from frontrow.settings.room import RoomSettings
from frontrow.waitingroom.console.postgres_book import PostgresConsole
from frontrow.waitingroom.console.sql_book import ConsoleDatabase
from frontrow.waitingroom.console.sqlite_book import SqliteConsole
from frontrow.waitingroom.notices.model import TurnNotice, TurnNoticeKind
from frontrow.waitingroom.notices.sql_notices import SqlNoticeBook
from frontrow.waitingroom.notices.turn_notices import NoticeSender, Sent, TurnNotices
from frontrow.waitingroom.service.room import WaitingRoom
from frontrow.web.site.console.notices import SUBJECT, TEXT
from frontrow.web.site.languages import words_of

TIMEOUT_S: Final = 4.0
BOOK_FILE: Final = "console.sqlite"
PLATFORM_FILE: Final = "room-notices.sqlite"


class ChannelSender:
    """Implements `NoticeSender` by one of the platform's channels."""

    def __init__(self, channel: Channel, base_url: str) -> None:
        self._channel, self._base_url = channel, base_url

    async def send(self, notice: TurnNotice) -> Sent:
        words = words_of(notice.language)
        url = f"{self._base_url}/v1/events/{notice.event}/room/"
        text = words(TEXT, url=url)
        email = notice.address if notice.kind is TurnNoticeKind.EMAIL else ""
        phone = notice.address if notice.kind is TurnNoticeKind.SMS else ""
        contact = Contact("", email, phone, notice.language, proven_phone=phone)
        message = Message(notice.id, "turn_near", contact, words(SUBJECT), text, short=text, url=url)
        outcome = (await self._channel.send([message]))[0]
        return Sent(outcome.sent, outcome.final)


def open_notices(settings: RoomSettings, messages: MessageSettings, room: WaitingRoom, clock: Clock) -> TurnNotices:
    """The notices of a room that is served alone; without a channel nobody is offered any."""
    base = settings.public_url.rstrip("/") or f"http://{settings.host}:{settings.port}"
    senders: dict[TurnNoticeKind, NoticeSender] = {}
    if settings.mail:
        senders[TurnNoticeKind.EMAIL] = ChannelSender(open_mail(settings.mail, messages, clock), base)
    sms = open_sms(messages, base) if messages.sms_countries else None
    if sms is not None:
        limits = open_sms_limits(messages, settings.limit_store, clock)
        senders[TurnNoticeKind.SMS] = ChannelSender(SmsChannel(sms, limits), base)
    return TurnNotices(SqlNoticeBook(open_database(settings)), room, senders, clock)


def platform_senders(
    settings: PlatformSettings, book: MessageBook, mail: Channel, sms: SmsProvider | None, limits: SmsLimits
) -> dict[TurnNoticeKind, NoticeSender]:
    """The platform's channels. SMS only to countries that the operator has named, and nothing to blocked addresses."""
    base = settings.public_url.rstrip("/")
    senders: dict[TurnNoticeKind, NoticeSender] = {TurnNoticeKind.EMAIL: ChannelSender(mail, base)}
    if sms is not None and settings.messages.sms_countries:
        senders[TurnNoticeKind.SMS] = ChannelSender(OpenAddresses(SmsChannel(sms, limits), book), base)
    return senders


def platform_notices(
    settings: PlatformSettings, senders: Mapping[TurnNoticeKind, NoticeSender], room: WaitingRoom, clock: Clock
) -> TurnNotices:
    """The notices of the platform's rooms, kept beside the ledger as the rooms' audit is."""
    own = PostgresConsole(settings.ledger_url, TIMEOUT_S) if settings.shared else None
    return TurnNotices(SqlNoticeBook(own or SqliteConsole(settings.folder / PLATFORM_FILE)), room, senders, clock)


def open_database(settings: RoomSettings) -> ConsoleDatabase:
    """The database of the console's book."""
    if settings.audit.startswith(("postgresql://", "postgres://")):
        return PostgresConsole(settings.audit, TIMEOUT_S)
    return SqliteConsole(Path(settings.folder) / BOOK_FILE)
