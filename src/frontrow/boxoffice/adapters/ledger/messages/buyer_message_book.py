"""The ledger's messages to buyers. The contract is `messages.ports.buyer_messages.BuyerMessageBook`."""

import functools
from collections.abc import Callable, Sequence
from typing import Final, cast

from frontrow.boxoffice.adapters.ledger.engine.due_work import BUYER_MESSAGES, DueWork
from frontrow.boxoffice.adapters.ledger.engine.group_commit import CommitLine, LedgerStore, RunProgram, RunStatements
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.messages import buyer_message_transactions as programs
from frontrow.boxoffice.adapters.ledger.organiser.organiser_changes import noted, organiser_note
from frontrow.boxoffice.events.model.event_changes import Change
from frontrow.boxoffice.messages.model.buyer_messages import (
    NOT_NEEDED,
    AudienceScope,
    BuyerMessage,
    MailCounts,
    RecipientCount,
    TicketHolder,
)
from frontrow.boxoffice.messages.model.messages import DeliveryState, NewDelivery

NEWEST_US: Final = 2**62


class SqlBuyerMessageBook:
    """Messages from organisers to the people who have tickets."""

    def __init__(self, store: LedgerStore, line: CommitLine, due: DueWork) -> None:
        self._store, self._line, self._due = store, line, due

    async def save_draft(self, draft: BuyerMessage) -> None:
        now_us = draft.created_at_us
        await self._line.submit(RunProgram(lambda _: programs.save_draft(draft), now_us))

    async def send(self, message: BuyerMessage, change: Change) -> BuyerMessage:
        run = RunProgram(
            lambda _: programs.send(message, noted(change)), message.created_at_us, note=organiser_note(change)
        )
        return cast(BuyerMessage, await self._line.submit(run))

    async def message(self, message_id: str) -> BuyerMessage | None:
        rows = await self._store.read(Query("buyer_message_by_id", params=(message_id,)))
        return programs.message_of(rows[0]) if rows else None

    async def messages_of(self, event_id: str, before_us: int, limit: int) -> list[BuyerMessage]:
        params = (event_id, before_us or NEWEST_US, limit)
        return [programs.message_of(row) for row in await self._store.read(Query("buyer_messages_page", params=params))]

    async def due(self, now_us: int, next_at_us: int, limit: int) -> list[BuyerMessage]:
        if not await self._due.may_have(BUYER_MESSAGES, now_us):
            return []
        rows = await self._store.read(Query("due_buyer_messages", params=(now_us, limit)))
        if rows:
            moved = Query("move_buyer_messages", [(row[0], next_at_us) for row in rows])
            await self._line.submit(RunStatements((moved,), now_us=now_us))
        return [programs.message_of(row) for row in rows]

    async def queue_next(
        self,
        message_id: str,
        scope: AudienceScope,
        make: Callable[[TicketHolder], Sequence[NewDelivery]],
        limit: int,
        now_us: int,
    ) -> int | None:
        run = functools.partial(programs.queue_next, message_id, scope, make, limit, now_us)
        return cast("int | None", await self._line.submit(RunProgram(lambda _: run(), now_us)))

    async def finish(self, message_id: str, mails: MailCounts, now_us: int) -> None:
        row = (message_id, mails.total, mails.sent, mails.failed, mails.skipped)
        await self._line.submit(RunStatements((Query("finish_buyer_messages", [row]),), now_us=now_us))

    async def count(self, scope: AudienceScope) -> RecipientCount:
        rows = await self._store.read(Query("count_ticket_holders", params=_params(scope)))
        return RecipientCount(int(rows[0][0]), int(rows[0][1]))

    async def first_holder(self, scope: AudienceScope) -> TicketHolder | None:
        rows = await self._store.read(Query("first_ticket_holder", params=_params(scope)))
        return programs.holder_of(rows[0]) if rows else None

    async def mails(self, queues: Sequence[str]) -> MailCounts:
        rows = await self._store.read(Query("mails_of_messages", [(queue,) for queue in queues], (NOT_NEEDED,)))
        counts = {"total": 0, "sent": 0, "failed": 0, "skipped": 0, "untried": 0}
        for state, is_untried, not_needed, count in rows:
            counts["total"] += count
            if state == DeliveryState.SENT:
                counts["sent"] += count
            elif state == DeliveryState.GIVEN_UP:
                counts["skipped" if not_needed else "failed"] += count
            elif is_untried:
                counts["untried"] += count
        return MailCounts(**counts)


def _params(scope: AudienceScope) -> tuple[str, int, int, str, str, str]:
    return scope.event_id, scope.first, scope.end, scope.tier, scope.plan_hash, scope.booking_id
