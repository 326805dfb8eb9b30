"""Crashes of the ledger (N4, F1, F5): kill -9 of PostgreSQL under load and of the embedded process; nothing that was
acknowledged is lost, nothing is sold twice, and it serves again by itself. Connections cut around a COMMIT too."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.migrate import migrate
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.messages.model.messages import NewDelivery
from frontrow.core.errors import Unavailable
from tests.faults.ledger_load import NOW_US, Load, assert_all_there, wish
from tests.faults.selling import LEDGER_BOUND_S, within
from tests.support.eventually import eventually_sync
from tests.support.servers import Postgres, ServerUnavailable, free_port


def restart(server: Postgres, bound_s: float = 30.0) -> None:
    """Start the killed server; its orphaned children may hold the shared memory for a moment."""
    eventually_sync(server.start, bound_s, ignoring=ServerUnavailable, every_s=0.05)


async def test_postgresql_killed_under_load_loses_nothing_acknowledged() -> None:
    """N4, F5: kill -9, restart, serving again; the callers notice nothing but a pause."""
    with Postgres() as server:
        await asyncio.to_thread(migrate, server.url)
        ledger = await open_ledger(server.url, reconnect_for_s=30)
        load = Load(ledger)
        for kill in (1, 2):
            await load.until_confirmed(kill * 300)
            server.kill()
            killed_at = len(load.confirmed)
            await asyncio.to_thread(restart, server)
            served = load.answered
            await within(lambda served=served: load.answered > served, LEDGER_BOUND_S)
            await load.until_confirmed(killed_at + 300)
        await load.stop()
        assert load.lost == 0, "the pause was shorter than the reconnect budget"
        assert ledger.store.reconnects >= 2  # type: ignore[attr-defined]
        await assert_all_there(ledger, load.held, load.confirmed)
        await ledger.aclose()


async def test_a_silent_postgresql_is_an_error_in_bounded_time_and_its_return_is_noticed() -> None:
    with Postgres() as server:
        await asyncio.to_thread(migrate, server.url)
        ledger = await open_ledger(server.url, reconnect_for_s=0.3, rest_s=0.0)
        await ledger.place_hold(wish(1))
        server.kill()
        answers = await asyncio.gather(*[ledger.place_hold(wish(n)) for n in range(2, 60)], return_exceptions=True)
        assert [answer for answer in answers if not isinstance(answer, Unavailable)] == []
        with pytest.raises(Unavailable):
            await ledger.booking("bkg_00000001")
        with pytest.raises(Unavailable):  # what /readyz asks for: 503, not 500
            await ledger.time_us()
        await asyncio.to_thread(restart, server)
        assert (await ledger.place_hold(wish(1))).repeated
        assert not (await ledger.place_hold(wish(99))).repeated
        await ledger.aclose()


class CuttingProxy:
    """Passes bytes to PostgreSQL; cuts the connection around the next COMMIT when told to."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.cut = ""
        self.cuts = 0
        self.port = free_port()

    async def __aenter__(self) -> "CuttingProxy":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        return self

    async def __aexit__(self, *error: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._port)
        down = asyncio.create_task(self._pass(up_reader, writer))
        try:
            while chunk := await reader.read(65536):
                if b"COMMIT" in chunk and self.cut:
                    await self._cut_here(chunk, down, up_reader, up_writer)
                    break
                up_writer.write(chunk)
        finally:
            down.cancel()
            writer.transport.abort()
            up_writer.close()

    async def _cut_here(
        self, chunk: bytes, down: "asyncio.Task[None]", up_reader: asyncio.StreamReader, up_writer: asyncio.StreamWriter
    ) -> None:
        cut, self.cut = self.cut, ""
        self.cuts += 1
        down.cancel()
        await asyncio.gather(down, return_exceptions=True)
        if cut == "after":  # it commits, and nobody hears of it
            up_writer.write(chunk)
            await up_reader.read(65536)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(65536):
            writer.write(chunk)
        writer.close()


@pytest.fixture
async def proxied(postgres_ledger_url: str) -> AsyncIterator[tuple[CuttingProxy, SqlLedger]]:
    head, _, tail = postgres_ledger_url.rpartition("@")
    host, _, name = tail.partition("/")
    async with CuttingProxy(int(host.partition(":")[2])) as proxy:
        ledger = await open_ledger(f"{head}@127.0.0.1:{proxy.port}/{name}", writers=1)
        yield proxy, ledger
        await ledger.aclose()


@pytest.mark.parametrize("cut", ["before", "after"])
async def test_an_unknown_commit_is_resolved_by_asking_again(cut: str, proxied: tuple[CuttingProxy, SqlLedger]) -> None:
    """N4: cut before the COMMIT reached the server or after it was done: every caller hears the truth, once."""
    proxy, ledger = proxied
    await ledger.place_hold(wish(1000))
    proxy.cut = cut
    holds = await asyncio.gather(*[ledger.place_hold(wish(n)) for n in range(60)])
    assert proxy.cuts == 1
    assert len({hold.fence for hold in holds}) == 60
    assert any(hold.repeated for hold in holds) == (cut == "after")
    for move in (ledger.begin_payment, ledger.confirm):
        proxy.cut = cut
        await asyncio.gather(*[move(hold.booking_id, hold.fence, NOW_US) for hold in holds])
    assert proxy.cuts == 3
    facts = [fact.fact for fact in await ledger.claim_facts(NOW_US, 1, 1_000)]
    kinds = [type(fact).__name__ for fact in facts if fact.booking_id != "bkg_00001000"]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "HoldPlaced": 60,
        "PaymentBegun": 60,
        "BookingConfirmed": 60,
    }
    await assert_all_there(ledger, {h.booking_id: h.fence for h in holds}, {h.booking_id: h.fence for h in holds})


async def test_a_claim_whose_answer_was_lost_is_given_again(proxied: tuple[CuttingProxy, SqlLedger]) -> None:
    """B15: it was committed and nobody heard of it. Else facts waited 30 s and mails 120 s for the claim to end."""
    proxy, ledger = proxied
    await ledger.place_hold(wish(1))
    queries = ledger.messages.make_delivery_writes([NewDelivery("k", "lane", "one", "")], NOW_US)
    await ledger.messages.once("test", "one", queries, NOW_US)
    proxy.cut = "after"
    assert len(await ledger.claim_facts(NOW_US, 30_000_000, 10)) == 1
    proxy.cut = "after"
    assert len(await ledger.messages.claim_deliveries("k", NOW_US, 120_000_000, 10, 10)) == 1
    assert proxy.cuts == 2
    assert await ledger.claim_facts(NOW_US, 30_000_000, 10) == []
    assert await ledger.messages.claim_deliveries("k", NOW_US, 120_000_000, 10, 10) == []


def said_until_killed(command: list[str]) -> list[str]:
    """All lines of a child that is killed after its 700th."""
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
    assert child.stdout is not None
    lines = [child.stdout.readline() for _ in range(700)]
    os.kill(child.pid, signal.SIGKILL)
    lines += child.stdout.read().splitlines(keepends=True)  # what was printed before the kill
    child.wait(60)
    child.stdout.close()
    return lines


async def test_an_embedded_process_killed_at_any_moment_comes_back_whole(tmp_path: Path) -> None:
    """N4, F5: kill -9 in the middle of writing, twice; everything that was acknowledged is there."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    await asyncio.to_thread(migrate, url)
    held: dict[str, int] = {}
    confirmed: dict[str, int] = {}
    for life in ("a", "b"):
        command = [sys.executable, "-m", "tests.faults.ledger_child", str(tmp_path / "ledger.db"), life]
        for line in await asyncio.to_thread(said_until_killed, command):
            if line.endswith("\n"):
                word, booking_id, fence = line.split()
                (held if word == "held" else confirmed)[booking_id] = int(fence)
    ledger = await open_ledger(url)
    await assert_all_there(ledger, held, confirmed)
    hold = await ledger.place_hold(wish(1))
    assert hold.fence > max(held.values())
    await ledger.aclose()
