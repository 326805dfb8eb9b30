"""Those who use a simulated platform: fans from the waiting room to the gate, the gate itself, and the organiser.

Each has a stream of the seed's workload. They know only what servers answered them, so they ask again, ask another
server, use old documents and meddle with what is not theirs.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from frontrow.boxoffice.adapters.payments.simulated import LAPSES, REFUND_FAILS
from frontrow.boxoffice.events.model.event_changes import Change
from frontrow.boxoffice.gate.gate_check import GateVerdict
from frontrow.boxoffice.gate.model.redemptions import Redemption
from frontrow.boxoffice.gate.model.scans import Scan
from frontrow.boxoffice.holds.model.bookings import Booking, BookingNotFound, BookingState, Origin
from frontrow.boxoffice.holds.model.holds import ShopPass
from frontrow.boxoffice.holds.model.requested_seats import Wish
from frontrow.boxoffice.pricing.model.booking_choices import BookingChoice
from frontrow.boxoffice.request_reads import measured_reads
from frontrow.boxoffice.tickets.model.tickets import TicketState
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import Refused
from frontrow.simulation.processes import PlayedServer
from frontrow.simulation.scene import ADA, AT_ONCE, EVENT

if TYPE_CHECKING:
    from frontrow.simulation.world import World

CARDS: Final = ("pm_card_visa",) * 9 + ("pm_card_declined", "pm_card_3ds", "pm_card_3ds_declined", LAPSES, REFUND_FAILS)


class PlayedFan:
    """One fan and what their browser remembers."""

    def __init__(self, world: "World", name: str) -> None:
        self.world, self.name = world, name
        self.dice = random.Random(f"workload {world.seed} {name}")
        self.place = self.pass_jwt = ""
        self.bookings: list[tuple[str, int]] = []  # (id, fence) as servers answered
        self.transfers: list[str] = []
        self.joins = 0

    async def live(self) -> None:
        """Come some time after the doors open, then do something every few seconds."""
        await asyncio.sleep(2 + self.dice.random() * 20)
        while not self.world.is_over:
            await self._act()
            await asyncio.sleep(self.dice.choice((0.2, 1, 3, 6, 12)))

    async def _act(self) -> None:
        if not self.pass_jwt:
            await self._enter()
            if self.dice.random() < 0.7:
                return
        acts: list[tuple[int, Callable[[], Awaitable[Any]]]] = [
            (24, self._hold),
            (26, self._pay),
            (12, self._choose),
            (3, self._extend),
            (4, self._release),
            (3, self._step_back),
            (4, self._refund),
            (5, self._give_back),
            (4, self._transfer),
            (4, self._accept),
            (3, self._invoice),
            (6, self._wait),
            (3, self._leave),
            (4, self._meddle),
        ]
        await self.dice.choices([act for _, act in acts], [weight for weight, _ in acts])[0]()

    async def _ask(self, what: str, act: Callable[[PlayedServer], Awaitable[Any]]) -> Any:
        return await self.world.ask(self.name, what, act)

    # the waiting room

    async def _enter(self) -> None:
        """Join, look at the place, and take the pass when it is their turn."""
        if not self.place:
            self.joins += 1
            key = f"{self.name}-{self.joins}"
            joined = await self._ask("join", lambda s: s.room.joins.join(EVENT, self.name, idempotency_key=key))
            if joined is not None:
                self.place = joined.place_jwt
            else:
                self.joins -= 1  # the same request again
            return
        status = await self._ask("look", self._look)
        if status is None:
            return
        if status.state == "expired":
            self.place = ""
            return
        key = f"claim-{self.name}-{self.joins}"
        claimed = await self._ask("claim pass", lambda s: s.room.visits.claim(self.place, EVENT, key))
        if claimed is not None:
            self.pass_jwt, self.place = claimed.pass_jwt, ""

    async def _look(self, server: PlayedServer) -> Any:
        place = server.room.places.verify(self.place, EVENT)
        status = server.room.statuses.of(self.place, EVENT)
        self.world.laws.saw_position(server.id, self.place, place, status)
        return status

    def _visit(self, server: PlayedServer) -> ShopPass:
        visit = server.room.visits.check_pass(self.pass_jwt, EVENT)
        server.room.visits.hear_place(visit.event, visit.place)
        return ShopPass(
            visit.event, visit.person, visit.expires_s * US_PER_S, visit.id, ends_with_sale=bool(visit.place.epoch)
        )

    async def _leave(self) -> None:
        jwt, self.pass_jwt = self.pass_jwt, ""
        if jwt:
            await self._ask("leave shop", lambda s: s.room.visits.give_back(jwt, EVENT))

    # seats

    async def _hold(self) -> None:
        if not self.pass_jwt:
            return
        dice, plan = self.dice, self.world.plan
        seats = [plan.seat_id(one) for one in dice.sample(range(plan.size), dice.choice((1, 1, 2, 3)))]
        wish = Wish(dice.choice((1, 2)), apart_ok=True) if dice.random() < 0.3 else None

        async def hold(server: PlayedServer) -> Any:
            visit = self._visit(server)
            server.limits.count_person(self.name)
            self.world.laws.was_allowed(server.id, self.name)
            if not (await server.shared_limit.acheck(self.name)).allowed:
                self.world.reached["refused by the shared limit"] += 1
                raise Refused("the shared limit is reached, or its store is away")
            self.world.laws.store_allowed(self.name)
            made = await server.office.purchases.place_or_change(EVENT, visit, [] if wish else seats, wish)
            self.world.laws.made.setdefault(made.booking_id, (Origin.SHOP, visit.id))
            return made

        held = await self._ask("hold", hold)
        if held is not None:
            self.bookings.append((held.booking_id, held.fence))
        elif dice.random() < 0.2:
            self.pass_jwt = ""  # perhaps the visit is over

    async def _own(self, server: PlayedServer) -> tuple[Booking, int]:
        """One of their bookings, most likely the newest, with the fence as they know it."""
        at = -1 if self.dice.random() < 0.7 else self.dice.randrange(len(self.bookings))
        booking_id, fence = self.bookings[at]
        found = await server.ledger.booking(booking_id)
        if found is None:
            raise BookingNotFound(booking_id)
        return found, fence

    async def _with_own(self, what: str, act: Callable[[PlayedServer, Booking, int], Awaitable[Any]]) -> Any:
        if not self.bookings:
            return None

        async def run(server: PlayedServer) -> Any:
            return await act(server, *await self._own(server))

        return await self._ask(what, run)

    async def _pay(self) -> None:
        card = self.dice.choice(CARDS + AT_ONCE)
        begin = self.dice.random() < 0.15

        async def pay(server: PlayedServer, booking: Booking, fence: int) -> Any:
            visit = self._visit(server) if booking.visit_id else ShopPass(EVENT, self.name, 2**60)
            purchases = server.office.purchases
            if begin:
                return await purchases.begin(booking, visit, fence)
            recent = purchases.just_held(booking.id, card)
            if recent is not None:  # as the API does; others may have acted on it since
                booking = recent
                self.world.reached["paid unread"] += 1
            return await purchases.pay(booking, visit, card, fence)

        result = await self._with_own("begin payment" if begin else "pay", pay)
        if result is not None:
            self.world.reached[f"checkout {result.state}"] += 1
            if begin and result.payment is not None and result.payment.ref and self.dice.random() < 0.7:
                self._pay_in_browser(result.payment.ref, card)

    def _pay_in_browser(self, ref: str, card: str) -> None:
        """The provider's own form: we do not see it."""
        provider = self.world.provider
        if provider.objects.get(ref, {}).get("status") == "requires_payment_method":
            provider.confirm_in_browser(ref, card)
            self.world.reached["paid in the browser"] += 1

    async def _choose(self) -> None:
        dice = self.dice
        add_ons = {"parking": dice.choice((1, 2))} if dice.random() < 0.6 else {}
        code, child = dice.choice(("", "TEN", "TEN", "NONE")), dice.random() < 0.5

        async def choose(server: PlayedServer, booking: Booking, fence: int) -> Any:
            types = dict.fromkeys(booking.seats[:1], "child") if child else {}
            choice = BookingChoice(types, add_ons, code)
            return await server.office.purchases.choose(booking, self._visit(server), choice, fence)

        await self._with_own("choose", choose)

    async def _extend(self) -> None:
        await self._with_own("extend", lambda s, b, f: s.office.purchases.extend(b, self._visit(s), f))

    async def _release(self) -> None:
        await self._with_own("release", lambda s, b, f: s.office.purchases.release(b, self._visit(s), f))

    async def _step_back(self) -> None:
        await self._with_own("step back", lambda s, b, f: s.office.purchases.step_back(b, self._visit(s), f))

    # tickets

    async def _refund(self) -> None:
        whole, add_on, dice = self.dice.random() < 0.5, self.dice.random() < 0.3, self.dice

        async def refund(server: PlayedServer, booking: Booking, fence: int) -> Any:
            seats = None if whole or not booking.seats else [dice.choice(booking.seats)]
            if add_on:
                return await server.office.refunds.refund(booking.id, fence, [], {"parking": 1})
            return await server.office.refunds.refund(booking.id, fence, seats)

        await self._with_own("refund", refund)

    async def _give_back(self) -> None:
        async def give_back(server: PlayedServer, booking: Booking, fence: int) -> Any:
            some = self.dice.sample(booking.seats, self.dice.randint(1, len(booking.seats)))
            return await server.office.resale.give_back(booking.id, self.name, fence, some)

        await self._with_own("give back", give_back)

    async def _transfer(self) -> None:
        async def send(server: PlayedServer, booking: Booking, fence: int) -> Any:
            return await server.office.transfers.send(booking, self.dice.choice(booking.seats), "bob@example.com", "en")

        sent = await self._with_own("send ticket", send)
        if sent is not None:
            self.transfers.append(sent.id)

    async def _accept(self) -> None:
        if not self.transfers:
            return
        transfer_id, withdraw = self.dice.choice(self.transfers), self.dice.random() < 0.3

        async def act(server: PlayedServer, booking: Booking, fence: int) -> Any:
            if withdraw:
                return await server.office.transfers.withdraw(booking, transfer_id)
            return await server.office.transfers.accept(transfer_id, "Bob", "en")

        await self._with_own("withdraw ticket" if withdraw else "accept ticket", act)

    async def _invoice(self) -> None:
        await self._with_own("invoice", lambda s, b, f: s.office.invoices.issue(b))

    # the waitlist

    async def _wait(self) -> None:
        offers = await self._ask("offers", lambda s: s.office.waitlist.offers(EVENT, self.name))
        if offers and self.dice.random() < 0.7:
            claimed = await self._ask("claim offer", lambda s: s.office.waitlist.claim(offers[0].id, self.name))
            if claimed is not None:
                self.world.laws.made[claimed.booking_id] = (Origin.OFFER, "")
                self.bookings.append((claimed.booking_id, claimed.fence))
        elif offers:
            await self._ask("decline offer", lambda s: s.office.waitlist.decline(offers[0].id, self.name))
        else:
            count = self.dice.choice((1, 1, 2))
            await self._ask("join waitlist", lambda s: s.office.waitlist.join(EVENT, self.name, count))

    # what must be refused

    async def _meddle(self) -> None:
        """Try to release, extend or refund somebody else's booking, or their own with an old fence."""
        others = [pair for fan in self.world.people for pair in fan.bookings if fan is not self]
        if not others:
            return
        booking_id, fence = self.dice.choice(others)
        guessed = fence + self.dice.choice((-1, 1))
        act = self.dice.choice(("release", "extend", "refund", "pay", "give back", "withdraw", "take the offer of"))
        transfers = [one for fan in self.world.people for one in fan.transfers if fan is not self]
        mine = self.dice.choice(self.bookings)[0] if self.bookings else ""
        transfer = self.dice.choice(transfers) if transfers else ""
        if act == "withdraw" and not (mine and transfer):
            return

        async def meddle(server: PlayedServer) -> Any:
            office, now_us = server.office, server.clock()
            if act == "release":
                return await office.checkout.release(booking_id, guessed)
            if act == "extend":
                return await server.ledger.extend_hold(booking_id, guessed, now_us, now_us + 10**9)
            if act == "refund":
                return await office.refunds.refund(booking_id, guessed)
            if act == "give back":
                return await office.resale.give_back(booking_id, self.name, fence)
            if act == "withdraw":
                return await self._withdraw_others(server, mine, transfer)
            if act == "take the offer of":
                return await self._take_others_offer(server)
            return await office.checkout.pay(booking_id, guessed, "pm_card_visa")

        if await self._ask("meddle", meddle) is not None:
            self.world.laws.broke("only_the_owner_acts", f"{self.name} could {act} {booking_id} with a wrong fence")

    async def _withdraw_others(self, server: PlayedServer, mine: str, transfer_id: str) -> Any:
        """Somebody else's transfer through a booking of their own."""
        booking = await server.ledger.booking(mine)
        if booking is None:
            raise BookingNotFound(mine)
        return await server.office.transfers.withdraw(booking, transfer_id)

    async def _take_others_offer(self, server: PlayedServer) -> Any:
        other = self.dice.choice([fan for fan in self.world.people if fan is not self])
        offers = await server.office.waitlist.offers(EVENT, other.name)
        if not offers:
            raise Refused("they have no offer")
        return await server.office.waitlist.claim(offers[0].id, self.name)


class PlayedGate:
    """A gate that scans whatever people show: also copies, old codes, and tickets of others."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.dice = random.Random(f"workload {world.seed} gate")
        self.codes: list[str] = []
        self.inside: list[tuple[str, str]] = []  # (scan, ticket)
        self.shown = ""
        self.scans = self.redemptions = 0
        self.holders: list[str] = []  # bookings with add-ons, as the gate has seen them

    async def live(self) -> None:
        await asyncio.sleep(20)
        while not self.world.is_over:
            await asyncio.sleep(self.dice.choice((2, 5, 9)))
            await self._collect()
            if self.inside and self.dice.random() < 0.15:
                scan, ticket = self.dice.choice(self.inside)
                await self.world.ask("gate", "undo scan", self._undoing(scan, ticket))
            elif self.holders and self.dice.random() < 0.3:
                await self._redeem()
            elif self.codes:
                if not self.scans or self.dice.random() >= 0.1:  # else the scan before is sent once more
                    self.shown = self.dice.choice(self.codes)
                    self.scans += 1
                code, number = self.shown, self.scans
                await self.world.ask("gate", "scan", self._scanning(code, number))

    def _undoing(self, scan: str, ticket: str) -> Callable[[PlayedServer], Awaitable[Any]]:
        return lambda server: self._undo(server, scan, ticket)

    def _scanning(self, code: str, number: int) -> Callable[[PlayedServer], Awaitable[Any]]:
        return lambda server: self._scan(server, code, number)

    async def _collect(self) -> None:
        """Fans look at their tickets, and keep pictures of them."""
        bookings = [pair for fan in self.world.people for pair in fan.bookings]
        if not bookings:
            return
        booking_id, _ = self.dice.choice(bookings)
        codes = await self.world.ask("gate", "tickets", lambda s: self._codes(s, booking_id))
        self.codes += [one for one in codes or [] if one not in self.codes]

    async def _codes(self, server: PlayedServer, booking_id: str) -> list[str]:
        valid = [one for one in await server.ledger.tickets.tickets_of(booking_id) if one.state is TicketState.VALID]
        if await server.office.gates.find_add_ons(await server.ledger.booking(booking_id)):
            self.holders.append(booking_id)
        return [await server.office.renderer.shown_code(one.id, server.clock()) for one in valid]

    async def _scan(self, server: PlayedServer, code: str, number: int) -> Any:
        gates, now_us = server.office.gates, server.clock()
        verdict, ticket = gates.verify(EVENT, code, now_us)
        if verdict is not GateVerdict.WELCOME or ticket is None:
            raise Refused(verdict.value)
        event = await server.ledger.catalogue.event(EVENT)
        scan = Scan(f"scn_{number}", EVENT, ticket.id, "north", now_us)
        before = await gates.admit(event, scan)
        if before is None:
            self.inside.append((scan.id, ticket.id))
            self.world.reached["let in"] += 1
        return before or scan

    async def _redeem(self) -> None:
        """Hand out an add-on, or say again that it was handed out."""
        booking_id, quantity = self.dice.choice(self.holders), self.dice.choice((1, 1, 2))
        self.redemptions += self.dice.random() < 0.9 or not self.redemptions
        number = self.redemptions

        async def redeem(server: PlayedServer) -> Any:
            asked = Redemption(
                f"rdm_{number}", EVENT, booking_id, "parking", quantity, "north", "stf_ada", server.clock()
            )
            redeemed = await server.office.gates.redeem(asked)
            self.world.reached[f"redeem {redeemed.answer}"] += 1
            return redeemed

        await self.world.ask("gate", "redeem", redeem)

    async def _undo(self, server: PlayedServer, scan_id: str, ticket_id: str) -> Any:
        event = await server.ledger.catalogue.event(EVENT)
        return await server.office.gates.undo_admission(ADA, event, scan_id, ticket_id, server.clock())


class PlayedOrganiser:
    """Pauses and resumes the room and the sale, changes the rate, moves and refunds people, and may cancel."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.dice = random.Random(f"workload {world.seed} organiser")

    async def live(self) -> None:
        dice = self.dice
        cancels_at = dice.randrange(100, 230) if dice.random() < 0.3 else None
        while not self.world.is_over:
            await asyncio.sleep(dice.choice((6, 12, 20)))
            if cancels_at is not None and self.world.loop.time() > cancels_at:
                if await self._ask("cancel event", lambda s: s.organise.cancel(ADA, EVENT)) is not None:
                    cancels_at = None
                continue
            await dice.choice(
                (self._pause_room, self._rate, self._pause_sale, self._reseat, self._reseat, self._refund)
            )()
            await self._look()

    async def _ask(self, what: str, act: Callable[[PlayedServer], Awaitable[Any]]) -> Any:
        return await self.world.ask("organiser", what, act)

    async def _pause_room(self) -> None:
        paused = self.dice.random() < 0.5
        await self._ask("pause room", lambda s: s.room.control.pause(EVENT))
        await asyncio.sleep(3 if paused else 1)
        for _ in range(20):
            if await self._ask("resume room", lambda s: s.room.control.resume(EVENT)) is not None:
                return
            await asyncio.sleep(1)

    async def _rate(self) -> None:
        rate = self.dice.choice((1, 2))
        self.world.laws.most_rate = max(self.world.laws.most_rate, rate)
        await self._ask("set rate", lambda s: s.room.control.set_rate(EVENT, rate))

    async def _pause_sale(self) -> None:
        await self._ask("pause sale", lambda s: s.organise.pause(ADA, EVENT, True))
        await asyncio.sleep(3)
        for _ in range(20):
            if await self._ask("resume sale", lambda s: s.organise.pause(ADA, EVENT, False)) is not None:
                return
            await asyncio.sleep(1)

    async def _look(self) -> None:
        """Look at the figures, which may come from a replica."""

        async def look(server: PlayedServer) -> Any:
            with measured_reads():
                return await server.ledger.browsing.figures.bookings_by_state(EVENT)

        await self._ask("figures", look)

    async def _some_sold(self, server: PlayedServer) -> Booking:
        live = await server.ledger.live_bookings(EVENT, "", 100)
        sold = [one for one in live if one.state is BookingState.CONFIRMED]
        if not sold:
            raise BookingNotFound("none")
        return self.dice.choice(sold)

    async def _reseat(self) -> None:
        async def reseat(server: PlayedServer) -> Any:
            booking = await self._some_sold(server)
            leave, come = self.dice.choice(booking.seats), self.dice.randrange(self.world.plan.size)
            event = await server.ledger.catalogue.event(EVENT)
            change = Change(ADA, "reseat", EVENT, server.clock())
            return await server.reseating.move(event, self.world.plan, booking, [leave], [come], change)

        await self._ask("reseat", reseat)

    async def _refund(self) -> None:
        async def refund(server: PlayedServer) -> Any:
            booking = await self._some_sold(server)
            return await server.office.refunds.override(booking.id, [self.dice.choice(booking.seats)])

        await self._ask("organiser refunds", refund)
