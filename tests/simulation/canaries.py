"""Planted bugs, one per law: with the bug, some seed must break exactly that law. A law that no bug breaks proves
nothing. Bugs live here and in nobody's package; each is undone when its seed has ended."""

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

from msgspec.structs import replace as replace_struct

from frontrow.boxoffice.adapters.ledger.messages.message_book import SqlMessageBook
from frontrow.boxoffice.adapters.ledger.organiser.organiser_changes import SqlOrganiserBook
from frontrow.boxoffice.adapters.payments.simulated import SimulatedProvider
from frontrow.boxoffice.checkout.checkout import Checkout
from frontrow.boxoffice.checkout.purchases import Purchases
from frontrow.boxoffice.gate.gate_service import GateService
from frontrow.boxoffice.gate.model.redemptions import RedeemAnswer, Redeemed, Redemption
from frontrow.boxoffice.holds.claim_recovery import Recovery
from frontrow.boxoffice.holds.expiry import Sweeper
from frontrow.boxoffice.holds.held_seats import HeldSeats
from frontrow.boxoffice.holds.model.bookings import Origin
from frontrow.boxoffice.holds.model.claims import ClaimedSeats
from frontrow.boxoffice.holds.model.holds import NewHold
from frontrow.boxoffice.messages.model.messages import Outcome
from frontrow.boxoffice.messages.notifications import Notifier
from frontrow.boxoffice.pricing.model.booking_choices import price_choice
from frontrow.boxoffice.refunds.event_cancellation import EventCancellations
from frontrow.limits.stores.memory import MemoryStore
from frontrow.simulation.ledger_server import ReplicaServer
from frontrow.simulation.network import LIMIT_SLOTS, RemoteLimits
from frontrow.simulation.processes import MailChannel
from frontrow.waitingroom.entrance.person_and_address_limits import EntranceLimits
from frontrow.waitingroom.model.admission import plan_slide
from frontrow.waitingroom.service.room_cache import CachedRoom

if TYPE_CHECKING:
    from frontrow.simulation.world import World

Plant = Callable[["World"], None]
CANARIES: Final[dict[str, Plant]] = {}  # law -> the bug that breaks it


def breaks(law: str) -> Callable[[Plant], Plant]:
    """Plant this bug to break this law."""

    def add(plant: Plant) -> Plant:
        CANARIES[law] = plant
        return plant

    return add


def planted(law: str) -> str:
    """How the simulation finds the bug of this law."""
    return f"{__name__}:{law}"


def _patch(world: "World", owner: Any, name: str, fake: Any) -> None:
    world.planted.enter_context(mock.patch.object(owner, name, fake))


def _sql(world: "World", script: str) -> None:
    """Change the ledger's schema, as a wrong migration would."""
    connection = sqlite3.connect(world.path)
    connection.executescript(script)
    connection.close()


async def _nothing(*_: Any, **__: Any) -> Any:
    """A job that does not do its work."""
    return 0


async def _unchanged(self: Purchases, booking: Any) -> Any:
    return booking


def _grant_all(world: "World") -> None:
    """Neither the claim store nor the ledger keeps a seat for one booking."""
    claims = world.redis.claims

    async def claim(asked: Any, now_us: int) -> ClaimedSeats:
        claims._write(claims._filled_event(asked.event_id), asked.seats, asked.fan, asked.booking_id, now_us, 2**60)
        return ClaimedSeats(asked.seats)

    _patch(world, claims, "claim", claim)
    _sql(world, "DROP INDEX one_active_booking_per_seat")


breaks("one_active_booking_per_seat")(_grant_all)
breaks("only_the_newest_fence_confirms")(_grant_all)


@breaks("active_seats_are_those_of_live_bookings")
def _keep_released_seats(world: "World") -> None:
    _sql(
        world,
        "CREATE TRIGGER bug AFTER UPDATE OF active ON booking_seats WHEN new.active = 0 AND new.seat_index = 1 "
        "BEGIN UPDATE booking_seats SET active = 1 WHERE booking_id = new.booking_id AND seat_index = 1; END",
    )


@breaks("moves_follow_the_table")
def _reopen_ended_payments(world: "World") -> None:
    _sql(
        world,
        "CREATE TRIGGER bug AFTER INSERT ON payments BEGIN UPDATE payments SET payment_state = 'declined' "
        "WHERE payment_state = 'captured'; END",
    )


@breaks("caps_per_person_hold")
def _forget_caps(world: "World") -> None:
    write = world.ledger.write

    async def uncapped(operations: Any, **named: Any) -> Any:
        free = [replace_struct(x, cap=None) if isinstance(x, NewHold) else x for x in operations]
        return await write(free, **named)

    _patch(world, world.ledger, "write", uncapped)


@breaks("codes_and_stocks_hold")
def _forget_uses(world: "World") -> None:
    def unlimited(*given: Any) -> Any:
        chosen = price_choice(*given)
        return replace_struct(chosen, uses=tuple(replace_struct(use, most=10**6) for use in chosen.uses))

    world.planted.enter_context(mock.patch("frontrow.boxoffice.checkout.checkout.price_choice", unlimited))
    world.planted.enter_context(mock.patch.object(Purchases, "_count_limits", _unchanged))


@breaks("bookings_keep_their_origin")
def _forget_older_servers(world: "World") -> None:
    reader = "frontrow.boxoffice.adapters.ledger.holds.booking_transactions.read_session_column"
    world.planted.enter_context(mock.patch(reader, return_value=(Origin.SHOP, "", "")))


@breaks("redeemed_add_ons_were_paid")
def _redeem_whatever_is_shown(world: "World") -> None:
    async def redeem(self: GateService, redemption: Redemption, *, offline: bool = False) -> Redeemed:
        _insert_redemption(world, redemption)
        return Redeemed(RedeemAnswer.OK, ())

    _patch(world, GateService, "redeem", redeem)


def _insert_redemption(world: "World", one: Redemption) -> None:
    world.ledger.store._connection().execute(
        "INSERT OR IGNORE INTO add_on_redemptions (id, event_id, booking_id, add_on, quantity, gate, made_by, at_us) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (one.id, one.event_id, one.booking_id, one.add_on, one.quantity, one.gate, one.made_by, one.at_us),
    )


@breaks("replicas_show_what_they_say")
def _believe_the_clock(world: "World") -> None:
    """The replica's age is told by the primary's newest heartbeat, which the replica has not got yet."""

    async def shown_us(self: ReplicaServer) -> int:
        return world.ledger.beat_us

    _patch(world, ReplicaServer, "shown_us", shown_us)


def _capture_at_once(world: "World") -> None:
    """The provider takes the money when it should only reserve it."""
    decide = SimulatedProvider._decide

    def capture(self: SimulatedProvider, found: dict[str, Any], error: str) -> None:
        decide(self, found, error)
        if not error:
            found["status"], found["amount_capturable"], found["amount_received"] = "succeeded", 0, found["amount"]

    _patch(world, SimulatedProvider, "_decide", capture)


breaks("no_capture_without_a_sale")(_capture_at_once)


@breaks("never_more_back_than_taken")
def _capture_twice(world: "World") -> None:
    """The provider forgets keys: a call whose answer was lost is another payment when it is repeated."""
    _capture_at_once(world)
    handle = SimulatedProvider._handle

    def forgetful(self: SimulatedProvider, *given: Any) -> Any:
        self.state.answers.clear()
        return handle(self, *given)

    _patch(world, SimulatedProvider, "_handle", forgetful)


@breaks("disputed_money_is_not_given_back")
def _forget_disputes(world: "World") -> None:
    refunds = "frontrow.boxoffice.refunds"
    world.planted.enter_context(mock.patch(f"{refunds}.payouts.is_disputed", return_value=False))
    world.planted.enter_context(mock.patch(f"{refunds}.refunds.check_undisputed"))


def _admit_unseen(world: "World") -> None:
    async def admit(self: SqlOrganiserBook, scan: Any, *, again: bool = False) -> list[Any]:
        await world.clean.tickets.record_scans([scan])
        return []

    _patch(world, SqlOrganiserBook, "admit", admit)


breaks("old_tickets_do_not_admit")(_admit_unseen)
breaks("a_ticket_lets_in_once")(_admit_unseen)


@breaks("one_valid_ticket_per_sold_seat")
def _keep_tickets(world: "World") -> None:
    _sql(
        world,
        "CREATE TRIGGER bug AFTER UPDATE OF ticket_state ON tickets WHEN new.ticket_state = 'revoked' "
        "BEGIN UPDATE OR IGNORE tickets SET ticket_state = 'valid' WHERE id = new.id; END",
    )


@breaks("room_keeps_capacity_and_rate")
def _forget_the_bucket(world: "World") -> None:
    def hasty(state: Any, reports: Any = ()) -> Any:
        config = state.config.changed(capacity=1_000)
        return plan_slide(replace(state, bucket_milli=2_000_000, config=config.changed(burst=2_000)))

    world.planted.enter_context(mock.patch("frontrow.waitingroom.service.leader.plan_slide", hasty))

    def roomy(room: Any, command: Any, expires_s: int, tag: int, now_s: int) -> Any:
        room.state = replace(room.state, config=room.state.config.changed(capacity=1_000))
        try:
            return claim(room, command, expires_s, tag, now_s)
        finally:
            room.state = replace(room.state, config=room.state.config.changed(capacity=4))

    claim = world.redis.rooms._claim
    _patch(world, world.redis.rooms, "_claim", roomy)


@breaks("positions_never_worsen")
def _take_old_states(world: "World") -> None:
    update = CachedRoom.update

    def newest(self: CachedRoom, state: Any) -> None:
        if hasattr(self, "document"):
            state = replace(state, lanes=tuple(replace(x, hi=max(0, x.hi - state.slide_no % 3)) for x in state.lanes))
        update(self, state)

    _patch(world, CachedRoom, "update", newest)


@breaks("limits_hold")
def _count_nobody(world: "World") -> None:
    _patch(world, EntranceLimits, "count_person", lambda self, person: None)


@breaks("shared_limits_hold")
def _count_apart(world: "World") -> None:
    """Each server counts by itself what all should count together."""
    stores: dict[RemoteLimits, MemoryStore] = {}

    async def adecide(self: RemoteLimits, request: Any) -> Any:
        return stores.setdefault(self, MemoryStore(LIMIT_SLOTS, world.now_us)).decide(request)

    _patch(world, RemoteLimits, "adecide", adecide)


@breaks("only_the_owner_acts")
def _ignore_fences(world: "World") -> None:
    async def load(self: Checkout, booking_id: str, fence: int) -> Any:
        return await self.records.load_booking(booking_id)

    _patch(world, Checkout, "_load_own", load)


@breaks("jobs_never_fail")
def _fail_in_a_job(world: "World") -> None:
    async def fail(self: Sweeper) -> int:
        raise KeyError("seat")

    _patch(world, Sweeper, "sweep", fail)


@breaks("requests_never_fail")
def _fail_in_a_request(world: "World") -> None:
    async def fail(*_: Any) -> Any:
        raise KeyError("seat")

    _patch(world, Purchases, "extend", fail)


@breaks("everything_has_ended")
def _never_expire(world: "World") -> None:
    _patch(world, Sweeper, "sweep", _nothing)


@breaks("no_reservation_is_left")
def _void_nothing(world: "World") -> None:
    def void(self: SimulatedProvider, ref: str) -> Any:
        return replace_struct(self._intent(ref), state="void")

    _patch(world, SimulatedProvider, "_void", void)


@breaks("money_equals_tickets")
def _refund_less(world: "World") -> None:
    refund = SimulatedProvider.refund

    async def less(self: SimulatedProvider, ref: str, amount_minor: int, refund_id: str, key: str) -> Any:
        return await refund(self, ref, max(1, amount_minor - 1), refund_id, key)

    _patch(world, SimulatedProvider, "refund", less)


breaks("reports_equal_the_money")(_refund_less)
breaks("reconciler_finds_nothing")(_refund_less)


@breaks("a_cancelled_event_has_nobody")
def _cancel_nothing(world: "World") -> None:
    _patch(world, EventCancellations, "work", _nothing)


@breaks("claims_equal_the_ledger")
def _free_nothing(world: "World") -> None:
    _patch(world, HeldSeats, "freed", _nothing)
    _patch(world, Recovery, "reconcile", _nothing)


@breaks("one_message_per_fact")
def _tell_nobody(world: "World") -> None:
    _patch(world, Notifier, "_notice", lambda *_: [])


@breaks("sent_messages_arrived")
def _believe_every_send(world: "World") -> None:
    async def send(self: MailChannel, message: Any) -> Outcome:
        if len(message.id) % 2 == 0:
            await self._network.call("mail", "send", lambda: self._box.receive(message))
        return Outcome(True)

    _patch(world, MailChannel, "_send", send)


@breaks("messages_come_again_only_after_a_crash")
def _forget_what_was_sent(world: "World") -> None:
    _patch(world, SqlMessageBook, "save_delivery_results", _nothing)


@breaks("no_dead_letters")
def _fail_to_plan(world: "World") -> None:
    async def plan(self: Notifier, number: int, fact: Any) -> Any:
        raise KeyError("kind")

    _patch(world, Notifier, "plan", plan)


@breaks("invoices_have_no_gaps")
def _skip_numbers(world: "World") -> None:
    _sql(
        world,
        "CREATE TRIGGER bug AFTER UPDATE ON invoice_numbers "
        "BEGIN UPDATE invoice_numbers SET last_number = last_number + 1; END",
    )


@breaks("audit_chain_is_whole")
def _rewrite_the_audit(world: "World") -> None:
    _sql(
        world,
        "DROP TRIGGER audit_log_no_update; CREATE TRIGGER bug AFTER INSERT ON audit_log WHEN new.seq = 4 "
        "BEGIN UPDATE audit_log SET body = body || ' ' WHERE chain = new.chain AND seq = 2; END",
    )
