"""Transaction programs of the waitlist (see `holds/booking_transactions.py` for what a program is).

An offer is placed, claimed, declined or lapsed together with its hold and its entry, or not at all. So no crash leaves
a hold that nobody was offered, or an offer without seats. A refused program returns the exception.
"""

from collections.abc import Sequence

import msgspec

from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import (
    STATES,
    MakeMove,
    Program,
    decode_seats,
    end_holds,
    make_moves,
)
from frontrow.boxoffice.adapters.ledger.holds.hold_transactions import place_holds
from frontrow.boxoffice.events.model.events import EventCancelled
from frontrow.boxoffice.facts.model import (
    Fact,
    OfferClaimed,
    OfferDeclined,
    OfferLapsed,
    OfferMade,
    WaitlistEnded,
    WaitlistJoined,
    WaitlistLeft,
)
from frontrow.boxoffice.holds.model.bookings import BookingState, Move
from frontrow.boxoffice.holds.model.holds import PlacedHold
from frontrow.boxoffice.waitlist.model.offers import (
    OFFER_MOVES,
    EndedEntries,
    NewOffer,
    Offer,
    OfferMove,
    OfferNotFound,
    OfferOver,
    OfferState,
    due_move,
    entry_after,
)
from frontrow.boxoffice.waitlist.model.waitlist import (
    AlreadyWaiting,
    EntryNotFound,
    EntryState,
    NewEntry,
    NotWaiting,
    WaitlistEntry,
)


def entry_of(row: Row) -> WaitlistEntry:
    sections = tuple(part for part in row[5].split("|") if part)
    n, entry_id, event_id, fan, seat_count = row[:5]
    state = EntryState(row[8])
    return WaitlistEntry(
        n, entry_id, event_id, fan, seat_count, sections, bool(row[6]), row[7], state, row[9], row[10], row[11]
    )


def offer_of(row: Row) -> Offer:
    offer_id, entry_id, event_id, fan, booking_id, state = row[:6]
    seats, booking_state = decode_seats(row[8]), STATES[row[9]]
    return Offer(
        offer_id, entry_id, event_id, fan, booking_id, OfferState(state), row[6], row[7], seats, booking_state, row[10]
    )


def join(new: NewEntry, now_us: int, facts: list[Fact]) -> Program[WaitlistEntry | BaseException]:
    """Join the line. A fan who is already in it with the same request keeps the old place."""
    sections = f"|{'|'.join(sorted(set(new.sections)))}|" if new.sections else ""
    row = (new.id, new.event_id, new.fan, new.seat_count, sections, int(new.split_ok), new.rank, now_us)
    joined = yield Query("join_waitlist", [row])
    if joined:
        facts.append(
            WaitlistJoined("", new.event_id, new.fan, 0, (), now_us, entry_id=new.id, seat_count=new.seat_count)
        )
        return entry_of(joined[0])
    there = yield Query("entry_of_fan", params=(new.event_id, new.fan))
    if there and entry_of(there[0]).same_wish(new):
        return entry_of(there[0])
    if (yield Query("cancelled_events", [(new.event_id,)])):
        return EventCancelled(new.event_id)
    return AlreadyWaiting("you wait for this event already; leave the line to wait for something else")


def make_offers(news: Sequence[NewOffer], facts: list[Fact]) -> Program[list[Offer | BaseException]]:
    """Write the hold, the offer and the entry's new state of each, all or nothing.

    An existing offer is returned as is.
    """
    turns = sorted((new.entry_id, "waiting", "offered", 1, 0, new.hold.now_us) for new in news)
    turned = {row[1] for row in (yield Query("turn_entries", turns))}
    ready = [new for new in news if new.entry_id in turned]
    answers: dict[str, Offer | BaseException] = {}
    if ready:
        placed = yield from place_holds([new.hold for new in ready], facts)
        answers = {new.id: hold for new, hold in zip(ready, placed, strict=True) if isinstance(hold, BaseException)}
        yield from _write_offers([new for new in ready if new.id not in answers], placed, facts)
        back = sorted((n.entry_id, "offered", "waiting", -1, 0, n.hold.now_us) for n in ready if n.id in answers)
        if back:
            yield Query("turn_entries", back)
    asked = [(new.id,) for new in news if new.id not in answers]
    there = {row[0]: offer_of(row) for row in (yield Query("offers_by_id", asked))} if asked else {}
    return [
        answers.get(new.id) or there.get(new.id) or NotWaiting(f"entry {new.entry_id} is not in line") for new in news
    ]


def _write_offers(
    news: Sequence[NewOffer], placed: Sequence[PlacedHold | BaseException], facts: list[Fact]
) -> Program[None]:
    held = {hold.booking_id: hold for hold in placed if isinstance(hold, PlacedHold)}
    for new in news:
        h, hold = new.hold, held[new.hold.booking_id]
        facts.append(
            OfferMade(
                h.booking_id,
                h.event_id,
                h.fan,
                hold.fence,
                hold.seats,
                h.now_us,
                entry_id=new.entry_id,
                offer_id=new.id,
                expires_at_us=h.expires_at_us,
            )
        )
    rows = [
        (n.id, n.entry_id, n.hold.event_id, n.hold.fan, n.hold.booking_id, n.hold.expires_at_us, n.hold.now_us)
        for n in news
    ]
    if rows:
        yield Query("add_offers", rows)


def _offer(offer_id: str, fan: str) -> Program[Offer | BaseException]:
    rows = yield Query("offers_by_id", [(offer_id,)])
    if not rows or rows[0][3] != fan:  # the offer of another fan answers 404
        return OfferNotFound(f"there is no offer {offer_id[:60]} for you", offer=offer_id[:60])
    return offer_of(rows[0])


def _over(offer: Offer) -> OfferOver:
    return OfferOver("this offer is over; you are told when the next one comes", offer=offer.id)


def claim(
    offer_id: str, fan: str, now_us: int, hold_until_us: int, facts: list[Fact]
) -> Program[Offer | BaseException]:
    """Turn the offer's hold into an ordinary one that lives until `hold_until_us`.

    All programs lock in the same order: booking, offer, entry.
    """
    offer = yield from _offer(offer_id, fan)
    if isinstance(offer, BaseException) or offer.state is OfferState.CLAIMED:
        return offer
    if (offer.state, OfferMove.CLAIM) not in OFFER_MOVES or now_us >= offer.expires_at_us:
        return _over(offer)
    (moved,) = yield from make_moves(
        [MakeMove(offer.booking_id, Move.EXTEND, offer.fence, now_us, hold_until_us)], facts
    )
    if isinstance(moved, BaseException):
        return _over(offer)
    if (yield Query("turn_offers", [(offer_id, "claimed", 1, now_us)])):
        yield from _finish_offer(offer, OfferMove.CLAIM, 0, now_us, facts)
    return (yield from _offer(offer_id, fan))


def decline(offer_id: str, fan: str, now_us: int, facts: list[Fact]) -> Program[Offer | BaseException]:
    """Free the seats at once. The entry keeps its place."""
    offer = yield from _offer(offer_id, fan)
    if isinstance(offer, BaseException) or offer.state is OfferState.DECLINED:
        return offer
    if (offer.state, OfferMove.DECLINE) not in OFFER_MOVES:
        return _over(offer)
    (moved,) = yield from make_moves([MakeMove(offer.booking_id, Move.RELEASE, offer.fence, now_us)], facts)
    if isinstance(moved, BaseException):  # it is being paid for, which claimed the offer
        return _over(offer)
    if (yield Query("turn_offers", [(offer_id, "declined", 0, now_us)])):
        yield from _finish_offer(offer, OfferMove.DECLINE, 0, now_us, facts)
    return (yield from _offer(offer_id, fan))


def leave(entry_id: str, fan: str, now_us: int, facts: list[Fact]) -> Program[WaitlistEntry | BaseException]:
    """Leave the line. An open offer is declined."""
    rows = yield Query("entries_by_id", [(entry_id,)])
    if not rows or rows[0][3] != fan:
        return EntryNotFound(f"there is no entry {entry_id[:60]} of yours", entry=entry_id[:60])
    open_offers = yield Query("open_offer_of_entry", params=(entry_id,))
    for (offer_id,) in open_offers:
        answer = yield from decline(offer_id, fan, now_us, facts)
        if isinstance(answer, BaseException):
            return answer
    left = yield Query("turn_entries", [(entry_id, "waiting", "left", 0, 0, now_us)])
    if left:
        entry = entry_of(left[0])
        facts.append(WaitlistLeft("", entry.event_id, fan, 0, (), now_us, entry_id=entry_id))
        return entry
    entry = entry_of((yield Query("entries_by_id", [(entry_id,)]))[0])
    return entry if entry.state is EntryState.LEFT else NotWaiting("you are not in line any more", entry=entry_id)


def end_due_offers(now_us: int, limit: int, facts: list[Fact]) -> Program[list[Offer]]:
    """End open offers that are past their time or whose booking was paid or ended. Returns those this call ended."""
    rows = yield Query("due_offers", params=(now_us, limit))
    offers = [offer_of(row) for row in rows]
    moves = {offer.id: move for offer in offers if (move := due_move(offer, now_us)) is not None}
    dead = [o for o in offers if moves.get(o.id) is OfferMove.LAPSE and o.booking_state is BookingState.HELD]
    if dead:
        ended = yield from end_holds(
            {o.booking_id: now_us for o in dead}, {o.booking_id: BookingState.HELD for o in dead}, facts
        )
        gone = {hold.booking_id for hold in ended}
        for offer in dead:
            if offer.booking_id not in gone:  # another writer moved it: the next sweep sees the new state
                del moves[offer.id]
    return (yield from _end_offers([o for o in offers if o.id in moves], moves, now_us, facts))


def end_line(event_id: str, limit: int, now_us: int, facts: list[Fact]) -> Program[EndedEntries]:
    """End the line of a cancelled event: at most `limit` entries leave it and their open offers are withdrawn.

    An entry whose fan is already paying counts as served; the cancellation ends that booking. An entry that others are
    changing is left for the next call.
    """
    entries = [entry_of(row) for row in (yield Query("line_of_event", params=(event_id, limit)))]
    if not entries:
        return EndedEntries(0, (), 0)
    rows = yield Query("open_offers_of_entries", [(entry.id,) for entry in entries])
    offers = [offer_of(row) for row in rows]
    held = [offer for offer in offers if offer.booking_state is BookingState.HELD]
    asks = [MakeMove(offer.booking_id, Move.RELEASE, offer.fence, now_us) for offer in held]
    moved = (yield from make_moves(asks, facts)) if asks else []
    busy = {offer.id for offer, answer in zip(held, moved, strict=True) if isinstance(answer, BaseException)}
    paid = {o.id for o in offers if o not in held and due_move(o, now_us) is OfferMove.CLAIM}
    claimed = [offer for offer in offers if offer.id in paid]
    served = yield from _end_offers(claimed, dict.fromkeys(paid, OfferMove.CLAIM), now_us, facts)
    turns = sorted((o.id, OfferState.WITHDRAWN.value, 0, now_us) for o in offers if o.id not in busy | paid)
    withdrawn = {row[0] for row in (yield Query("turn_offers", turns))} if turns else set()
    kept = {offer.entry_id for offer in offers if offer.id not in withdrawn}
    ending = sorted((e.id, e.state.value, EntryState.ENDED.value, 0, 0, now_us) for e in entries if e.id not in kept)
    ended = [entry_of(row) for row in (yield Query("turn_entries", ending))] if ending else []
    facts.extend(WaitlistEnded("", e.event_id, e.fan, 0, (), now_us, entry_id=e.id) for e in ended)
    freed = tuple(offer for offer in held if offer.id in withdrawn)
    done = len(ended) + len(served)
    return EndedEntries(done, freed, len(entries) - done)


def _end_offers(
    offers: Sequence[Offer], moves: dict[str, OfferMove], now_us: int, facts: list[Fact]
) -> Program[list[Offer]]:
    if not offers:
        return []
    rows = sorted((offer.id, OFFER_MOVES[OfferState.OPEN, moves[offer.id]].value, 0, now_us) for offer in offers)
    turned = {row[0] for row in (yield Query("turn_offers", rows))}
    ended = [offer for offer in offers if offer.id in turned]
    if not ended:
        return []
    found = yield Query("entries_by_id", sorted({(offer.entry_id,) for offer in ended}))
    lapses = {row[1]: row[10] for row in found}
    for offer in ended:
        yield from _finish_offer(offer, moves[offer.id], lapses.get(offer.entry_id, 0), now_us, facts)
    return [msgspec.structs.replace(offer, state=OFFER_MOVES[OfferState.OPEN, moves[offer.id]]) for offer in ended]


def _finish_offer(offer: Offer, move: OfferMove, lapses: int, now_us: int, facts: list[Fact]) -> Program[None]:
    """Move the entry to the state that follows from the offer's end, and add the fact."""
    after = entry_after(move, lapses)
    lapsed = int(move is OfferMove.LAPSE)
    yield Query("turn_entries", [(offer.entry_id, "offered", after.value, 0, lapsed, now_us)])
    about = (offer.booking_id, offer.event_id, offer.fan, offer.fence, offer.seats, now_us, offer.entry_id, offer.id)
    if move is OfferMove.CLAIM:
        facts.append(OfferClaimed(*about))
    elif move is OfferMove.DECLINE:
        facts.append(OfferDeclined(*about))
    else:
        facts.append(OfferLapsed(*about, after is EntryState.ENDED))
