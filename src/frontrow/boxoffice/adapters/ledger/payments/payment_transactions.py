"""Transaction programs of payments and refunds. A change and the booking's move are written together or not at all.

A batch of saves is optimistic: it moves the bookings and writes the payments without reading them first. Conditional
updates decide. If one of them leaves a row out, the whole transaction is rolled back and run again carefully: rows are
locked (bookings, then payments, each in the order of ids), compared, and written together. A request that was
committed before (lost connection, repeated call) then finds its own version and gets the same answer again.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import (
    STATES,
    MakeMove,
    Program,
    booking_of,
    decode_seats,
    encode_seats,
    make_moves,
    scanned_seats,
    transferred_seats,
)
from frontrow.boxoffice.adapters.ledger.holds.optimistic_insert import ConflictHistory
from frontrow.boxoffice.adapters.ledger.tickets.redemption_transactions import read_used
from frontrow.boxoffice.facts.model import BookingPartlyRefunded, Fact
from frontrow.boxoffice.holds.model.bookings import (
    ACTIVE_STATES,
    Booking,
    BookingNotFound,
    BookingState,
    Move,
    MoveRefused,
    SeatsNotInBooking,
    StaleFence,
)
from frontrow.boxoffice.payments.model.payments import BY_FAN, Payment, PaymentChanged, PaymentState
from frontrow.boxoffice.payments.model.provider_intents import TransferDetails
from frontrow.boxoffice.payments.model.retry_schedule import RETRIES_S
from frontrow.boxoffice.pricing.model.prices import has_add_ons
from frontrow.boxoffice.refunds.model.refund_lines import add_on_names, decode_refund_lines
from frontrow.boxoffice.refunds.model.refunds import BookingSeen, Refund, RefundState
from frontrow.boxoffice.tickets.model.ticket_transfers import TicketTransferred
from frontrow.boxoffice.tickets.model.tickets import TicketScanned
from frontrow.core.clock import US_PER_S

PAYMENT_STATES: Final = {state.value: state for state in PaymentState}
_read_transfer: Final = msgspec.json.Decoder(TransferDetails).decode


class SavePayment(msgspec.Struct, frozen=True):
    """Write a version of a payment and make the booking's move with it."""

    payment: Payment
    move: MakeMove | None
    facts: tuple[Fact, ...]
    now_us: int


class RequestRefund(msgspec.Struct, frozen=True):
    """Write a new refund and free its seats."""

    refund: Refund
    fence: int
    now_us: int
    late: bool = False  # the booking no longer has these seats: only the refund is written
    seen: BookingSeen | None = None  # the booking when the refund was worked out
    uses: tuple[tuple[str, int], ...] = ()  # what the booking still uses of codes, stocks and limits, by counter
    facts: tuple[Fact, ...] = ()  # written if this request writes the refund


class SaveRefund(msgspec.Struct, frozen=True):
    """Write a version of a refund over the previous one, with its facts. The answer says whether it was written."""

    refund: Refund
    facts: tuple[Fact, ...]
    now_us: int


class ClaimDue(msgspec.Struct, frozen=True):
    """Claim due payments (`payments`) or refunds (`refunds`)."""

    what: str
    now_us: int
    until_us: int
    limit: int


Saved = tuple[Booking | None] | BaseException


def payment_of(row: Row) -> Payment:
    state = PAYMENT_STATES[row[6]]
    if state is PaymentState.ACTION and row[20]:
        state = PaymentState.PROCESSING
    rest = (*row[7:23], _transfer_of(row[23]), row[24])
    return Payment(row[0], row[1], row[2], row[3], row[4], row[5], state, *rest)


def _transfer_of(text: str) -> TransferDetails | None:
    return _read_transfer(text) if text else None


def _transfer_text(payment: Payment) -> str:
    return msgspec.json.encode(payment.transfer).decode() if payment.transfer is not None else ""


def refund_of(row: Row) -> Refund:
    head = (row[0], row[1], row[2], row[3], row[4], row[5])
    return Refund(*head, decode_seats(row[6]), row[7], RefundState(row[8]), *row[9:19])


def same(kept: Payment, asked: Payment) -> bool:
    """Whether the ledger already has this payment. `retry_at_us` is ignored, since a claim may have changed it."""
    return replace(kept, retry_at_us=0) == replace(asked, retry_at_us=0)


def save_payments(
    asks: Sequence[SavePayment], facts: list[Fact], history: ConflictHistory | None = None
) -> Program[list[Saved]]:
    """The booking after each save (None without a move) in a one-tuple, or the reason for refusing it."""
    times = Counter(ask.payment.id for ask in asks)
    single = [at for at, ask in enumerate(asks) if times[ask.payment.id] == 1]
    answers: dict[int, Saved] = {}
    if history is not None and history.may_save_at_once():
        at_once = [at for at in single if asks[at].move is not None or asks[at].payment.version > 1]
        if at_once:
            answers = yield from _save_at_once(at_once, asks, facts, history)
        single = []
    plain = [at for at in single if asks[at].move is None and asks[at].payment.version > 1]
    rest = sorted(set(range(len(asks))) - answers.keys() - set(plain))
    if rest:
        answers.update((yield from _save_locked(rest, asks, facts)))
    if plain:
        answers.update((yield from _save_plain(plain, asks, facts)))
    return [answers[at] for at in range(len(asks))]


def _save_at_once(
    ats: Sequence[int], asks: Sequence[SavePayment], facts: list[Fact], history: ConflictHistory
) -> Program[dict[int, Saved]]:
    """Move the bookings and write the payments. If anything is refused, the transaction is run again carefully."""
    movers = [at for at in ats if asks[at].move is not None]
    answers: dict[int, Saved] = dict.fromkeys(ats, (None,))
    events: dict[str, str] = {}  # of the bookings
    moved = (yield from make_moves([asks[at].move for at in movers], facts)) if movers else []  # type: ignore[misc]
    for at, booking in zip(movers, moved, strict=True):
        payment = asks[at].payment
        if isinstance(booking, BaseException) or (
            payment.version == 1 and booking.amount_minor != payment.amount_minor
        ):
            raise history.save_conflict()
        answers[at], events[booking.id] = (booking,), booking.event_id
    payments = [asks[at].payment for at in ats]
    new, old = [p for p in payments if p.version == 1], [p for p in payments if p.version > 1]
    written = yield from _write_rows(new, old, events)
    if len(written) < len(payments):
        raise history.save_conflict()
    for at in ats:
        facts.extend(asks[at].facts)
    return answers


def _save_plain(ats: Sequence[int], asks: Sequence[SavePayment], facts: list[Fact]) -> Program[dict[int, Saved]]:
    """Save next versions without a move. The conditional update decides; only rows it left out are read."""
    written = {row[0] for row in (yield _set_query([asks[at].payment for at in ats]))}
    left = sorted((p.id, p.booking_id) for p in (asks[at].payment for at in ats) if p.id not in written)
    rows = (yield Query("lock_payments", left)) if left else []
    kept = {row[0]: payment_of(row) for row in rows}
    answers: dict[int, Saved] = {}
    for at in ats:
        payment = asks[at].payment
        if payment.id in written:
            facts.extend(asks[at].facts)
        old = kept.get(payment.id)
        fine = payment.id in written or (old is not None and same(old, payment))
        answers[at] = (None,) if fine else PaymentChanged(payment.id)
    return answers


def _save_locked(ats: Sequence[int], asks: Sequence[SavePayment], facts: list[Fact]) -> Program[dict[int, Saved]]:
    """Save payments with the moves of their bookings: lock, compare, move, write."""
    answers: dict[int, Saved] = {}
    movers = sorted({asks[at].payment.booking_id for at in ats if asks[at].move is not None})
    if movers:
        yield Query("lock_bookings", [(booking_id,) for booking_id in movers])
    rows = yield Query("lock_payments", sorted({(p.id, p.booking_id) for p in (asks[at].payment for at in ats)}))
    kept = {row[0]: payment_of(row) for row in rows}
    ready: dict[str, int] = {}
    for at in ats:
        ask = asks[at]
        new, old = ask.payment, kept.get(ask.payment.id)
        repeated = old is not None and old.version == new.version and same(old, new)
        if repeated and ask.move is None:
            answers[at] = (None,)
        elif not repeated and (new.version != (old.version if old else 0) + 1 or new.id in ready):
            answers[at] = PaymentChanged(new.id)
        else:  # a repeated save with a move: the move is safe to repeat and returns the booking
            ready[new.id] = at
    firsts = [at for at in ready.values() if asks[at].payment.version == 1]
    events, refused = yield from _check_amounts(firsts, asks)
    answers |= refused
    ready = {payment_id: at for payment_id, at in ready.items() if at not in answers}
    moving = [at for at in ready.values() if asks[at].move is not None]
    if moving:
        moved = yield from make_moves([asks[at].move for at in moving], facts)  # type: ignore[misc]
        for at, booking in zip(moving, moved, strict=True):
            answers[at] = booking if isinstance(booking, BaseException) else (booking,)
        events |= {one.id: one.event_id for one in moved if isinstance(one, Booking)}
        answers |= yield from _step_back_repriced(moving, asks, answers, facts)
    fine = [at for at in sorted(ready.values()) if not isinstance(answers.get(at), BaseException)]
    written = yield from _write_payments([asks[at] for at in fine], kept, events, facts)
    for at in fine:
        payment_id = asks[at].payment.id
        if payment_id in written:
            answers.setdefault(at, (None,))
        elif payment_id not in kept:
            answers[at] = PaymentChanged(payment_id)
    return answers


def _step_back_repriced(
    movers: Sequence[int], asks: Sequence[SavePayment], moved: Mapping[int, Saved], facts: list[Fact]
) -> Program[dict[int, Saved]]:
    """Refusals of first payments over another amount than their bookings cost: the fan's choice changed meanwhile."""
    stale = []
    for at in movers:
        payment, saved = asks[at].payment, moved[at]
        booking = saved[0] if payment.version == 1 and isinstance(saved, tuple) else None
        if booking is not None and booking.amount_minor != payment.amount_minor:
            stale.append(at)
    if stale:
        back = [
            MakeMove(asks[at].payment.booking_id, Move.STEP_BACK, _fence(asks[at]), asks[at].now_us) for at in stale
        ]
        yield from make_moves(back, facts)
    return {at: PaymentChanged(asks[at].payment.id) for at in stale}


def _fence(ask: SavePayment) -> int:
    return ask.move.fence if ask.move is not None else 0


def _check_amounts(ats: Sequence[int], asks: Sequence[SavePayment]) -> Program[tuple[dict[str, str], dict[int, Saved]]]:
    """Refusals of new payments over another amount than the booking costs now, after a refund or a return in between.

    Also returns the events of the bookings it has read.
    """
    plain = [at for at in ats if asks[at].move is None]
    if not plain:
        return {}, {}
    rows = yield Query("lock_bookings", [(one,) for one in sorted({asks[at].payment.booking_id for at in plain})])
    costs = {row[0]: row[6] for row in rows if STATES[row[3]] in ACTIVE_STATES}
    payments = {at: asks[at].payment for at in plain}
    refused: dict[int, Saved] = {
        at: PaymentChanged(one.id) for at, one in payments.items() if costs.get(one.booking_id) != one.amount_minor
    }
    return {row[0]: row[1] for row in rows}, refused


def _set_query(payments: Sequence[Payment]) -> Query:
    ordered = sorted(payments, key=_by_id)
    rows = [
        (
            p.id,
            *_tail(p),
            p.changed_at_us,
            p.declines,
            p.failure,
            p.paid_with,
            p.agreed_at_us,
            _transfer_text(p),
            p.reminded_at_us,
            p.booking_id,
        )
        for p in ordered
    ]
    return Query("set_payments", rows)


def _by_id(payment: Payment) -> str:
    return payment.id


def _write_payments(
    asks: Sequence[SavePayment], kept: dict[str, Payment], events: dict[str, str], facts: list[Fact]
) -> Program[set[str]]:
    """Write those that are not there yet, with their facts. Returns the ids of those that were written."""
    new = [ask.payment for ask in asks if ask.payment.version == 1 and ask.payment.id not in kept]
    old = [
        ask.payment for ask in asks if ask.payment.version > 1 and kept[ask.payment.id].version < ask.payment.version
    ]
    written = yield from _write_rows(new, old, events)
    for ask in asks:
        if ask.payment.id in written:
            facts.extend(ask.facts)
    return written


def _write_rows(new: Sequence[Payment], old: Sequence[Payment], events: dict[str, str]) -> Program[set[str]]:
    """Insert the new payments, with the events of their bookings, and update the old ones. Returns the ids of those
    that were written."""
    written: set[str] = set()
    if new:
        rows = [
            (
                *_head(p),
                p.amount_minor,
                p.currency,
                *_tail(p),
                p.created_at_us,
                p.changed_at_us,
                p.declines,
                p.failure,
                p.account,
                p.paid_with,
                p.agreed_at_us,
                p.offered,
                p.fee_minor,
                _transfer_text(p),
                p.reminded_at_us,
                p.key("create"),
                events[p.booking_id],
            )
            for p in new
        ]
        written |= {row[0] for row in (yield Query("add_payments", rows))}
    if old:
        written |= {row[0] for row in (yield _set_query(old))}
    return written


def _head(p: Payment) -> tuple[str, str, int, str]:
    return p.id, p.booking_id, p.attempt, p.provider


def _tail(p: Payment) -> tuple[str, str, str, str, int, int, int, int]:
    # Servers before schema 44 know no `processing`. They treat it like `action`: they read it, and cannot void it.
    state = PaymentState.ACTION if p.state is PaymentState.PROCESSING else p.state
    return state.value, p.ref, p.method, p.reason, p.call, p.tries, p.retry_at_us, p.version


def save_refunds(asks: Sequence[SaveRefund], facts: list[Fact]) -> Program[list[bool]]:
    """Whether each was written. Of several saves of one refund, the first is tried."""
    firsts = {ask.refund.id: at for at, ask in reversed(list(enumerate(asks)))}
    rows = yield Query("set_refunds", [_set_refund(asks[at].refund) for _, at in sorted(firsts.items())])
    written = {firsts[row[0]] for row in rows}
    for at in sorted(written):
        facts.extend(asks[at].facts)
    return [at in written for at in range(len(asks))]


def request_refunds(asks: Sequence[RequestRefund], facts: list[Fact]) -> Program[list[Refund | BaseException]]:
    """Each refund as it is now, or the reason for refusing it."""
    answers: dict[int, Refund | BaseException] = {}
    locked = yield Query("lock_bookings", [(id_,) for id_ in sorted({ask.refund.booking_id for ask in asks})])
    bookings = {row[0]: booking_of(row) for row in locked}
    named = [(ask.refund.id, ask.refund.booking_id) for ask in asks]
    existing = {row[0]: refund_of(row) for row in (yield Query("refunds_by_id", named))}
    obstacles = yield from _find_obstacles(asks, bookings)
    pending = list(range(len(asks)))
    while pending:  # a round answers one request per booking
        firsts = {asks[at].refund.booking_id: at for at in reversed(pending)}
        for at in firsts.values():
            ask = asks[at]
            refused = refund_refusal(ask, bookings.get(ask.refund.booking_id), obstacles)
            earlier = existing.get(ask.refund.id)
            if earlier is not None:  # another refund with this number: the caller counts again
                answers[at] = earlier if ask.late or _is_repeated(earlier, ask) else PaymentChanged(earlier.id)
            elif refused is not None:
                answers[at] = refused
        new = sorted(at for at in firsts.values() if at not in answers)
        if new:
            yield from _add_refunds({at: asks[at] for at in new}, bookings, answers, facts)
            existing.update((asks[at].refund.id, asks[at].refund) for at in new if answers[at] is asks[at].refund)
        pending = [at for at in pending if at not in answers]
    return [answers[at] for at in range(len(asks))]


def _is_repeated(earlier: Refund, ask: RequestRefund) -> bool:
    return (earlier.seats, earlier.lines) == (ask.refund.seats, ask.refund.lines)


class RefundObstacles(msgspec.Struct, frozen=True):
    """What can prevent refunds besides the booking's state: the newest payment, the scanned and transferred seats, and
    the add-ons that were redeemed, per booking."""

    newest: dict[str, str] = {}
    inside: dict[str, set[int]] = {}
    transferred: dict[str, set[int]] = {}
    used: dict[str, Counter[str]] = {}


def _find_obstacles(asks: Sequence[RequestRefund], bookings: dict[str, Booking]) -> Program[RefundObstacles]:
    """Read under the bookings' locks, so no payment, scan or redemption can come between this and the refund."""
    ids = sorted({ask.refund.booking_id for ask in asks if not ask.late} & bookings.keys())
    if not ids:
        return RefundObstacles()
    newest = {row[1]: row[0] for row in (yield Query("payments_of_bookings", [(one,) for one in ids]))}
    inside = yield from scanned_seats(ids)
    if inside:  # everyone is refunded for a cancelled event, also after a scan
        events = {bookings[one].event_id for one in inside}
        gone = {row[0] for row in (yield Query("cancelled_events", [(one,) for one in sorted(events)]))}
        inside = {one: seats for one, seats in inside.items() if bookings[one].event_id not in gone}
    used = yield from read_used([one for one in ids if has_add_ons(bookings[one].price_lines)])
    return RefundObstacles(newest, inside, (yield from transferred_seats(ids)), used)


def _add_refunds(
    asks: dict[int, RequestRefund],
    bookings: dict[str, Booking],
    answers: dict[int, Refund | BaseException],
    facts: list[Fact],
) -> Program[None]:
    rows = yield Query("add_refunds", [_new_refund(ask.refund, bookings) for ask in asks.values()])
    added = {row[0] for row in rows}
    for at, ask in asks.items():  # refused when the booking already has this number: the caller counts again
        answers[at] = ask.refund if ask.refund.id in added else PaymentChanged(ask.refund.id)
    for ask in asks.values():
        facts.extend(ask.facts if ask.refund.id in added else ())
    given = [ask for ask in asks.values() if ask.refund.id in added and not ask.late]
    if given:
        yield from _give_back(given, bookings, facts)


def refund_refusal(ask: RequestRefund, booking: Booking | None, obstacles: RefundObstacles) -> BaseException | None:
    refund = ask.refund
    if booking is None:
        return BookingNotFound(refund.booking_id)
    if booking.fence != ask.fence:
        return StaleFence(booking.id, ask.fence)
    if ask.late:
        own = not refund.seats or bool(
            set(refund.seats) & set(booking.seats)
        )  # otherwise the seat was returned and resold
        return MoveRefused(booking.id, booking.state, Move.REFUND) if own and booking.state in ACTIVE_STATES else None
    if booking.state is not BookingState.CONFIRMED:
        return MoveRefused(booking.id, booking.state, Move.REFUND)
    missing = set(refund.seats) - set(booking.seats)
    if missing or not (refund.seats or refund.lines):
        return SeatsNotInBooking(booking.id, sorted(missing))
    inside = obstacles.inside.get(booking.id, set()) & set(refund.seats)
    if inside:
        return TicketScanned(booking.id, sorted(inside))
    if refund.reason == BY_FAN and obstacles.transferred.get(booking.id, set()) & set(refund.seats):
        return TicketTransferred(booking.id)
    if refund.payment_id != obstacles.newest.get(
        booking.id, ""
    ):  # a lapsed payment was replaced: the caller counts again
        return PaymentChanged(refund.id)
    if ask.seen is not None and ask.seen.worth_minor != booking.amount_minor:  # a ticket was returned in between
        return PaymentChanged(refund.id)
    if ask.seen is not None and dict(ask.seen.used) != obstacles.used.get(booking.id, {}):  # redeemed in between
        return PaymentChanged(refund.id)
    return None


def _give_back(asks: Sequence[RequestRefund], bookings: dict[str, Booking], facts: list[Fact]) -> Program[None]:
    """Free the seats of these refunds, one refund per booking. A booking without seats left ends."""
    left = {ask.refund.booking_id: _left(bookings[ask.refund.booking_id], ask.refund) for ask in asks}
    whole = [ask for ask in asks if not left[ask.refund.booking_id]]
    if whole:
        ends = [MakeMove(ask.refund.booking_id, Move.REFUND, ask.fence, ask.now_us, even_scanned=True) for ask in whole]
        for moved in (yield from make_moves(ends, facts)):
            assert isinstance(moved, Booking), moved
            bookings[moved.id] = moved
    some = sorted((ask for ask in asks if left[ask.refund.booking_id]), key=lambda ask: ask.refund.booking_id)
    if not some:
        return
    shrunk = [_shrunk(ask, bookings[ask.refund.booking_id], left[ask.refund.booking_id]) for ask in some]
    rows = yield Query("shrink_bookings", shrunk)
    seats = [(ask.refund.booking_id, seat, ask.now_us) for ask in some for seat in sorted(ask.refund.seats)]
    if seats:
        yield Query("free_some_seats", [(booking_id, seat) for booking_id, seat, _ in seats])
        yield Query("revoke_tickets", seats)
    yield from lower_uses([(ask.refund.booking_id, *use) for ask in some for use in ask.uses])
    bookings.update((row[0], booking_of(row)) for row in rows)
    for ask in some:
        b = bookings[ask.refund.booking_id]
        extras = add_on_names(decode_refund_lines(ask.refund.lines))
        facts.append(BookingPartlyRefunded(b.id, b.event_id, b.fan, b.fence, ask.refund.seats, ask.now_us, extras))


def lower_uses(uses: Sequence[tuple[str, str, int]]) -> Program[None]:
    """Write what bookings still use: booking, counter, how many."""
    lower, over = [use for use in uses if use[2]], [use[:2] for use in uses if not use[2]]
    if lower:
        yield Query("lower_uses", sorted(lower))
    if over:
        yield Query("drop_uses", sorted(over))


def _left(booking: Booking, refund: Refund) -> tuple[int, ...]:
    return tuple(seat for seat in booking.seats if seat not in refund.seats)


def _shrunk(ask: RequestRefund, booking: Booking, left: tuple[int, ...]) -> tuple[object, ...]:
    worth = booking.amount_minor - ask.refund.amount_minor - ask.refund.fee_minor
    return booking.id, len(left), encode_seats(left), worth, ask.now_us


def _set_refund(f: Refund) -> tuple[object, ...]:
    changed = (f.state.value, f.ref, f.reason, f.call, f.tries, f.retry_at_us, f.version, f.changed_at_us, f.failure)
    return f.id, *changed, f.booking_id


def _new_refund(f: Refund, bookings: dict[str, Booking]) -> tuple[object, ...]:
    return (
        f.id,
        f.booking_id,
        f.payment_id,
        f.number,
        f.amount_minor,
        f.currency,
        encode_seats(f.seats),
        f.fee_minor,
        f.state.value,
        f.ref,
        f.reason,
        f.call,
        f.tries,
        f.retry_at_us,
        f.version,
        f.created_at_us,
        f.changed_at_us,
        f.key(),
        bookings[f.booking_id].event_id,
        f.lines,
    )


def claim_due(ask: ClaimDue) -> Program[list[Payment] | list[Refund]]:
    """Claim what is due."""
    due = yield Query(f"due_{ask.what}", params=(ask.now_us, ask.limit))
    if not due:
        return []
    rows = yield Query(f"claim_{ask.what}", [(*row, ask.until_us) for row in due])
    return [payment_of(row) for row in rows] if ask.what == "payments" else [refund_of(row) for row in rows]


def wake_payments(now_us: int, limit: int) -> Program[int]:
    """Make payments due that an outage put off. Returns how many."""
    rows = yield Query("put_off_payments", params=(now_us, *(pause_s * US_PER_S for pause_s in RETRIES_S), limit))
    if rows:
        yield Query("wake_payments", [(*row, now_us) for row in rows])
    return len(rows)
