"""PostgreSQL as networks and administrators treat it: cut off, full, locked. Callers hear of it in time."""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator

import psycopg
import pytest

from frontrow.app import doctor
from frontrow.boxoffice.adapters.ledger.backups import backup
from frontrow.boxoffice.adapters.ledger.engine import postgres, replica
from frontrow.boxoffice.adapters.ledger.engine.group_commit import RunStatements
from frontrow.boxoffice.adapters.ledger.engine.postgres_readers import StatementRefused
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.holds.hold_transactions import fan_lock
from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.core.errors import Unavailable
from frontrow.settings.overload import OverloadSettings
from frontrow.settings.platform import read_settings
from frontrow.shared import postgres_pool, postgres_url
from frontrow.waitingroom.audit.postgres import open_postgres_audit
from tests.faults.ledger_load import wish
from tests.faults.proxy import Proxy, at_port
from tests.support.eventually import eventually
from tests.support.servers import free_port
from tests.web.api.support import SECRET

NOW_US = 1_700_000_000_000_000
END_OTHERS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()
"""


def port_of(url: str) -> int:
    return int(url.rpartition("@")[2].partition("/")[0].rpartition(":")[2])


def test_whoever_meets_a_silent_ledger_hears_of_it_before_the_request_is_given_up() -> None:
    """A call in hand, and then the last attempt to connect."""
    longest_s = max(postgres.CALL_TIMEOUT_S, postgres.RECONNECT_FOR_S) + postgres_url.CONNECT_TIMEOUT_S
    longest_read_s = postgres.READ_TIMEOUT_S + postgres_pool.CANCEL_WITHIN_S
    assert longest_s < OverloadSettings().deadline_s
    assert longest_read_s + postgres_url.CONNECT_TIMEOUT_S < OverloadSettings().deadline_s
    assert replica.READ_WITHIN_S + postgres_pool.CANCEL_WITHIN_S + longest_read_s < OverloadSettings().deadline_s


async def test_a_server_that_is_cut_off_from_the_ledger_answers_and_sells_again_when_it_is_back(
    postgres_ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F1: half-open connections, for writes and reads; those that come late do not wait all over again."""
    async with Proxy(port_of(postgres_ledger_url)) as proxy:
        url = at_port(postgres_ledger_url, proxy.port)
        ledger = await open_ledger(url, call_timeout_s=0.2, reconnect_for_s=0.1, rest_s=0.0, warm=True)
        await ledger.place_hold(wish(1))
        proxy.blackhole()
        monkeypatch.setattr(postgres_url, "CONNECT_TIMEOUT_S", 0.2)
        for number in (2, 3):
            answers = await asyncio.gather(ledger.place_hold(wish(number)), ledger.time_us(), return_exceptions=True)
            assert [type(answer) for answer in answers] == [Unavailable, Unavailable]
        monkeypatch.undo()
        proxy.swallowing = False
        assert (await ledger.place_hold(wish(1))).repeated
        assert (await ledger.booking("bkg_00000001")) is not None
        await ledger.aclose()


async def test_whoever_waited_behind_a_call_in_vain_is_told_at_once(postgres_ledger_url: str) -> None:
    """F8: a payment that waited for the batch before its own and then for itself was answered after 12 s."""
    async with Proxy(port_of(postgres_ledger_url)) as proxy:
        url = at_port(postgres_ledger_url, proxy.port)
        ledger = await open_ledger(url, writers=1, call_timeout_s=0.2, reconnect_for_s=0.1, rest_s=600.0, warm=True)
        proxy.blackhole()
        first = asyncio.ensure_future(ledger.place_hold(wish(1)))
        await asyncio.sleep(0)  # it is on its way; the others form a batch behind it
        behind = [ledger.place_hold(wish(number)) for number in (2, 3)]
        answers = await asyncio.gather(first, *behind, return_exceptions=True)
        assert [type(answer) for answer in answers] == [Unavailable] * 3
        assert ledger.store.reconnects == 1, "one attempt for all of them"  # type: ignore[attr-defined]
        await ledger.aclose()


@pytest.mark.parametrize("is_pooled", [False, True])
async def test_a_read_that_is_given_up_does_not_wait_as_long_again_for_the_server_to_cancel_it(
    postgres_ledger_url: str, monkeypatch: pytest.MonkeyPatch, is_pooled: bool
) -> None:
    """F8: a booking that was read over a cut connection was answered after 12 s: 6 s, and 6 s for the cancelling."""
    monkeypatch.setattr(postgres, "READ_TIMEOUT_S", 1.5)
    monkeypatch.setattr(postgres_pool, "CANCEL_WITHIN_S", 0.1)
    async with Proxy(port_of(postgres_ledger_url)) as proxy:
        url = at_port(postgres_ledger_url, proxy.port) + ("?pool_mode=transaction" if is_pooled else "")
        ledger = await open_ledger(url, reconnect_for_s=0.1, rest_s=0.0, readers=1)
        audit = open_postgres_audit(url, timeout_s=1.5)
        await ledger.booking("bkg_00000001")
        await audit.used_codes("concert")
        proxy.blackhole()
        began_s = time.monotonic()
        asked = (ledger.booking("bkg_00000001"), ledger.store.beat(0), audit.used_codes("concert"))  # type: ignore[attr-defined]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(answer) for answer in answers] == [Unavailable] * 3
        assert time.monotonic() - began_s < 2.7
        proxy.swallowing = False
        assert await ledger.booking("bkg_00000001") is None
        await ledger.aclose()
        await audit.aclose()


async def test_after_a_call_in_vain_reads_are_told_at_once_too(postgres_ledger_url: str) -> None:
    """F8: a batch of reads waited for the one before it, and then as long again over another cut connection."""
    async with Proxy(port_of(postgres_ledger_url)) as proxy:
        url = at_port(postgres_ledger_url, proxy.port)
        ledger = await open_ledger(url, call_timeout_s=0.2, reconnect_for_s=0.1, rest_s=600.0, warm=True)
        await ledger.place_hold(wish(1))
        proxy.blackhole()
        with pytest.raises(Unavailable):
            await ledger.place_hold(wish(2))
        proxy.swallowing = False  # whoever asked would be answered
        with pytest.raises(Unavailable):
            await ledger.booking("bkg_00000001")
        await ledger.aclose()


async def test_one_call_that_fails_while_others_are_answered_makes_nobody_rest() -> None:
    outage = postgres._Outage(0.0, rest_s=600.0)
    asked_s = time.monotonic()
    outage.over()
    assert outage.too_long(asked_s)
    assert not outage.rests(time.monotonic())
    assert outage.too_long(time.monotonic())
    assert outage.rests(time.monotonic())
    outage.over()
    assert not outage.rests(time.monotonic())


async def test_the_call_that_has_waited_longest_says_when_an_outage_began() -> None:
    """F8: a payment waited 6 s for a read and was sent again, because a later call had failed before it."""
    outage = postgres._Outage(6.0, rest_s=0.0)
    now_s = time.monotonic()
    assert not outage.too_long(now_s - 4)
    assert outage.too_long(now_s - 6.5)


async def test_a_statement_that_the_driver_refuses_is_told_at_once_and_only_to_its_caller(
    postgres_ledger_url: str,
) -> None:
    """It was repeated for 6 s over new connections, as if PostgreSQL were away."""
    ledger = await open_ledger(postgres_ledger_url, writers=1, sql={"mistaken": "SELECT $1::int, $2::int"})
    first = asyncio.ensure_future(ledger.place_hold(wish(1)))  # the others form a batch behind it
    mistake = RunStatements((Query("mistaken", [("one",)]),), now_us=NOW_US)
    answers = await asyncio.gather(first, ledger.line.ask(mistake), ledger.place_hold(wish(2)), return_exceptions=True)
    assert isinstance(answers[1], StatementRefused)
    assert not [answer for answer in (answers[0], answers[2]) if isinstance(answer, BaseException)]
    with pytest.raises(StatementRefused):
        await ledger.store.read(Query("mistaken", [("one",)]))
    assert ledger.store.reconnects == 0  # type: ignore[attr-defined]
    await ledger.aclose()


async def test_a_server_that_said_goodbye_and_did_not_hang_up_is_asked_over_a_new_connection(
    postgres_ledger_url: str,
) -> None:
    """F1: a shutdown or failover whose last packets are lost. It was a 500 for whoever read next, or wrote."""
    async with Proxy(port_of(postgres_ledger_url)) as proxy:
        url = at_port(postgres_ledger_url, proxy.port)
        ledger = await open_ledger(url, writers=1, readers=1, warm=True)
        audit = open_postgres_audit(url)
        for number in (1, 2):
            await ledger.place_hold(wish(number))
            assert await ledger.booking(f"bkg_{number:08}") is not None
            with contextlib.suppress(Unavailable):  # tried once; the next turn of the room's loop asks again
                await audit.used_codes("concert")
            assert await audit.used_codes("concert") == 0
            if number == 1:
                proxy.keeping_open = True
                with psycopg.connect(postgres_ledger_url, autocommit=True) as admin:
                    assert len(admin.execute(END_OTHERS).fetchall()) >= 3
        await ledger.aclose()
        await audit.aclose()


@pytest.fixture
async def ledger(postgres_ledger_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[SqlLedger]:
    monkeypatch.setitem(postgres.SETTINGS, "lock_timeout", "100ms")
    one = await open_ledger(postgres_ledger_url, writers=1)
    yield one
    await one.aclose()


async def test_a_frozen_transaction_stops_only_those_who_need_what_it_locked(
    ledger: SqlLedger, postgres_ledger_url: str
) -> None:
    """Everybody else in the same batch is served, and nobody waits for several lock time-outs in a row."""
    holds = [wish(number) for number in range(6)]
    with psycopg.connect(postgres_ledger_url) as frozen:
        frozen.execute("SELECT pg_advisory_xact_lock(%s)", (fan_lock(holds[4]),))
        first = asyncio.ensure_future(ledger.place_hold(wish(99)))  # the others form a batch behind it
        answers = await asyncio.gather(*map(ledger.place_hold, holds), return_exceptions=True)
        await first
    assert [number for number, answer in enumerate(answers) if isinstance(answer, Unavailable)] == [4]
    assert not [answer for answer in answers if isinstance(answer, Exception) and not isinstance(answer, Unavailable)]
    assert not (await ledger.place_hold(holds[4])).repeated


async def test_connections_that_are_used_up_are_an_error_that_passes(postgres_ledger_url: str) -> None:
    role = "crowded"
    with psycopg.connect(postgres_ledger_url, autocommit=True) as admin:
        admin.execute(f"DROP ROLE IF EXISTS {role}")
        admin.execute(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 3")
        admin.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}")
        admin.execute(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {role}")
        try:
            url = postgres_ledger_url.replace("postgres@", f"{role}@")
            ledger = await open_ledger(url, writers=1, readers=1, reconnect_for_s=0.1, rest_s=0.0)
            with contextlib.ExitStack() as others:
                for _ in range(3):
                    others.enter_context(psycopg.connect(url))
                for ask in (ledger.place_hold(wish(1)), ledger.booking("bkg_00000001"), ledger.time_us()):
                    with pytest.raises(Unavailable):
                        await ask
            theirs = "SELECT count(*) FROM pg_stat_activity WHERE usename = %s"
            await eventually(lambda: admin.execute(theirs, [role]).fetchone() == (0,))  # a backend ends a moment later
            assert not (await ledger.place_hold(wish(1))).repeated
            assert (await ledger.booking("bkg_00000001")) is not None
            await ledger.aclose()
        finally:
            admin.execute(f"DROP OWNED BY {role}")
            admin.execute(f"DROP ROLE {role}")


async def test_several_hosts_can_be_named_and_one_that_swallows_everything_delays_nobody_for_long(
    postgres_ledger_url: str,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it takes connections and says nothing
        ports = (silent.getsockname()[1], port_of(postgres_ledger_url))
        hosts = postgres_url.PostgresHosts(at_port(postgres_ledger_url, *ports))
        for _ in range(2):  # the second time the good one is asked first
            connection = await hosts.connect(timeout=2.0)  # for each host; the good one may be busy
            assert await connection.fetchval("SELECT 1") == 1
            await connection.close()


async def test_every_command_takes_a_ledger_with_several_hosts(postgres_url: str, tmp_path: object) -> None:
    """`host1:port1,host2:port2` was refused: "invalid literal for int()"."""
    url = at_port(postgres_url, free_port(), port_of(postgres_url))
    await asyncio.to_thread(migrate, url)
    ledger = await open_ledger(url)
    await ledger.place_hold(wish(1))
    assert (await ledger.booking("bkg_00000001")) is not None
    await ledger.aclose()
    await asyncio.to_thread(backup, url, tmp_path / "ledger.backup")  # type: ignore[operator]
    env = {"FRONTROW_LEDGER_URL": url, "FRONTROW_REDIS_URL": "redis://127.0.0.1:1/0", "FRONTROW_SECRET_KEY": SECRET}
    settings = read_settings(env=env | {"FRONTROW_SERVER_DEMO": "true"})
    assert {one.state for one in await doctor.ledger(settings)} == {doctor.OK}
