"""/metrics (B19): every figure is there, moves with what happens, is summed over workers and names nobody."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx
import msgspec
import pytest

from frontrow.boxoffice.adapters.bus.memory import MemoryBus
from frontrow.boxoffice.adapters.claims.redis_memory import RedisMemory
from frontrow.boxoffice.facts.fact_consumers import FactConsumer
from frontrow.boxoffice.facts.outbox_relay import OutboxRelay
from frontrow.boxoffice.payments.payment_records import PaymentRecords
from frontrow.core.errors import Unavailable
from frontrow.web.guard.route_metrics import bounds_s
from frontrow.web.observability.worker_metrics import KEPT_S, Board, Family, Sample, merged, text
from frontrow.web.platform.metrics import families
from tests.support.eventually import eventually
from tests.support.metrics_page import samples, total
from tests.web.api.script import a_buyer
from tests.web.api.support import EVENT_ID, a_server

B19 = {
    "seats locked a second": "frontrow_seats_locked_total",
    "holds": "frontrow_holds_total",
    "bookings by state": "frontrow_bookings",
    "queue depth": "frontrow_room_waiting",
    "payment success": "frontrow_payments",
    "latency percentiles": "frontrow_http_request_seconds_bucket",
    "requests": "frontrow_http_requests_total",
    "breaker": "frontrow_breaker_open",
    "outbox lag": "frontrow_outbox_lag_seconds",
    "waitlist": "frontrow_waitlist_entries",
    "shed": "frontrow_shed_requests_total",
    "store errors": "frontrow_store_errors_total",
}


async def test_b19_every_figure_is_on_the_page_and_moves_with_a_purchase(tmp_path):
    async with a_server(tmp_path) as (platform, address), httpx.AsyncClient(base_url=address) as client:
        before = (await client.get("/metrics")).text
        names = {name for name, _ in samples(before)} | {re.sub("_(total)$", "", name) for name, _ in samples(before)}
        declared = set(re.findall(r"# TYPE (\S+)", before)) | names
        missing = [
            name for name in B19.values() if name not in declared and name.removesuffix("_bucket") not in declared
        ]
        assert not missing
        buyer = await a_buyer(client)
        await buyer.enter(EVENT_ID)
        held = await buyer.hold(EVENT_ID, seats=["S-B-3", "S-B-4"])
        await buyer.pay(held["booking"])
        await platform.box_office.checkout.work()  # takes the money
        await platform.server.telemetry.read(platform.ledger)
        after = (await client.get("/metrics")).text
        assert total(after, "frontrow_seats_locked_total") == 2
        assert total(after, "frontrow_holds_total", outcome="won") == 1
        assert total(after, "frontrow_bookings", state="confirmed") == 1
        assert total(after, "frontrow_payments", state="captured") == 1
        assert total(after, "frontrow_http_requests_total", route="hold", door="hot", status="2xx") == 1
        assert total(after, "frontrow_http_requests_total", route="pay", door="hot", status="2xx") == 1
        assert total(after, "frontrow_http_request_seconds_count", route="pay", door="hot") == 1
        assert total(after, "frontrow_http_request_seconds_bucket", route="pay", le="+Inf") == 1
        assert total(after, "frontrow_breaker_open") == 0
        assert total(after, "frontrow_seats_active") == 2


async def test_b13_b19_an_organisers_percentiles_are_those_of_the_requests_answered(tmp_path):
    """B13, B19: fast path and framework together, each step by its own name; what nobody asked has none."""
    async with a_server(tmp_path) as (platform, address), httpx.AsyncClient(base_url=address) as client:
        event = platform.box_office.openings.events[EVENT_ID]
        assert "pay" not in (await platform.organiser.figures.of(event)).latency
        buyer = await a_buyer(client)
        await buyer.enter(EVENT_ID)
        held = await buyer.hold(EVENT_ID, seats=["S-B-3", "S-B-4"])
        await buyer.pay(held["booking"])
        speeds = platform.organiser.figures.speeds()
        assert {"join", "claim", "hold", "pay"} <= speeds.keys()
        assert (speeds["join"].count, speeds["hold"].count, speeds["pay"].count) == (1, 1, 1)
        assert 0 < speeds["hold"].p50_ms <= speeds["hold"].p99_ms <= bounds_s()[-1] * 1000
        platform.server.telemetry.traffic.of("hold", "hot").took(1 << 33, 201)
        platform.server.telemetry.traffic.of("place_hold", "app").took(1 << 33, 201)
        assert platform.organiser.figures.speeds()["hold"].count == 3
        assert platform.organiser.figures.speeds()["hold"].p99_ms > 1_000


async def test_the_page_names_no_person_and_its_labels_are_bounded(tmp_path):
    """Canaries: an e-mail address, a card, tokens, a booking and the caller's address are in no line (B19)."""
    async with a_server(tmp_path) as (platform, address), httpx.AsyncClient(base_url=address) as client:
        buyer = await a_buyer(client)
        visit = await buyer.enter(EVENT_ID)
        held = await buyer.hold(EVENT_ID, seats=["S-B-3"])
        body = {"method": "pm_card_visa", "email": "canary@example.org"}
        await buyer.call("pay", booking_id=held["booking"], json=body)
        for number in range(50):
            await client.get(f"/v1/events/evt_made_up_{number}")
            await client.get(f"/no/such/page/{number}")
        await platform.server.telemetry.read(platform.ledger)
        page = (await client.get("/metrics")).text
        for canary in ("canary@", "pm_card", visit[:40], held["booking"], held["booking_token"], "127.0.0.1", "place:"):
            assert canary not in page, canary
        assert "made_up" not in page
        assert "such/page" not in page
        routes = {dict(labels).get("route") for _, labels in samples(page)} - {None}
        assert len(routes) < 100


async def test_the_ledger_being_away_is_counted_and_the_page_still_answers(tmp_path):
    async with a_server(tmp_path) as (platform, address), httpx.AsyncClient(base_url=address) as client:

        class Away:
            class browsing:
                class operations:
                    @staticmethod
                    async def operating_figures():
                        raise OSError("away")

        await platform.server.telemetry.read(Away)
        page = (await client.get("/metrics")).text
        assert total(page, "frontrow_store_errors_total", store="ledger") == 1


def test_workers_are_summed_and_shared_gauges_are_not(tmp_path):
    def page(done: float, waiting: float, open_: float) -> list[Family]:
        return [
            Family("done_total", "counter", "d", "sum", [Sample("done_total", (("route", "a"),), done)]),
            Family("waiting", "gauge", "w", "max", [Sample("waiting", (), waiting)]),
            Family("open", "gauge", "o", "sum", [Sample("open", (), open_)]),
        ]

    boards = [Board(tmp_path) for _ in range(3)]
    for number, board in enumerate(boards):
        board.write(page(10 * (number + 1), 100 + number, 1))
    joined = text(boards[0].joined(page(11, 100, 1))).decode()
    assert total(joined, "done_total", route="a") == 11 + 20 + 30
    assert total(joined, "waiting") == 102
    assert total(joined, "open") == 3
    (tmp_path / "broken.bin").write_bytes(b"\xff\x00 torn")
    assert text(boards[0].joined(page(11, 100, 1))).decode() == joined, "a torn file changes nothing"


def test_boards_that_nobody_writes_to_are_removed(tmp_path: Path):
    left, living = tmp_path / "metrics" / "1", tmp_path / "metrics" / "other@1-77"
    for folder, age_s in ((left, KEPT_S + 60), (living, 2)):
        folder.mkdir(parents=True)
        os.utime(folder, (time.time() - age_s,) * 2)
    Board.of_workers(tmp_path, 2)
    assert not left.exists()
    assert living.exists(), "of a container that shares the folder"
    assert Board.of_workers(tmp_path, 1).joined([]) == merged([[]])


def test_the_board_of_another_process_with_the_same_number_is_not_ours(tmp_path: Path):
    """A container that starts again: its first process is number 1 again, and its workers have their old numbers."""

    def page(done: float) -> list[Family]:
        gauge = Family("open", "gauge", "o", "sum", [Sample("open", (), 5)])
        return [Family("done_total", "counter", "d", "sum", [Sample("done_total", (), done)]), gauge]

    board = Board.of_workers(tmp_path, 2)
    (own,) = (tmp_path / "metrics").iterdir()
    number = os.getpid()
    earlier = own / f"{number}-1-{'0' * 32}.bin"  # this process' number, started long before it
    earlier.write_bytes(msgspec.msgpack.encode(page(7)))
    joined = text(board.joined(page(1))).decode()
    assert total(joined, "done_total") == 8
    assert total(joined, "open") == 5, "connections of a dead worker are closed"
    before = own.with_name(f"{own.name.rpartition('@')[0]}@{os.getppid()}-1")
    assert before != own, "the same number of another start is another server"
    before.mkdir()
    (before / f"{number}-1-{'0' * 32}.bin").write_bytes(msgspec.msgpack.encode(page(100)))
    assert text(Board.of_workers(tmp_path, 2).joined(page(1))).decode() == joined


CONTAINER = """
import sys, pathlib
from frontrow.web.observability.worker_metrics import KEPT_S, Board, Family, Sample, text
board = Board.of_workers(pathlib.Path(sys.argv[1]), 2)
page = [Family("done_total", "counter", "d", "sum", [Sample("done_total", (), 1)])]
board.write(page)
print(text(board.joined(page)).decode(), flush=True)
sys.stdin.read()
"""
SEPARATE = ["unshare", "--user", "--map-root-user", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc"]


def namespace_command() -> list[str]:
    """Runs a command with process numbers of its own; nothing where the machine does not allow it."""
    if shutil.which("unshare") and not subprocess.run([*SEPARATE, "true"], capture_output=True).returncode:
        return SEPARATE
    return []


def test_two_containers_on_one_folder_do_not_count_each_other(tmp_path: Path, not_checked: Callable[[str], None]):
    """Real process namespaces: in both, the parent is number 1 and the worker number 2."""
    if not namespace_command():
        not_checked("metrics of two process namespaces (none are allowed here); of two processes they are")
    command = [
        *namespace_command(),
        "sh",
        "-c",
        'python="$1"; shift; "$python" "$@"; true',
        "sh",
        sys.executable,
        "-c",
        CONTAINER,
    ]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    containers = [subprocess.Popen([*command, str(tmp_path)], **pipes) for _ in range(2)]
    pages = []
    for one in containers:
        assert one.stdout is not None
        pages.append("".join(iter(one.stdout.readline, "\n")))
    for one in containers:
        one.communicate()
    assert [total(page, "done_total") for page in pages] == [1, 1]


async def test_a_workers_numbers_reach_the_board(tmp_path):
    async with a_server(tmp_path) as (platform, _):
        platform.server.telemetry.board = Board(tmp_path)
        await eventually(lambda: bool(list(tmp_path.glob("*.bin"))))
        other = Board(tmp_path)
        names = {family.name for family in other.joined([])}
        assert names == {family.name for family in families(platform)}


async def test_b19_what_waits_for_a_worker_is_on_the_page(tmp_path):
    """B19: a server without jobs sold a seat. Its money, its mail and an unfinished payment are seen to wait."""
    server = a_server(tmp_path, jobs_inside=False)
    async with server as (platform, address), httpx.AsyncClient(base_url=address) as client:
        ledger, telemetry = platform.ledger, platform.server.telemetry
        buyer = await a_buyer(client)
        await buyer.enter(EVENT_ID)
        booking = (await buyer.hold(EVENT_ID, seats=["S-B-3"]))["booking"]
        body = {"method": "pm_card_visa", "email": "a@example.org"}
        await buyer.call("pay", booking_id=booking, json=body)
        await telemetry.read(ledger)
        page = (await client.get("/metrics")).text
        assert total(page, "frontrow_captures_waiting") == 1
        assert total(page, "frontrow_capture_wait_seconds") > 0
        assert total(page, "frontrow_events_selling") == 1
        assert total(page, "frontrow_payments_stuck") == 0
        (payment,) = await ledger.payments.payments_of(booking)
        records = PaymentRecords(ledger, platform.clock)
        await records.save(msgspec.structs.replace(records.reschedule(payment, platform.clock()), tries=5))
        bus = MemoryBus(["notify"])
        await OutboxRelay(ledger, bus, platform.clock).relay_pending()
        consumer = FactConsumer("notify", bus, ledger.messages, platform.clock, platform.messaging.notifier.plan)
        await consumer.work(await bus.reader("notify"))
        await telemetry.read(ledger)
        page = (await client.get("/metrics")).text
        assert total(page, "frontrow_payments_stuck") == 1
        assert total(page, "frontrow_mails_waiting") >= 1
        assert total(page, "frontrow_mail_wait_seconds") > 0
        event = platform.box_office.openings.events[EVENT_ID]
        platform.box_office.openings.events[EVENT_ID] = replace(event, paused=True)
        assert total((await client.get("/metrics")).text, "frontrow_events_selling") == 0


async def test_b19_the_memory_of_redis_is_on_the_page(tmp_path, own_valkey, redis_cluster, postgres_ledger_url):
    server = a_server(tmp_path, redis_url=own_valkey.url, postgres_url=postgres_ledger_url)
    async with server as (platform, address), httpx.AsyncClient(base_url=address) as client:
        await eventually(lambda: platform.server.telemetry.redis_memory[0] > 0)
        page = (await client.get("/metrics")).text
        used, most = (total(page, f"frontrow_redis_memory_{kind}_bytes") for kind in ("used", "max"))
        assert 0 < used < most, "without a maxmemory the machine's memory is the limit"
    own_valkey.command("CONFIG", "SET", "maxmemory", "100mb")
    memory, whole = RedisMemory(own_valkey.url), RedisMemory(redis_cluster.url)
    try:
        assert (await memory.read())[1] == 100 * 1024 * 1024
        used, most = await whole.read()
        assert 0 < used < most
        own_valkey.kill()
        with pytest.raises(Unavailable):
            await memory.read()
    finally:
        await memory.aclose()
        await whole.aclose()
