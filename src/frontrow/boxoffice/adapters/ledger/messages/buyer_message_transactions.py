"""Transaction programs of messages to buyers (see `holds/booking_transactions.py` for what a program is)."""

from collections.abc import Callable, Sequence

from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import Program
from frontrow.boxoffice.messages.model.buyer_messages import (
    DAY_US,
    Audience,
    AudienceKind,
    AudienceScope,
    BuyerMessage,
    BuyerMessageNotFound,
    BuyerMessageState,
    TicketHolder,
    check_daily_limit,
)
from frontrow.boxoffice.messages.model.messages import NewDelivery

DRAFT_LIFE_US = DAY_US


def message_of(row: Row) -> BuyerMessage:
    """A message from its columns."""
    audience = Audience(AudienceKind(row[3]), row[4])
    state, counts = BuyerMessageState(row[7]), (row[9], row[10], bool(row[11]), *row[12:15])
    return BuyerMessage(row[0], row[1], row[2], audience, row[5], row[6], state, row[8], *counts)


def holder_of(row: Row) -> TicketHolder:
    """A holder from its columns; the first one is the fence of the booking."""
    return TicketHolder(row[1], row[2], row[3], row[4])


def save_draft(draft: BuyerMessage) -> Program[None]:
    """Keep the member's draft for this event, instead of the one before."""
    yield Query("drop_message_drafts", [(draft.event_id, draft.made_by, draft.created_at_us - DRAFT_LIFE_US)])
    yield Query("put_buyer_messages", [_columns(draft)])


def send(message: BuyerMessage, note: Query) -> Program[BuyerMessage | BaseException]:
    """Begin to send the message, or return it as it is if that was done before, or the reason for refusing it.

    The event is locked, so that of several messages at once no more than the daily limit begin.
    """
    yield Query("locked_event", params=(message.event_id,))
    rows = yield Query("buyer_message_by_id", params=(message.id,))
    if rows:
        known = message_of(rows[0])
        if known.event_id != message.event_id:
            return BuyerMessageNotFound(message.id)
        if known.state is not BuyerMessageState.DRAFT:
            return known
    booking = message.audience.key if message.audience.kind is AudienceKind.BOOKING else ""
    params = (message.event_id, message.created_at_us - DAY_US, booking)
    to_many, to_booking = (yield Query("messages_sent_since", params=params))[0]
    refused = check_daily_limit(message.audience, to_many, to_booking)
    if refused is not None:
        return refused
    yield Query("put_buyer_messages", [_columns(message)])
    yield note
    return message


def queue_next(
    message_id: str,
    scope: AudienceScope,
    make: Callable[[TicketHolder], Sequence[NewDelivery]],
    limit: int,
    now_us: int,
) -> Program[int | None]:
    """Put the holders of the next bookings in line and move on, in one transaction.

    Returns how many deliveries it made; None when everybody is in line.

    Whoever dies in here has done nothing. A second worker waits for the lock and goes on behind the first.
    """
    rows = yield Query("lock_buyer_message", params=(message_id,))
    message = message_of(rows[0]) if rows else None
    if message is None or message.state is not BuyerMessageState.SENDING or message.all_queued:
        return None
    params = (scope.event_id, message.last_fence, message.created_at_us, scope.booking_id, limit)
    bookings = yield Query("bookings_to_write_to", params=params)
    deliveries: dict[str, NewDelivery] = {}
    if bookings:
        within = (scope.first, scope.end, scope.tier, scope.plan_hash)
        for row in (yield Query("holders_of_bookings", [(one[1],) for one in bookings], within)):
            for delivery in make(holder_of(row)):
                deliveries.setdefault(delivery.dedupe, delivery)
    if deliveries:
        new = [(one.kind, one.queue, one.dedupe, one.body, now_us) for one in deliveries.values()]
        yield Query("add_deliveries", new)
    last = bookings[-1][0] if bookings else message.last_fence
    yield Query("advance_buyer_messages", [(message_id, last, int(len(bookings) < limit))])
    return len(deliveries)


def _columns(message: BuyerMessage) -> tuple[object, ...]:
    return (
        message.id,
        message.event_id,
        message.made_by,
        message.audience.kind.value,
        message.audience.key,
        message.subject,
        message.text,
        message.state.value,
        message.recipients,
        message.created_at_us,
    )
