"""Box office processes that are killed (SIGKILL) at crash points of the money services.

Arguments: ledger URL, Redis URL, folder for the provider's journals, time, then crash points as `scenario:number:when`.
Everything is loaded once; each point is a process of its own (a fork before any loop or connection exists), which tells
its booking through the pipe and dies in the scenario. Prints one line a point: signal, booking.
"""

import asyncio
import os
import sys
from pathlib import Path

from frontrow.boxoffice.adapters.claims.redis import RedisClaims
from frontrow.boxoffice.adapters.ledger.engine.postgres import PostgresStore
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.adapters.payments.simulated import SimulatedProvider
from frontrow.boxoffice.adapters.payments.simulated_journal import PaymentJournal
from frontrow.boxoffice.checkout.checkout import Checkout
from frontrow.boxoffice.refunds.refunds import Refunds
from frontrow.testing.clock import ManualClock
from tests.boxoffice.checkout.till import ISSUER
from tests.boxoffice.payments.crashes import CARD, Fuse, FusedLedger, FusedProvider, play
from tests.boxoffice.shop import Shop, shop_event, shop_plan


async def die(url: str, redis: str, journal: Path, now_us: int, point: str, seat: int, pipe: int) -> None:
    scenario, number, when = point.split(":")
    clock = ManualClock(now_us)
    shop = Shop(RedisClaims(redis), SqlLedger(PostgresStore(url)), clock, shop_event(card_tries=1), shop_plan())
    hold = await shop.hold(f"fan{seat}", seat, seat + 1)
    inner = SimulatedProvider(clock, journal=PaymentJournal(journal))
    if "refunded" in scenario:
        before = Checkout(shop.ledger, inner, clock, seats=shop.holds.held, issuer=ISSUER)
        await before.pay(hold.booking_id, hold.fence, CARD)
    os.write(pipe, hold.booking_id.encode())
    fuse = Fuse(int(number), when, kill=True)
    ledger, provider = FusedLedger(shop.ledger, fuse), FusedProvider(inner, fuse)
    checkout = Checkout(ledger, provider, clock, seats=shop.holds.held, issuer=ISSUER)  # type: ignore[arg-type]
    refunds = Refunds(ledger, provider, clock, seats=shop.holds.held)  # type: ignore[arg-type]
    await play(scenario, checkout, refunds, hold.booking_id, hold.fence, lambda: clock.advance(600))


def main(url: str, redis: str, folder: str, now: str, *points: str) -> None:
    for at, point in enumerate(points):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            asyncio.run(die(url, redis, Path(folder) / f"journal{at}", int(now), point, 2 * at, writer))
            os._exit(0)
        os.close(writer)
        booking = os.read(reader, 200).decode()
        _, status = os.waitpid(pid, 0)
        os.close(reader)
        print(os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, booking, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
