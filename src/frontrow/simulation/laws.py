"""The laws of a simulated platform: one function each. Those of `AFTER_COMMIT` hold after every commit of the ledger,
those of `AT_REST` once everything was healed and came to its end. A law returns what breaks it, or nothing.

They read the ledger's file, the provider's objects, the shared stores and the mailbox directly, never through the
services that they judge. The tests have a planted bug for every law.
"""

import bisect
import json
import sqlite3
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from frontrow.boxoffice.adapters.ledger.audit_verification import verify
from frontrow.boxoffice.holds.model.bookings import MOVES, BookingState, Origin
from frontrow.boxoffice.messages.notifications import KIND_OF_FACT
from frontrow.boxoffice.payments.model.payments import NEXT, PaymentState
from frontrow.boxoffice.pricing.model.prices import LineKind, decode_lines
from frontrow.boxoffice.refunds.model.refund_lines import add_ons_gone, decode_refund_lines
from frontrow.limits import Quota
from frontrow.simulation.loop import BEGIN_US
from frontrow.simulation.processes import SERVERS, Worker
from frontrow.simulation.scene import AT_ONCE, CODE_USES, EVENT, MOST, SHARED_PER_PERSON

if TYPE_CHECKING:
    from frontrow.simulation.world import World

ON_ITS_WAY_US: Final = 40_000_000  # for how long a call to the provider may be repeated before its answer counts
QUEUES: Final = 8  # of confirmations; each is sent one by one
ACTIVE: Final = "('held', 'paying', 'confirmed')"


class LawBroken(AssertionError):
    """A law does not hold."""


def _reachable(steps: dict[Any, set[Any]]) -> dict[Any, set[Any]]:
    """Every state that may follow each state, over any number of steps: one commit may make several."""
    found = {state: {state} | after for state, after in steps.items()}
    for _ in found:
        for after in found.values():
            after |= set().union(*(found.get(one, set()) for one in list(after)))
    return found


_BOOKING: Final = _reachable(
    {s.value: {c.to.value for (f, _), c in MOVES.items() if f is s and c.to is not None} for s in BookingState}
)
_PAYMENT: Final = _reachable({s.value: {one.value for one in NEXT[s]} for s in PaymentState})


class Laws:
    """Checks the laws of one world and remembers what it must compare with."""

    def __init__(self, world: "World", only: str = "") -> None:
        self.world, self._only = world, only
        self._connection = sqlite3.connect(world.path, isolation_level=None)
        self.first_broken = ""
        self.most_rate = 1
        self._active_at_rebuild: dict[int, int] = {}  # epoch -> visits
        self.most_ahead_us = 1_000_000  # how far a server's clock was ahead of the ledger's, at most
        self._states: dict[str, str] = {}
        self._payments: dict[str, str] = {}
        self._scans: set[str] = set()
        self.made: dict[str, tuple[Origin, str]] = {}  # booking -> where it came from, and in which visit
        self._facts_read = 0
        self._last_of_seat: dict[int, tuple[str, int]] = {}
        self._ahead: dict[tuple[str, str], int] = {}
        self._allowed: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        self._shared: defaultdict[str, list[int]] = defaultdict(list)
        self._refunds_seen: set[str] = set()
        self._disputed_since_us: dict[str, int] = {}  # object -> since when the ledger has known that it is disputed

    def rows(self, sql: str, *given: Any) -> list[Any]:
        """Rows of the ledger as it is now."""
        return self._connection.execute(sql, given).fetchall()

    def close(self) -> None:
        self._connection.close()

    def broke(self, law: str, why: str, error: BaseException | None = None) -> None:
        """Say that a law is broken. The first one counts; the seed ends with it. Of a canary, only its law counts."""
        if self._only and law != self._only:
            return
        if not self.first_broken:
            where = "".join(traceback.format_exception(error)[-6:]) if error is not None else ""
            self.first_broken = f"{law} at {self.world.loop.time():.3f} s: {why}\n{where}".strip()
            self.world.loop.stop()
        raise LawBroken(self.first_broken)

    def after_commit(self) -> None:
        for law in AFTER_COMMIT:
            why = law(self) if self._only in ("", law.__name__) else ""
            if why:
                self.broke(law.__name__, why)

    def redeemed_before_return(self, booking_id: str) -> int:
        """What a booking paid for add-ons that were redeemed and whose seats were returned; it stays paid."""
        found = self.rows(
            "SELECT b.price_lines, sum(r.quantity) FROM bookings b JOIN add_on_redemptions r ON r.booking_id = b.id "
            "WHERE b.id = ? AND r.refused = '' AND r.undone_at_us IS NULL "
            "AND EXISTS (SELECT 1 FROM returns WHERE booking_id = b.id) GROUP BY b.id",
            booking_id,
        )
        for lines, redeemed in found:
            unit: int = next(one.unit_minor for one in decode_lines(lines) if one.kind is LineKind.ADD_ON)
            return unit * int(redeemed)
        return 0

    async def at_rest(self) -> None:
        for law in AT_REST:
            why = law(self) if self._only in ("", law.__name__) else ""
            if why:
                self.broke(law.__name__, why)
        await self._origins()
        await self._reported()
        await self._reconciled()
        problems = (await verify(self.world.ledger.store))[0]
        if problems:
            self.broke("audit_chain_is_whole", str(problems))

    async def _reported(self) -> None:
        """reports_equal_the_money: what the organiser's figures add up to is what the provider has."""
        figures, provider = self.world.clean.figures, self.world.provider
        payments, refunds = await figures.payments_by_state(EVENT), await figures.refunds_by_state(EVENT)
        said = sum(row[3] for row in payments if row[0] == "captured")
        said -= sum(row[3] for row in refunds if row[0] == "done")
        has = sum(one["amount_received"] for one in provider.objects.values())
        has -= sum(one["amount"] for one in provider.refunds.values() if one["status"] != "failed")
        if said != has:
            self.broke("reports_equal_the_money", f"the figures say {said}, the provider {has}")

    async def _origins(self) -> None:
        """bookings_keep_their_origin: servers of both versions read who made a booking, whichever of them wrote it."""
        self.world.reached["booking of schema 40"] += self.rows("SELECT count(*) FROM bookings WHERE origin IS NULL")[
            0
        ][0]
        for booking_id, made in self.made.items():
            found = await self.world.clean.booking(booking_id)
            if found is None or found.origin is not made[0] or bool(found.visit_id) != bool(made[1]):
                self.broke("bookings_keep_their_origin", f"{booking_id} was made as {made} and is {found}")

    async def _reconciled(self) -> None:
        worker = self.world.processes["worker1"]
        assert isinstance(worker, Worker)
        report = await worker.reconciler.run()
        unpaid = [one for one in report.problems if not one.endswith("was let in and never paid")]
        if report.difference_minor or unpaid:
            self.broke("reconciler_finds_nothing", f"{report.difference_minor} {unpaid}")

    # what people saw

    def saw_replica(self, as_of_us: int, commits: int) -> None:
        """replicas_show_what_they_say: what was committed before the moment that a replica shows is in its answers."""
        self.world.reached["read from a replica"] += 1
        before = bisect.bisect_left(self.world.ledger.commits, as_of_us - BEGIN_US)
        if commits < before:
            self.broke("replicas_show_what_they_say", f"as of {as_of_us}: {commits} of {before} commits")

    def saw_position(self, server: str, jwt: str, place: Any, status: Any) -> None:
        """positions_never_worsen: one server never tells one place that more people are ahead than it said before."""
        if status.ahead is None:
            return
        server = server.partition(".")[0]  # also after it has crashed and started again
        before = self._ahead.get((server, jwt))
        if before is not None and status.ahead > before:
            self.broke(
                "positions_never_worsen", f"{server}: place {place.position}: {before} ahead, now {status.ahead}"
            )
        self._ahead[server, jwt] = status.ahead

    def was_allowed(self, server: str, fan: str) -> None:
        """limits_hold: no server lets one person make more requests per minute than its part of the limit."""
        quota = Quota.parse(self.world.scene.per_person)
        most = quota.limit // SERVERS + 1  # all at once, and one more within the 40 s
        now_us = self.world.now_us()
        times = [at for at in self._allowed[server, fan] if now_us - at < 40_000_000] + [now_us]
        self._allowed[server, fan] = times
        if len(times) > most:
            self.broke("limits_hold", f"{server} let {fan} make {len(times)} requests in 40 s")

    def store_allowed(self, fan: str) -> None:
        """shared_limits_hold: all servers together never let one person make more requests than the shared limit, but
        for those that Redis has forgotten."""
        now_us = self.world.now_us()
        since_us = max([now_us - SHARED_PER_PERSON.period_us + 100_000, *self.world.redis.limits_lost_us[-1:]])
        times = [at for at in self._shared[fan] if at > since_us] + [now_us]
        self._shared[fan] = times
        self.world.reached["counted by the shared limit"] += 1
        if len(times) > SHARED_PER_PERSON.limit:
            self.broke("shared_limits_hold", f"{fan} made {len(times)} requests in a minute, over all servers")


# After every commit


def one_active_booking_per_seat(laws: Laws) -> str:
    """B1: a seat is in at most one booking that is held, being paid or sold."""
    twice = laws.rows(
        "SELECT s.seat_index, group_concat(s.booking_id) FROM booking_seats s JOIN bookings b ON b.id = s.booking_id "
        f"WHERE s.active = 1 AND b.state IN {ACTIVE} GROUP BY s.seat_index HAVING count(*) > 1"
    )
    return f"seats of two bookings: {twice}" if twice else ""


def active_seats_are_those_of_live_bookings(laws: Laws) -> str:
    """free + held + sold = capacity: a seat is taken exactly while its booking has it."""
    rows = laws.rows(
        "SELECT b.id, b.state, b.seats, (SELECT group_concat(seat_index) FROM (SELECT seat_index FROM booking_seats "
        "WHERE booking_id = b.id AND active = 1 ORDER BY seat_index)) FROM bookings b"
    )
    for booking_id, state, seats, active in rows:
        has = [int(one) for one in active.split(",")] if active else []
        listed = json.loads(seats) if isinstance(seats, str) and seats.startswith("[") else None
        if state in ("held", "paying", "confirmed"):
            if not has or (listed is not None and listed != has):
                return f"{booking_id} is {state} with seats {seats}, of which {has} are taken"
        elif has:
            return f"{booking_id} is {state} and keeps seats {has}"
        if any(not 0 <= one < laws.world.plan.size for one in has):
            return f"{booking_id} has seats outside of the plan: {has}"
    return ""


def moves_follow_the_table(laws: Laws) -> str:
    """B5: bookings and payments change only along their tables; what has ended stays ended."""
    for known, table, sql in (
        (laws._states, _BOOKING, "SELECT id, state FROM bookings"),
        (laws._payments, _PAYMENT, "SELECT id, payment_state FROM payments"),
    ):
        for name, state in laws.rows(sql):
            before = known.get(name, state)
            if state not in table[before]:
                return f"{name} was {before} and is {state}"
            if name not in known or before != state:
                laws.world.reached[f"{'payment' if known is laws._payments else 'booking'} {state}"] += 1
            known[name] = state
    return ""


def only_the_newest_fence_confirms(laws: Laws) -> str:
    """B4: a booking is confirmed only while it was the last to get each of its seats, with the fence that it has."""
    facts = laws.rows("SELECT number, fact, booking_id, body FROM outbox WHERE number > ? ORDER BY 1", laws._facts_read)
    for number, fact, booking_id, body in facts:
        laws._facts_read = number
        laws.world.reached[f"fact {fact}"] += 1
        said = json.loads(body)
        if fact in ("HoldPlaced", "HoldChanged", "BookingReseated"):
            laws._last_of_seat.update(dict.fromkeys(said["seats"], (booking_id, said["fence"])))
        elif fact == "BookingConfirmed":
            others = {seat: laws._last_of_seat.get(seat) for seat in said["seats"]}
            if set(others.values()) != {(booking_id, said["fence"])}:
                return f"{booking_id} was confirmed with fence {said['fence']}; its seats went to {others}"
    return ""


def caps_per_person_hold(laws: Laws) -> str:
    """B11: nobody has more seats than one person may have. A hold that any server takes for ended does not count."""
    over = laws.rows(
        "SELECT b.fan, count(*) FROM bookings b JOIN booking_seats s ON s.booking_id = b.id AND s.active = 1 "
        f"WHERE b.state IN {ACTIVE} AND (b.state = 'confirmed' OR b.hold_expires_at_us > ?) "
        "GROUP BY b.fan HAVING count(*) > ?",
        laws.world.now_us() + laws.most_ahead_us,
        laws.world.scene.max_per_person,
    )
    return f"more than four seats: {over}" if over else ""


def codes_and_stocks_hold(laws: Laws) -> str:
    """Codes, stocks and shared limits are never used more often than they may be, all in all and per person."""
    used = laws.rows(
        "SELECT u.counter, sum(u.quantity), max(u.quantity), count(*) - count(DISTINCT b.fan) FROM booking_uses u "
        "JOIN bookings b ON b.id = u.booking_id WHERE b.state = 'confirmed' GROUP BY u.counter"
    )
    for counter, quantity, at_once, again in used:
        laws.world.reached[f"used {counter.rpartition(':')[2]}"] += 1
        is_code = counter.startswith("code:")
        if quantity > (CODE_USES if is_code else MOST):
            return f"{counter} was sold {quantity} times"
        if is_code and (again or at_once > 1):
            return f"{counter} was used twice by one person"
    return ""


def redeemed_add_ons_were_paid(laws: Laws) -> str:
    """A booking has redeemed at most the add-ons that it bought and that were not refunded."""
    rows = laws.rows(
        "SELECT b.id, b.price_lines, sum(r.quantity) FROM add_on_redemptions r JOIN bookings b ON b.id = r.booking_id "
        "WHERE r.refused = '' AND r.undone_at_us IS NULL AND b.state = 'confirmed' GROUP BY b.id"
    )
    for booking_id, lines, redeemed in rows:
        laws.world.reached["add-on redeemed"] += redeemed
        refunds = laws.rows("SELECT refund_lines FROM refunds WHERE booking_id = ?", booking_id)
        gone = add_ons_gone([decode_refund_lines(row[0]) for row in refunds])
        bought = sum(one.quantity for one in decode_lines(lines) if one.kind is LineKind.ADD_ON)
        if redeemed > bought - gone["parking"]:
            return f"{booking_id} redeemed {redeemed} of {bought} add-ons, of which {gone} were refunded"
    return ""


def never_more_back_than_taken(laws: Laws) -> str:
    """N4: the provider never gives back more than it took, and takes the reserved money of a booking at most once.

    Money that is paid at once may also come for a payment that the fan has left. It goes back: see
    `money_equals_tickets`.
    """
    provider = laws.world.provider
    given: Counter[str] = Counter()
    for one in provider.refunds.values():
        given[one["payment_intent"]] += one["amount"] if one["status"] != "failed" else 0
    taken: Counter[str] = Counter()
    for ref, found in provider.objects.items():
        if given[ref] > found["amount_received"]:
            return f"{ref} took {found['amount_received']} and gave back {given[ref]}"
        if found["amount_received"] and found["payment_method"] not in AT_ONCE:
            taken[found["metadata"]["booking"]] += 1
    twice = [booking for booking, times in taken.items() if times > 1]
    return f"charged twice: {twice}" if twice else ""


def disputed_money_is_not_given_back(laws: Laws) -> str:
    """N4, B12: what a bank has taken back, for now or for good, is not refunded as well.

    A refund that was on its way when the ledger heard of the dispute may still arrive.
    """
    now_us, given = laws.world.now_us(), laws.world.provider.refunds
    against = dict(
        laws.rows(
            "SELECT payment_ref, sum(amount_minor) FROM disputes WHERE dispute_state IN ('open', 'lost') GROUP BY 1"
        )
    )
    since_us = laws._disputed_since_us
    for ref in [ref for ref in since_us if ref not in against]:
        del since_us[ref]
    for ref in against:
        since_us.setdefault(ref, now_us)
    for name, one in given.items():
        ref = one["payment_intent"]
        if name in laws._refunds_seen:
            continue
        laws._refunds_seen.add(name)
        if now_us - since_us.get(ref, now_us) < ON_ITS_WAY_US or one["status"] == "failed":
            continue
        back = sum(x["amount"] for x in given.values() if x["payment_intent"] == ref and x["status"] != "failed")
        if back + against[ref] > laws.world.provider.objects[ref]["amount_received"]:
            return f"{back} of {ref} were given back, of which a bank has taken {against[ref]}"
    return ""


def no_capture_without_a_sale(laws: Laws) -> str:
    """B6: reserved money is taken only for a booking that was confirmed first. (What is paid at once goes back.)"""
    objects = laws.world.provider.objects.values()
    captured = {
        o["metadata"]["booking"] for o in objects if o["amount_received"] and o["payment_method"] not in AT_ONCE
    }
    if not captured:
        return ""
    sold = {row[0] for row in laws.rows("SELECT id FROM bookings WHERE confirmed_at_us IS NOT NULL")}
    return f"charged and never sold: {sorted(captured - sold)}" if captured - sold else ""


def old_tickets_do_not_admit(laws: Laws) -> str:
    """G1: a scan that lets somebody in names a ticket that is valid at that moment."""
    for scan, ticket, state in laws.rows(
        "SELECT c.id, c.ticket_id, t.ticket_state FROM scans c LEFT JOIN tickets t ON t.id = c.ticket_id"
    ):
        if scan in laws._scans:
            continue
        laws._scans.add(scan)
        if state != "valid":
            return f"{scan} let in ticket {ticket}, which is {state}"
    return ""


def one_valid_ticket_per_sold_seat(laws: Laws) -> str:
    """Each sold seat has exactly one valid ticket, and no other seat has one."""
    wrong = laws.rows(
        "SELECT b.id, b.state, s.seat_index, count(t.id) FROM booking_seats s JOIN bookings b ON b.id = s.booking_id "
        "LEFT JOIN tickets t ON t.booking_id = b.id AND t.seat_index = s.seat_index AND t.ticket_state = 'valid' "
        "LEFT JOIN returns r ON r.booking_id = b.id AND r.seat_index = s.seat_index AND r.return_state = 'giving' "
        "WHERE r.id IS NULL GROUP BY b.id, s.seat_index "
        "HAVING count(t.id) <> (b.state = 'confirmed' AND s.active = 1)"
    )
    return f"(booking, state, seat, tickets): {wrong}" if wrong else ""


def a_ticket_lets_in_once(laws: Laws) -> str:
    """G2: a ticket has at most one scan that lets in; a scan that is undone is gone."""
    twice = laws.rows("SELECT ticket_id, count(*) FROM scans WHERE way = 'in' GROUP BY ticket_id HAVING count(*) > 1")
    return f"let in more than once: {twice}" if twice else ""


def room_keeps_capacity_and_rate(laws: Laws) -> str:
    """W3: admissions keep to the rate, the burst and the capacity.

    A rebuilt room may begin with a full burst, and with visits whose end never reached the audit: they count until
    their passes expire, and nobody is admitted in their place.
    """
    room = laws.world.redis.rooms._rooms.get(EVENT)
    if room is None:
        return ""
    state = room.state
    admitted = sum(lane.hi for lane in state.lanes)
    most = state.config.burst * state.epoch + laws.most_rate * (laws.world.loop.time() + 1)
    if admitted > most:
        return f"{admitted} were admitted, at most {most:.0f} by rate {laws.most_rate} and epoch {state.epoch}"
    begun = laws._active_at_rebuild.setdefault(state.epoch, room.active if state.epoch > 1 else 0)
    if room.active > max(begun, state.config.capacity):
        return f"{room.active} are in the shop, which has room for {state.config.capacity}"
    if any(lane.lo > lane.hi for lane in state.lanes):
        return f"the window is upside down: {state.lanes}"
    return ""


# At rest


def everything_has_ended(laws: Laws) -> str:
    """No hold, payment, refund, return, offer or cancellation is unfinished."""
    unfinished = (
        "SELECT id, state FROM bookings WHERE state IN ('held', 'paying')",
        "SELECT id, payment_state FROM payments WHERE retry_at_us > 0 "
        "OR payment_state NOT IN ('captured', 'voided', 'declined', 'lapsed')",
        "SELECT id, refund_state FROM refunds WHERE refund_state NOT IN ('done', 'moot')",
        "SELECT id, return_state FROM returns WHERE return_state IN ('giving', 'resold')",
        "SELECT id, offer_state FROM offers WHERE offer_state = 'open'",
        "SELECT event_id, job_state FROM cancellations WHERE job_state <> 'done'",
        "SELECT number, fact FROM outbox WHERE published_at_us IS NULL",
        "SELECT number, delivery_state FROM deliveries WHERE delivery_state NOT IN ('sent', 'given_up')",
    )
    left = [row for sql in unfinished for row in laws.rows(sql)]
    return f"unfinished: {left}" if left else ""


def no_reservation_is_left(laws: Laws) -> str:
    """B7: every authorisation was captured or voided."""
    left = [ref for ref, one in laws.world.provider.objects.items() if one["amount_capturable"]]
    return f"money of a card is still reserved: {left}" if left else ""


def money_equals_tickets(laws: Laws) -> str:
    """N4: of each booking, taken - given back = price of its tickets and add-ons + fees kept + what is for resale.

    What a bank took back for good may be missing: its refund was asked for, and is not paid.
    """
    provider = laws.world.provider
    balance: Counter[str] = Counter()
    for found in provider.objects.values():
        balance[found["metadata"]["booking"]] += found["amount_received"]
    for one in provider.refunds.values():
        if one["status"] != "failed":
            balance[provider.objects[one["payment_intent"]]["metadata"]["booking"]] -= one["amount"]
    cancelled = laws.rows("SELECT event_state FROM events")[0][0] == "cancelled"
    inside = {row[0] for row in laws.rows("SELECT t.booking_id FROM scans s JOIN tickets t ON t.id = s.ticket_id")}
    lost = dict(
        laws.rows("SELECT booking_id, sum(amount_minor) FROM disputes WHERE dispute_state = 'lost' GROUP BY booking_id")
    )
    last = dict(laws.rows("SELECT booking_id, payment_state FROM payments ORDER BY attempt"))
    for booking_id, state, amount in laws.rows("SELECT id, state, amount_minor FROM bookings"):
        worth = amount if state == "confirmed" else 0
        if worth and last.get(booking_id) in ("lapsed", "declined", "voided") and booking_id in inside:
            laws.world.reached["let in and never paid"] += 1
            continue
        worth += laws.rows(
            "SELECT coalesce(sum(fee_minor), 0) FROM refunds WHERE refund_state = 'done' AND booking_id = ?", booking_id
        )[0][0]
        worth += laws.rows(
            "SELECT coalesce(sum(price_minor), 0) FROM returns WHERE return_state = 'listed' AND booking_id = ?",
            booking_id,
        )[0][0]
        kept = laws.redeemed_before_return(booking_id) if state == "cancelled" else 0
        all_back = cancelled and balance[booking_id] == worth  # a cancelled event gives everything back
        taken_back = 0 <= balance[booking_id] - worth - kept <= lost.get(booking_id, 0)
        if not taken_back and not all_back:
            return f"{booking_id} is {state}: {balance[booking_id]} were paid and kept, worth {worth}"
    return ""


def a_cancelled_event_has_nobody(laws: Laws) -> str:
    """A cancelled event has no live booking and no seat in the pool."""
    if laws.rows("SELECT event_state FROM events")[0][0] != "cancelled":
        return ""
    laws.world.reached["event cancelled"] += 1
    inside = {row[0] for row in laws.rows("SELECT t.booking_id FROM scans s JOIN tickets t ON t.id = s.ticket_id")}
    left = laws.rows(f"SELECT id, state FROM bookings WHERE state IN {ACTIVE}")
    left = [row for row in left if row[0] not in inside]
    left += laws.rows("SELECT id, return_state FROM returns WHERE return_state = 'listed'")
    return f"of a cancelled event: {left}" if left else ""


def claims_equal_the_ledger(laws: Laws) -> str:
    """The claim store, and so every map, shows exactly the seats that the ledger has sold."""
    if laws.rows("SELECT event_state FROM events")[0][0] == "cancelled":
        return ""
    event = laws.world.redis.claims._events[EVENT]
    now_us = laws.world.now_us()
    shown = {seat: one.booking_id for seat, one in event.taken.items() if one.live(now_us)}
    sold = dict(laws.rows("SELECT seat_index, booking_id FROM booking_seats WHERE active = 1"))
    if not event.filled:
        return "the claim store was never filled again"
    return f"the claim store has {shown}, the ledger {sold}" if shown != sold else ""


def one_message_per_fact(laws: Laws) -> str:
    """F5: each fact that people are told of has one message on their page, and no message has another's id."""
    facts = laws.rows("SELECT number, fact, booking_id, event_id FROM outbox ORDER BY number")
    told = [row for (row,) in laws.rows("SELECT id FROM in_app_messages")]
    of_fact = Counter(one.rpartition("-")[2] for one in told)
    returned = {booking for _, fact, booking, _ in facts if fact == "TicketReturned"}  # that says it of a whole booking
    for number, fact, booking, _ in facts:
        if fact == "BookingCancelled" and booking in returned:
            continue
        if fact in KIND_OF_FACT and fact not in ("PaymentDeclined", "HoldExpired") and of_fact[str(number)] != 1:
            return f"fact {number} ({fact}) has {of_fact[str(number)]} messages"
    return ""


def sent_messages_arrived(laws: Laws) -> str:
    """A delivery that the ledger calls sent is in the mailbox; nothing else is there."""
    received = {one.id for one in laws.world.box.messages}
    known = {row[0].removesuffix(":sms") for row in laws.rows("SELECT dedupe FROM deliveries")}
    sent = laws.rows("SELECT dedupe FROM deliveries WHERE delivery_state = 'sent'")
    lost = {row[0].removesuffix(":sms") for row in sent} - received
    laws.world.reached["message"] += len(received)
    laws.world.reached["message twice"] += len(laws.world.box.messages) - len(received)
    return f"never arrived: {sorted(lost)}; unknown: {sorted(received - known)}" if lost or received - known else ""


def messages_come_again_only_after_a_crash(laws: Laws) -> str:
    """A message whose sender heard that it arrived is sent again only by the heir of a killed worker: at most one per
    queue that the worker was sending."""
    world = laws.world
    most = QUEUES * world.worker_crashes
    laws.world.reached["message sent again"] += world.box.sent_again
    return f"{world.box.sent_again} came again, at most {most}" if world.box.sent_again > most else ""


def no_dead_letters(laws: Laws) -> str:
    """No fact was given up, and no message either, unless nobody needs it any more: its booking was refunded before."""
    dead = laws.rows(
        "SELECT dedupe, last_error, body FROM deliveries WHERE kind = 'poison' OR (delivery_state = 'given_up' "
        "AND last_error <> 'the message is no longer needed')"
    )
    return f"dead letters: {dead}" if dead else ""


def invoices_have_no_gaps(laws: Laws) -> str:
    """Invoice numbers are 1, 2, 3, …, and a sale and a refund have at most one."""
    invoices = laws.rows("SELECT number, booking_id, refund_id FROM invoices ORDER BY number")
    numbers = [row[0] for row in invoices]
    laws.world.reached["invoice"] += len(numbers)
    if numbers != list(range(1, len(numbers) + 1)):
        return f"invoice numbers {numbers}"
    return f"two invoices for one thing: {invoices}" if len({row[1:] for row in invoices}) < len(invoices) else ""


Law = Callable[[Laws], str]
AFTER_COMMIT: Final[tuple[Law, ...]] = (
    one_active_booking_per_seat,
    active_seats_are_those_of_live_bookings,
    moves_follow_the_table,
    only_the_newest_fence_confirms,
    caps_per_person_hold,
    codes_and_stocks_hold,
    redeemed_add_ons_were_paid,
    never_more_back_than_taken,
    disputed_money_is_not_given_back,
    no_capture_without_a_sale,
    old_tickets_do_not_admit,
    a_ticket_lets_in_once,
    one_valid_ticket_per_sold_seat,
    room_keeps_capacity_and_rate,
)
AT_REST: Final[tuple[Law, ...]] = (
    everything_has_ended,
    no_reservation_is_left,
    money_equals_tickets,
    a_cancelled_event_has_nobody,
    claims_equal_the_ledger,
    one_message_per_fact,
    sent_messages_arrived,
    messages_come_again_only_after_a_crash,
    no_dead_letters,
    invoices_have_no_gaps,
)
