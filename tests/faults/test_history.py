"""N4: a recorded crowd at two servers: grants ordered by fence, exclusive in real time. (`make soak`: a million.)"""

import contextlib
import sqlite3
from pathlib import Path

from bench.seats_history import Recorder
from bench.seats_load import Office
from frontrow.boxoffice.adapters.claims.redis import RedisClaims
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.holds.ports.seat_claims import SeatClaims
from frontrow.rehearsal.history import HistoryVerdict
from tests.boxoffice.shop import shop_plan, sqlite_url
from tests.faults.broken_claims import YesClaims

OPERATIONS = 15_000


async def record(url: str, stores: list[SeatClaims], *, sql: dict[str, str] | None = None) -> HistoryVerdict:
    offices = []
    for claims in stores:
        offices.append(Office("evt_h", shop_plan(), claims, await open_ledger(url, sql=sql), hold_ttl_s=2))
        assert await offices[-1].recovery.check("evt_h")
    try:
        return await Recorder(offices, OPERATIONS, seats=130).run()
    finally:
        for office in offices:
            await office.holds.aclose()
            await office.claims.aclose()
            await office.ledger.aclose()


async def test_a_crowds_history_has_no_overlapping_grants(tmp_path: Path, redis_url: str) -> None:
    verdict = await record(sqlite_url(tmp_path), [RedisClaims(redis_url), RedisClaims(redis_url)])
    assert verdict.violations == []
    assert verdict.operations >= OPERATIONS
    assert min(verdict.grants, verdict.refusals, 5 * verdict.confirmed) > 100


async def test_the_checker_sees_what_a_broken_office_does(tmp_path: Path) -> None:
    """The canary: no bouncer, no unique index and no look at who has the seat: the history shows it."""
    url = sqlite_url(tmp_path)
    with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as ledger:
        ledger.execute("DROP INDEX one_active_booking_per_seat")
    blind = {"seats_in_the_way": "SELECT 1, 1, 1, 1, 1, 1 FROM json_each(?1) WHERE false"}
    verdict = await record(url, [YesClaims()], sql=blind)
    assert verdict.violations_found > 0
