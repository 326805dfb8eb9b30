"""PostgreSQL with a synchronous standby (N4, F5): the primary dies, the standby is promoted, the sale goes on.

Nothing that was acknowledged is lost, also when the standby was away for a moment before.
"""

import asyncio
from collections.abc import Iterator

import psycopg
import pytest

from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.core.errors import Unavailable
from tests.faults.ledger_load import Load, assert_all_there, wish
from tests.faults.proxy import at_port
from tests.faults.selling import LEDGER_BOUND_S, within
from tests.support.eventually import eventually
from tests.support.servers import Postgres, Standby


def is_synchronous(primary: Postgres) -> bool:
    with psycopg.connect(primary.url) as reader:
        return ("sync",) in reader.execute("SELECT sync_state FROM pg_stat_replication").fetchall()


@pytest.fixture
def pair() -> Iterator[tuple[Postgres, Standby]]:
    with Postgres() as primary:
        migrate(primary.url)
        with Standby(primary) as standby:
            with psycopg.connect(primary.url, autocommit=True) as admin:
                admin.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
                admin.execute("SELECT pg_reload_conf()")
            yield primary, standby


async def test_no_acknowledged_booking_is_lost_when_the_standby_takes_over(pair: tuple[Postgres, Standby]) -> None:
    primary, standby = pair
    await eventually(lambda: is_synchronous(primary))
    url = at_port(primary.url, primary.port, standby.port)

    ledger = await open_ledger(url, call_timeout_s=0.3, reconnect_for_s=0.5, rest_s=0.0)
    standby.kill()
    with pytest.raises(Unavailable):  # committed here, but nowhere else: nobody may hear of it
        await ledger.place_hold(wish(900_000))
    assert await ledger.booking("bkg_00900000") is None
    standby.start()
    await eventually(lambda: is_synchronous(primary))
    assert (await ledger.place_hold(wish(900_000))).fence
    await ledger.aclose()

    ledger = await open_ledger(url, reconnect_for_s=60)
    load = Load(ledger)
    await load.until_confirmed(100)
    primary.kill()
    await asyncio.to_thread(standby.promote)
    served = load.answered
    await within(lambda: load.answered > served, LEDGER_BOUND_S)
    await load.until_confirmed(len(load.confirmed) + 100)
    await load.stop()
    assert load.lost == 0
    await assert_all_there(ledger, load.held, load.confirmed)
    assert await ledger.booking("bkg_00900000") is not None
    await ledger.aclose()
