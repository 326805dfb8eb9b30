"""Notices in SQL, beside the console's book. An address is kept until its notice is sent or of no use any more."""

from typing import Any, Final

from frontrow.waitingroom.console.sql_book import BookStatement, ConsoleDatabase
from frontrow.waitingroom.notices.model import NoticeState, TurnNotice, TurnNoticeKind
from frontrow.waitingroom.notices.turn_notices import address_hash

KEEP_US: Final = 7 * 86_400_000_000
_FIELDS: Final = "id, event, lane, epoch, arrival, kind, address, language, asked_at_us, tries, next_at_us"

ASK = (
    "INSERT INTO console_notices VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 'waiting') ON CONFLICT (id) DO UPDATE"
    " SET address = excluded.address, address_hash = excluded.address_hash, language = excluded.language"
    " WHERE console_notices.state = 'waiting'"
)
FORGET = "DELETE FROM console_notices WHERE asked_at_us < ?"
COUNT = "SELECT COUNT(*) FROM console_notices WHERE event = ? AND address_hash = ?"
EVENTS = "SELECT DISTINCT event FROM console_notices WHERE state = 'waiting'"
WAITING = (
    f"SELECT {_FIELDS} FROM console_notices WHERE event = ? AND state = 'waiting' AND next_at_us <= ?"  # noqa: S608
    " ORDER BY arrival LIMIT ?"
)
CLAIM = (
    "UPDATE console_notices SET tries = tries + 1, next_at_us = ?"
    " WHERE id = ? AND state = 'waiting' AND tries = ? AND next_at_us = ?"
)
SETTLE = "UPDATE console_notices SET state = ?, address = '' WHERE id = ?"
RETRY = "UPDATE console_notices SET next_at_us = ? WHERE id = ? AND state = 'waiting'"
WITHDRAW = "DELETE FROM console_notices WHERE event = ? AND id = ? AND state = 'waiting'"


class SqlNoticeBook:
    """Implements `NoticeBook` over any `ConsoleDatabase`."""

    def __init__(self, database: ConsoleDatabase) -> None:
        self._database = database

    async def ask(self, notice: TurnNotice) -> None:
        one = notice
        mark = address_hash(one.event, one.address)
        values = (one.id, one.event, one.lane, one.epoch, one.arrival, one.kind.value, one.address, mark, one.language)
        forget = BookStatement(FORGET, (one.asked_at_us - KEEP_US,))
        await self._database.run([forget, BookStatement(ASK, (*values, one.asked_at_us))])

    async def count(self, event: str, address_hash: str) -> int:
        return int((await self._database.query(COUNT, event, address_hash))[0][0])

    async def events(self) -> list[str]:
        return [str(row[0]) for row in await self._database.query(EVENTS)]

    async def waiting(self, event: str, now_us: int, limit: int) -> list[TurnNotice]:
        rows = await self._database.query(WAITING, event, now_us, limit)
        return [_notice(row) for row in rows]

    async def claim(self, notice: TurnNotice, until_us: int) -> bool:
        values = (until_us, notice.id, notice.tries, notice.next_at_us)
        return await self._database.run([BookStatement(CLAIM, values, True)])

    async def settle(self, notice_id: str, state: NoticeState) -> None:
        await self._database.run([BookStatement(SETTLE, (state.value, notice_id))])

    async def retry(self, notice_id: str, at_us: int) -> None:
        await self._database.run([BookStatement(RETRY, (at_us, notice_id))])

    async def withdraw(self, event: str, notice_ids: tuple[str, ...]) -> None:
        await self._database.run([BookStatement(WITHDRAW, (event, one)) for one in notice_ids])

    async def aclose(self) -> None:
        await self._database.aclose()


def _notice(row: tuple[Any, ...]) -> TurnNotice:
    id, event, lane, epoch, arrival, kind, address, language, asked_at_us, tries, next_at_us = row
    return TurnNotice(
        id, event, lane, epoch, arrival, TurnNoticeKind(kind), address, language, asked_at_us, tries, next_at_us
    )
