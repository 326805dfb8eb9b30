"""The ledger and a whole purchase through a pooler of transactions: a strict one of our own, and PgBouncer if found."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from frontrow.app.doctor import examine
from frontrow.boxoffice.adapters.ledger.engine.postgres import PostgresStore
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.cli.ledger import app
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import ConfigError
from frontrow.settings.platform import LedgerSettings
from frontrow.shared.postgres_url import connect
from tests.boxoffice.conftest import opened
from tests.contracts import ledger_holds, ledger_moves
from tests.contracts.ledger_contract import CHECKS, Bench
from tests.support.pooler import PgBouncer, TransactionPooler, pgbouncer_programs
from tests.web.api.script import a_buyer
from tests.web.api.support import EVENT_ID, a_client, a_platform, settings_for

TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename !~ 'version|audit'"


@pytest.fixture(params=["strict", *pgbouncer_programs()])
def pooler(
    request: pytest.FixtureRequest, partitioned_ledger_url: str, not_checked: Callable[[str], None]
) -> Iterator[TransactionPooler | PgBouncer]:
    strict = request.param == "strict"
    if not pgbouncer_programs():
        not_checked("a ledger behind PgBouncer itself (it cannot be had here); behind our own strict pooler it is")
    with (
        TransactionPooler(partitioned_ledger_url) if strict else PgBouncer(partitioned_ledger_url, request.param) as one
    ):
        yield one


async def test_the_ledgers_contract_holds_behind_a_pooler_of_transactions(
    pooler: TransactionPooler, partitioned_ledger_url: str
) -> None:
    url = f"{pooler.url}?pool_mode=transaction"
    assert {check.__module__ for check in CHECKS} == {ledger_holds.__name__, ledger_moves.__name__}
    direct = await connect(partitioned_ledger_url)
    await direct.execute("SET session_replication_role = replica")  # no trigger keeps us from emptying tables
    empty = "".join(f"DELETE FROM {row[0]};" for row in await direct.fetch(TABLES))
    try:
        async with opened(url) as one, opened(url) as two:
            for check in CHECKS:
                if check.__name__ == "every_cell_of_the_state_table_is_obeyed":
                    continue  # hundreds of moves; the decisions are the same, and others move bookings too
                await check(Bench(one, two))
                await direct.execute(empty)
    finally:
        await direct.close()


async def test_a_ticket_is_bought_behind_a_pooler_and_the_doctor_knows_it(
    pooler: TransactionPooler, partitioned_ledger_url: str, redis_url: str, tmp_path: Path
) -> None:
    url = f"{pooler.url}?pool_mode=transaction"
    async with (
        a_platform(tmp_path, redis_url=redis_url, postgres_url=url) as platform,
        a_client(platform) as client,
    ):
        buyer = await a_buyer(client)
        await buyer.enter(EVENT_ID)
        held = await buyer.hold(EVENT_ID, seats=["S-B-3", "S-B-4"])
        assert (await buyer.pay(held["booking"]))["state"] == "confirmed"
        tickets = (await buyer.call("list_tickets", booking_id=held["booking"])).json()["tickets"]
        assert [ticket["seat"] for ticket in tickets] == ["S-B-3", "S-B-4"]
        store = platform.ledger.store
        assert isinstance(store, PostgresStore)
        assert abs(await store.beat(0) - platform.clock()) < 60 * US_PER_S  # the heartbeat for replicas
    settings = settings_for(tmp_path, redis_url=redis_url, postgres_url=url)
    for ledger, told in (
        (LedgerSettings(url, partitioned_ledger_url), "reached through a pooler of transactions"),
        (LedgerSettings(url), "through a pooler only"),
        (LedgerSettings(pooler.url), "a pooler (PgBouncer) stands before PostgreSQL"),
        (LedgerSettings(partitioned_ledger_url), "schema"),
    ):
        says = [one.says for one in await examine(replace(settings, ledger=ledger)) if one.check == "ledger"]
        assert told in says[0], says
    with pytest.raises(ConfigError, match="pool_mode=transaction"):
        await open_ledger(pooler.url, warm=True)


def test_migrations_and_backups_go_to_postgresql_itself(
    partitioned_ledger_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FRONTROW_LEDGER_URL", "postgresql://postgres@127.0.0.1:1/x?pool_mode=transaction")
    for command in (["migrate"], ["backup", "copy.backup"]):
        refused = CliRunner().invoke(app, command)
        assert (refused.exit_code, "set ledger.direct_url" in refused.output) == (2, True), refused.output
    monkeypatch.setenv("FRONTROW_LEDGER_DIRECT_URL", partitioned_ledger_url)
    for command in (["migrate"], ["backup", "copy.backup"]):
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
