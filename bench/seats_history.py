"""A recorded crowd: callers hold, release, buy and abandon seats through hold services, and every call is written down.

The history goes to frontrow.rehearsal.history, which proves from it alone that grants are ordered by fence and
exclusive in real time (N4). The test suite records a short one; `make soak` a million operations on Redis and
PostgreSQL.
"""

import argparse
import asyncio
import random
import time
from collections.abc import Sequence

import uvloop

from bench.seats_load import Office
from frontrow.boxoffice.adapters.claims.redis import RedisClaims
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.boxoffice.holds.model.holds import Hold, ShopPass
from frontrow.boxoffice.seats.formats.plan_generator import generate
from frontrow.core.errors import Refused, Unavailable
from frontrow.rehearsal.history import History, HistoryVerdict, Operation, OperationOutcome
from tests.support.booking_moves import refund_booking
from tests.support.servers import Postgres, Valkey

CALLERS = 200


class Recorder:
    """Runs callers at several servers for so many operations and keeps their history."""

    def __init__(self, offices: Sequence[Office], operations: int, *, seats: int, seed: int = 1) -> None:
        self.offices, self.operations, self.seats = offices, operations, seats
        self.history = History()
        self.done = self.bought = 0
        self.least_bought = min(operations // 200, 25)
        self._random = random.Random(seed)

    def enough(self) -> bool:
        """All operations done, and among them purchases; a machine too slow for those gets ten times as long."""
        return self.done >= self.operations * (1 if self.bought > self.least_bought else 10)

    async def run(self) -> HistoryVerdict:
        await asyncio.gather(*(self._caller(number) for number in range(CALLERS)))
        return self.history.check()

    async def _caller(self, number: int) -> None:
        office = self.offices[number % len(self.offices)]
        turn = 0
        while not self.enough():
            turn += 1
            hold = await self._hold(office, f"fan{number}.{turn}")
            if hold is not None:
                await self._end(office, hold)
            elif turn % 2 == 0:
                # refused locally: let the others have a turn, and in the end let abandoned holds run out
                await asyncio.sleep(0 if self.done < self.operations else 0.01)

    async def _hold(self, office: Office, fan: str) -> Hold | None:
        seat = self._random.randrange(self.seats)
        began_us = office.clock()
        shop_pass = ShopPass(office.event.id, fan, began_us + 10**9)
        try:
            hold = await office.holds.place(office.event.id, shop_pass, (office.plan.seat_ids[seat],))
        except (Refused, Unavailable):
            self._add(Operation(began_us, office.clock(), OperationOutcome.REFUSED, (seat,)))
            return None
        booking = hash(hold.booking_id)
        granted = (OperationOutcome.GRANTED, hold.indexes, hold.fence, booking, hold.expires_at_us)
        self._add(Operation(began_us, office.clock(), *granted))
        return hold

    async def _end(self, office: Office, hold: Hold) -> None:
        """Give back, mostly; buy and refund, sometimes; or walk away and let it run out."""
        chance = self._random.random()
        began_us = office.clock()
        try:
            if chance < 0.8:
                await office.holds.held.release(hold.booking_id, hold.fence)
                self._add(Operation(began_us, office.clock(), OperationOutcome.RELEASED, hold.indexes, hold.fence))
            elif chance < 0.9:
                await office.ledger.begin_payment(hold.booking_id, hold.fence, office.clock())
                await office.holds.held.sold(await office.ledger.confirm(hold.booking_id, hold.fence, office.clock()))
                self._add(Operation(began_us, office.clock(), OperationOutcome.CONFIRMED, hold.indexes, hold.fence))
                self.bought += 1
                began_us = office.clock()
                booking = await refund_booking(office.ledger, hold.booking_id, hold.fence, office.clock())
                await office.holds.held.freed(booking.event_id, booking.seats, booking.id)
                self._add(Operation(began_us, office.clock(), OperationOutcome.REFUNDED, hold.indexes, hold.fence))
        except (Refused, Unavailable):
            self._add(Operation(began_us, office.clock(), OperationOutcome.UNKNOWN, hold.indexes, hold.fence))

    def _add(self, operation: Operation) -> None:
        self.history.add(operation)
        self.done += 1


async def soak(operations: int) -> HistoryVerdict:
    """A history on real servers, recorded at two hold services."""
    with Valkey() as valkey, Postgres() as postgres:
        await asyncio.to_thread(migrate, postgres.url)
        offices = []
        for _ in range(2):
            claims = RedisClaims(valkey.unix_url, timeout_s=10.0)
            offices.append(
                Office("evt_soak", generate("theatre", 1_000), claims, await open_ledger(postgres.url), hold_ttl_s=1)
            )
        for office in offices:
            assert await office.recovery.check("evt_soak")
        verdict = await Recorder(offices, operations, seats=1_000).run()
        for office in offices:
            await office.holds.aclose()
            await office.claims.aclose()
            await office.ledger.aclose()
        return verdict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--operations", type=int, default=1_000_000)
    begin = time.perf_counter()
    verdict = uvloop.run(soak(parser.parse_args().operations))
    spent_s = time.perf_counter() - begin
    print(f"{verdict.operations:,} operations in {spent_s:.0f} s: {verdict.grants:,} holds granted,", end=" ")
    print(f"{verdict.refusals:,} refused, {verdict.confirmed:,} bought; violations: {verdict.violations_found}")
    if not verdict.holds:
        raise SystemExit("\n".join(verdict.violations))


if __name__ == "__main__":
    main()
