"""Read replicas (N4): a real streaming standby, paused, killed, behind. Nothing that decides reads from it."""

import asyncio
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from frontrow.app.doctor import FAIL, OK, WARN, Finding, examine
from frontrow.app.wiring import open_platform
from frontrow.boxoffice.adapters.ledger.engine.postgres import NOW_US as NOW_THERE_US
from frontrow.boxoffice.adapters.ledger.engine.postgres import PostgresStore
from frontrow.boxoffice.adapters.ledger.engine.replica import BROWSING, LOOKS_TO_RETURN, Replica
from frontrow.boxoffice.adapters.ledger.engine.statements import statements
from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.boxoffice.adapters.ledger.partitions import partition_ledger
from frontrow.boxoffice.adapters.ledger.recent_changes import RedisRecentChanges
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.events.model.event_search import EventSearch
from frontrow.boxoffice.people.model.roles import Role
from frontrow.boxoffice.request_reads import RequestReads, request_reads
from frontrow.core.errors import ConfigError, InvalidInput
from frontrow.core.redis_url import connect, disconnect
from frontrow.settings.platform import LedgerSettings, PlatformSettings, read_settings
from frontrow.web.platform.metrics import metrics_page
from frontrow.web.server.app import run_platform
from tests.boxoffice.people.support import member
from tests.support.eventually import eventually
from tests.support.servers import Postgres, Standby, free_port
from tests.web.api.script import a_buyer
from tests.web.api.support import EVENT_ID, a_client, put_event, put_into, settings_for

NOW_US = 1_900_000_000_000_000


class Hands:
    """A clock that is moved by hand, seconds."""

    def __init__(self) -> None:
        self.s = 1_000.0

    def __call__(self) -> float:
        return self.s


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Postgres, Standby]]:
    with Postgres("-c", "fsync=off") as primary:
        migrate(primary.url)
        asyncio.run(partition_ledger(primary.url, 2, lambda line: None))  # a replica has the partitions too
        with Standby(primary) as standby:
            yield primary, standby


def _tell(server: Postgres, sql: str) -> Any:
    with psycopg.connect(server.url, autocommit=True) as admin:
        return admin.execute(sql).fetchone()  # type: ignore[arg-type]


async def _names(ledger: SqlLedger, *, needs_newest: bool = False) -> tuple[set[str], int]:
    """The ids that a visitor's search finds, and the moment it shows."""
    reads = RequestReads(needs_newest=needs_newest)
    kept = request_reads.set(reads)
    try:
        found, _ = await ledger.browsing.catalogue.find_events(EventSearch())
    finally:
        request_reads.reset(kept)
    return {event.id for event in found}, reads.as_of_us


async def _catch_up(replica: Replica) -> None:
    """Look until the replica is used; it has seen a beat of now."""

    async def why_away() -> str:
        await replica.look()
        return "" if replica.is_used else replica.why_away or "unused"

    await eventually(why_away, until=lambda why: not why)


async def test_a_replica_is_read_within_its_lag_and_left_beyond_it(pair: tuple[Postgres, Standby]) -> None:
    primary, standby = pair
    store, clock = PostgresStore(primary.url), Hands()
    replica = Replica(f"{standby.url}?application_name=x", store, max_lag_s=10, clock=clock)
    ledger = SqlLedger(store, replica=replica)
    assert (await _names(ledger)) == (set(), 0)  # nobody has looked: the primary answers
    await put_into(ledger, NOW_US, id="evt_first")
    await _catch_up(replica)
    await eventually(lambda: _tell(standby, "SELECT count(*) FROM events")[0] == 1)
    shown, as_of_us = await _names(ledger)
    assert shown == {"evt_first"}
    assert as_of_us == replica.as_of_us > 0
    for rubbish in ("evt_\0", "evt_\ud800"):  # as from the primary, and no reason to leave the replica
        with pytest.raises(InvalidInput):
            await ledger.browsing.catalogue.event(rubbish)
    assert replica.is_used

    _tell(standby, "SELECT pg_wal_replay_pause()")
    try:
        await put_into(ledger, NOW_US, id="evt_second")
        assert (await _names(ledger))[0] == {"evt_first"}  # within the lag, and it says so
        assert await _names(ledger, needs_newest=True) == ({"evt_first", "evt_second"}, 0)
        assert (await ledger.browsing.catalogue.event("evt_second")).id == "evt_second"  # by its id: not "not found"
        clock.s += 9
        assert (await _names(ledger))[0] == {"evt_first"}
        clock.s += 2
        assert await _names(ledger) == ({"evt_first", "evt_second"}, 0)  # without anybody looking again
    finally:
        _tell(standby, "SELECT pg_wal_replay_resume()")
    await ledger.aclose()


async def test_a_replica_that_was_left_returns_after_some_good_looks_in_a_row(pair: tuple[Postgres, Standby]) -> None:
    primary, standby = pair
    old_us = _tell(primary, f"UPDATE ledger_heartbeat SET beat_us = {NOW_THERE_US} - 20000000 RETURNING beat_us")[0]
    await eventually(lambda: _tell(standby, "SELECT beat_us FROM ledger_heartbeat")[0] == old_us)
    _tell(standby, "SELECT pg_wal_replay_pause()")
    store = PostgresStore(primary.url)
    replica = Replica(standby.url, store)
    try:
        await replica.look()
        assert re.fullmatch(r"it is 2\d\.\d s behind", replica.why_away), replica.why_away
    finally:
        _tell(standby, "SELECT pg_wal_replay_resume()")
    await eventually(lambda: _tell(standby, "SELECT beat_us FROM ledger_heartbeat")[0] > old_us)
    for _ in range(LOOKS_TO_RETURN - 1):
        await replica.look()
        assert not replica.is_used
    await replica.look()
    assert replica.is_used
    replica.close()
    await store.aclose()


async def test_when_a_replica_dies_the_next_one_or_the_primary_answers(pair: tuple[Postgres, Standby]) -> None:
    primary, standby = pair
    store = PostgresStore(primary.url)
    replica = Replica(standby.url, store)
    ledger = SqlLedger(store, replica=replica)
    second = Replica(f"postgresql://postgres@127.0.0.1:{standby.port},127.0.0.1:{primary.port}/postgres", store)
    await _catch_up(replica)
    await _catch_up(second)
    newest = await _names(ledger, needs_newest=True)
    standby.kill()
    assert await _names(ledger) == newest  # the same read, from the primary
    assert (replica.is_used, replica.times_left) == (False, 1)
    assert replica.why_away.startswith("it does not answer")
    await replica.look()
    assert not replica.is_used
    await second.look()  # a primary is as good: it shows the beat
    assert second.is_used
    standby.start()
    await _catch_up(replica)
    second.close()
    await ledger.aclose()


def test_only_statements_that_read_may_go_to_a_replica() -> None:
    written = statements()
    assert not BROWSING - written.keys()
    for name in BROWSING:
        text = written[name].text
        assert not re.search(r"\b(INSERT|UPDATE|DELETE)\b|:for_update|:skip_locked", text), name
    for decides in (
        "session_by_hash",
        "staff_by_id",
        "api_key_by_hash",
        "bookings_by_id",
        "payments_by_id",
        "keys_by_name",
    ):
        assert decides not in BROWSING


def _settings(folder: Path, redis_url: str, pair: tuple[Postgres, Standby], lag_s: float) -> PlatformSettings:
    primary, standby = pair
    settings = settings_for(folder, redis_url=redis_url, postgres_url=primary.url)
    return replace(settings, ledger=LedgerSettings(primary.url, read_url=standby.url, read_max_lag_s=lag_s))


async def test_a_whole_sale_works_on_a_replica_that_stands_still(
    tmp_path: Path, redis_url: str, pair: tuple[Postgres, Standby]
) -> None:
    """Everything that decides sees the newest, and an organiser sees the own change; visitors' lists are as old as
    they say."""
    _, standby = pair
    async with open_platform(_settings(tmp_path, redis_url, pair, 3_600)) as platform:
        replica = platform.ledger.replica
        assert replica is not None
        await _catch_up(replica)
        await eventually(lambda: _tell(standby, "SELECT pg_last_wal_replay_lsn() >= pg_last_wal_receive_lsn()")[0])
        _tell(standby, "SELECT pg_wal_replay_pause()")
        try:
            await put_event(platform, organiser_id="org_hall")
            async with run_platform(platform), a_client(platform) as client:
                owner = (await member(platform, Role.OWNER)).bearer
                await _buy_and_look(client)
                listed = await client.get("/v1/events")
                assert EVENT_ID not in listed.text  # the replica's
                await _organise(client, owner)
                told = (await client.get("/healthz")).json()
                assert told["replica"] == "used"
                page = metrics_page(platform).decode()
                assert "frontrow_replica_away 0" in page
                assert float(re.search(r'reads_total\{from="replica"\} (\S+)', page)[1]) >= 3  # type: ignore[index]
        finally:
            _tell(standby, "SELECT pg_wal_replay_resume()")


async def _buy_and_look(client: Any) -> None:
    buyer = await a_buyer(client)
    await buyer.enter(EVENT_ID)
    held = await buyer.hold(EVENT_ID, seats=["S-B-3"])
    assert (await buyer.pay(held["booking"]))["state"] == "confirmed"
    own = await buyer.call("get_booking", booking_id=held["booking"])
    assert own.json()["state"] == "confirmed"
    assert len((await buyer.call("list_tickets", booking_id=held["booking"])).json()["tickets"]) == 1


async def _organise(client: Any, owner: dict[str, str]) -> None:
    """Figures, lists and files of the moment before the sale, with its time; after an own change, of now."""
    figures, audit, listed = f"/v1/organiser/events/{EVENT_ID}/figures", "/v1/organiser/audit", "/v1/organiser/events"
    export = f"/organiser/events/{EVENT_ID}/exports/bookings.csv"
    old = [await client.get(path, headers=owner) for path in (figures, audit, listed, export)]
    assert [answer.status_code for answer in old] == [200] * 4
    assert {len(answer.headers["frontrow-as-of"]) for answer in old} == {len("2026-11-16T12:04:31.123456Z")}
    assert old[0].json()["seats"]["sold"] == 0
    assert old[1].json()["changes"] == old[2].json()["events"] == []
    assert old[3].text.count("\r\n") == 1  # the header
    page = await client.get(f"/organiser/events/{EVENT_ID}/reports", headers=owner)
    assert re.search(r"As of \d\d:\d\d:\d\d UTC\.", page.text), page.text[-800:]

    changed = await client.patch(f"/v1/organiser/events/{EVENT_ID}", json={"name": "Borealis"}, headers=owner)
    assert changed.status_code == 200, changed.text
    new = [await client.get(path, headers=owner) for path in (figures, audit, listed, export)]
    assert not [answer for answer in new if "frontrow-as-of" in answer.headers]
    assert new[0].json()["seats"]["sold"] == 1
    assert new[1].json()["changes"]
    assert new[2].json()["events"][0]["name"] == "Borealis"
    assert new[3].text.count("\r\n") == 2


async def test_every_server_knows_who_has_just_changed_something(redis_url: str) -> None:
    here, there = RedisRecentChanges(redis_url, 10), RedisRecentChanges(redis_url, 10)
    await here.note("org_a")
    assert [await there.has("org_a"), await there.has("org_b")] == [True, False]
    client = connect(redis_url)
    assert (
        10_000 < await client.pttl("frontrow:changed:{org_a}") <= 12_000
    )  # as long as a replica may lag, and a little
    await disconnect(client)
    nowhere = RedisRecentChanges(f"redis://127.0.0.1:{free_port()}", 10)
    await nowhere.note("org_a")
    assert await nowhere.has("org_b"), "who cannot know reads the primary"
    for each in (here, there, nowhere):
        await each.aclose()


async def test_the_doctor_says_what_is_wrong_with_a_replica(
    tmp_path: Path, redis_url: str, pair: tuple[Postgres, Standby]
) -> None:
    primary, standby = pair
    nobody = f"postgresql://postgres:hunter2@127.0.0.1:1,127.0.0.1:{standby.port},127.0.0.1:{primary.port}/postgres"
    store = PostgresStore(primary.url)
    await store.beat(0)
    await store.aclose()
    settings = _settings(tmp_path, redis_url, pair, 10)

    async def look() -> list[Finding]:
        return await examine(replace(settings, ledger=replace(settings.ledger, read_url=nobody)))

    def of_replica(found: list[Finding]) -> list[tuple[str, str]]:
        return [(one.state, one.says) for one in found if one.check == "replica"]

    # until the beat has reached the standby, it shows what is older
    found = await eventually(look, until=lambda found: [state for state, _ in of_replica(found)] == [FAIL, OK, WARN])
    said = of_replica(found)
    assert "host 1 of ledger.read_url does not answer" in said[0][1]
    assert re.search(r"host 2 of ledger\.read_url is at most \d\.\d s behind", said[1][1])
    assert "host 3 of ledger.read_url is a primary" in said[2][1]
    assert "hunter2" not in repr(found)
    assert "hunter2" not in repr(replace(settings.ledger, read_url=nobody))


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"LEDGER_READ_URL": "postgresql://replica/a"}, "ledger.read_url: a SQLite ledger has no replicas"),
        ({"LEDGER_READ_URL": "sqlite:///copy.db"}, "ledger.read_url: a replica is a PostgreSQL server"),
        ({"LEDGER_READ_URL": "postgresql://a:b/c@replica/a"}, "ledger.read_url: this PostgreSQL URL cannot be read"),
        ({"LEDGER_READ_MAX_LAG_S": "1"}, "FRONTROW_LEDGER_READ_MAX_LAG_S must be"),
    ],
)
def test_settings_of_a_replica_that_cannot_work_are_refused(given: dict[str, str], says: str) -> None:
    env = {f"FRONTROW_{name}": value for name, value in given.items()} | {"FRONTROW_SERVER_DEMO": "true"}
    with pytest.raises(ConfigError) as refused:
        read_settings(None, env)
    assert says in str(refused.value)
