"""A whole little box office for tests: event, claim store, ledger, hold service and recovery, embedded or grown up."""

import contextlib
import functools
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from frontrow.boxoffice.adapters.claims.memory import MemoryClaims
from frontrow.boxoffice.adapters.claims.redis import RedisClaims
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.events.model.events import Event, EventStatus, PriceTier
from frontrow.boxoffice.holds.attempt import AttemptRunner
from frontrow.boxoffice.holds.claim_recovery import Recovery
from frontrow.boxoffice.holds.events_on_sale import Sales
from frontrow.boxoffice.holds.hold_service import HoldService
from frontrow.boxoffice.holds.model.holds import Hold, ShopPass
from frontrow.boxoffice.holds.plain_attempt import PlainAttempts
from frontrow.boxoffice.holds.ports.seat_claims import SeatClaims
from frontrow.boxoffice.seats.model.venues import Plan, Row, Seat, Section, area
from frontrow.core.clock import US_PER_S, Clock
from frontrow.shared.money import Money
from frontrow.testing.clock import ManualClock

NOW = 1_700_000_000_000_000
EVENT = "evt_shop"


def shop_plan(rows: int = 4, seats: int = 10) -> Plan:
    """Sections A (0…) and B of rows x seats each, and a standing area S of 60."""
    made = tuple(Row(f"{r}", tuple(Seat(f"{s}") for s in range(1, seats + 1)), rank=r) for r in range(1, rows + 1))
    return Plan("shop", (Section("A", made), Section("B", made, rank=1), area("S", 60)))


def shop_event(**changes: Any) -> Event:
    values: dict[str, Any] = {
        "id": EVENT,
        "name": "Aurora",
        "venue_id": "ven_1",
        "plan_hash": "0" * 64,
        "currency": "EUR",
        "starts_at_us": NOW * 2,
        "sale_starts_at_us": 0,
        "sale_ends_at_us": NOW * 2,
        "tiers": (PriceTier("standard", Money(5000, "EUR")), PriceTier("standing", Money(3000, "EUR"))),
        "status": EventStatus.ON_SALE,
        "max_per_person": 10,
        "lonely_rule_until_percent": 0,
    }
    return Event(**(values | changes))


class Shop:
    """One server of the box office."""

    def __init__(
        self,
        claims: SeatClaims,
        ledger: SqlLedger,
        clock: Clock,
        event: Event,
        plan: Plan,
        attempts: type[AttemptRunner] | type[PlainAttempts] = AttemptRunner,
    ) -> None:
        self.claims, self.ledger, self.clock, self.event, self.plan = claims, ledger, clock, event, plan
        self.sales = Sales()
        self.sale = self.sales.open(event, plan)
        self.changed: list[int] = []
        claims.learn(event.id, plan)
        self.recovery = Recovery(self.sales, claims, ledger, clock, check_s=0.05)
        self.holds = HoldService(
            self.sales,
            claims,
            ledger,
            clock,
            on_change=lambda _, seats: self.changed.extend(seats),
            on_doubt=self.recovery.doubt,
            attempts=attempts,
        )

    def shop_pass(self, fan: str) -> ShopPass:
        return ShopPass(self.event.id, fan, self.clock() + 900 * US_PER_S, f"ps_{fan}")

    def ids(self, seats: Sequence[int]) -> list[str]:
        return [self.plan.seat_ids[seat] for seat in seats]

    async def hold(self, fan: str, *seats: int, key: str | None = None) -> Hold:
        return await self.holds.place(self.event.id, self.shop_pass(fan), self.ids(seats), idempotency_key=key)

    async def buy(self, hold: Hold) -> None:
        """Pay and confirm in the ledger, then tell the claim store."""
        await self.ledger.begin_payment(hold.booking_id, hold.fence, self.clock())
        await self.holds.held.sold(await self.ledger.confirm(hold.booking_id, hold.fence, self.clock()))

    async def taken(self) -> set[int]:
        return set(await self.claims.states(self.event.id, self.clock()))


@contextlib.asynccontextmanager
async def open_shop(
    ledger_url: str,
    redis_urls: str | Sequence[str] | None = None,
    *,
    clock: Clock | None = None,
    plan: Plan | None = None,
    ready: bool = True,
    **changes: Any,
) -> AsyncIterator[Shop]:
    ledger = await open_ledger(ledger_url, auto_migrate=ledger_url.startswith("postgres"))
    claims: SeatClaims = MemoryClaims() if redis_urls is None else RedisClaims(redis_urls)
    shop = Shop(claims, ledger, clock or ManualClock(NOW), shop_event(**changes), plan or shop_plan())
    try:
        if ready:
            assert await shop.recovery.check(EVENT)
        yield shop
    finally:
        await shop.recovery.stop()
        await shop.holds.aclose()
        await claims.aclose()
        await ledger.aclose()


@functools.cache
def _empty_ledger() -> bytes:
    """A migrated SQLite file, made once a test process: migrating costs more than most tests."""
    with tempfile.TemporaryDirectory() as folder:
        migrate(f"sqlite:///{folder}/empty.db")
        return (Path(folder) / "empty.db").read_bytes()


def sqlite_url(folder: Path, *, keep: bool = False) -> str:
    """A fresh, migrated ledger file in `folder`; with `keep` the one that is there (after a restart)."""
    path = folder / "ledger.db"
    if not keep or not path.exists():
        path.write_bytes(_empty_ledger())
    return f"sqlite:///{path}"
