"""`frontrow demo` sells for a while and ends well; `frontrow work` does the jobs of a grown-up platform (B14, B18)."""

import asyncio
import itertools
import os
import re
import signal
import subprocess
import sys

import httpx

from frontrow.app import demo
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.core.clock import SystemClock
from frontrow.rehearsal.demo_crowd import Crowd
from frontrow.rehearsal.fan_calls import FanCalls
from frontrow.rehearsal.http_client import FanConnection
from tests.support.eventually import eventually
from tests.support.processes import Process
from tests.web.api.script import Buyer
from tests.web.api.support import EVENT_ID, put_into


def test_b18_the_demo_sells_out_prints_its_summary_and_can_be_looked_at_until_ctrl_c(tmp_path):
    command = [
        sys.executable,
        "-m",
        "frontrow.cli.main",
        "demo",
        "--seats",
        "100",
        "--people",
        "20",
        "--folder",
        "kept",
    ]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, start_new_session=True, **pipes) as running:
        try:
            shown = "".join(itertools.takewhile(lambda line: "Nothing is left" not in line, running.stdout))
            url = re.search(r"live at (\S+)", shown)[1]
            assert "nothing sold twice" in shown, "the summary is there at once"
            assert int(re.search(r"bookings, (\d+) of 100 seats sold", shown)[1]) > 50, shown
            assert httpx.get(f"{url}/events/evt_demo").status_code == 200
            os.killpg(running.pid, signal.SIGINT)
            rest, errors = running.communicate(timeout=60)
        finally:
            running.kill()
    assert running.returncode == 0, rest + errors
    assert "Traceback" not in errors
    assert (tmp_path / "kept" / "frontrow.db").exists()


async def test_b18_a_fan_who_is_told_to_wait_waits_and_asks_again(monkeypatch):
    asked: list[bytes] = []
    paused: list[float] = []

    async def pass_time(waiting, seconds):
        waiting.close()
        paused.append(seconds)
        raise TimeoutError

    monkeypatch.setattr(asyncio, "wait_for", pass_time)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for refusal in (b"503 Busy", b"429 Slow down", None):
            asked.append(await reader.readuntil(b"\r\n\r\n"))
            status, more = (refusal, b"Retry-After: 7\r\n") if refusal else (b"201 Created", b"")
            writer.write(b"HTTP/1.1 " + status + b"\r\n" + more + b'Content-Length: 13\r\n\r\n{"place":"x"}')
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        crowd = Crowd(f"http://127.0.0.1:{port}", "evt_x", 1)
        fan = FanConnection(crowd._target, "192.0.2.1")
        reply = await FanCalls("evt_x", crowd._sender(fan)).join()
        await fan.aclose()
    assert (reply.status, len(asked), paused, crowd.tally.odd) == (201, 3, [7, 7], [])


def test_b18_ctrl_c_in_the_terminal_ends_the_demo_with_its_summary(tmp_path):
    command = [sys.executable, "-m", "frontrow.cli.main", "demo", "--seats", "500", "--people", "10"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, start_new_session=True, **pipes) as running:
        try:
            shown = list(itertools.takewhile(lambda line: "mails" not in line, running.stdout))
            ways = dict(re.findall(r"^  (.+?) +(http\S+)$", "".join(shown), re.MULTILINE))
            assert httpx.get(ways["a fan's page"]).status_code == 200
            assert httpx.get(ways["become the organiser"]).status_code == 200
            assert ways["its live sale"].endswith("/organiser/events/evt_demo/live")
            os.killpg(running.pid, signal.SIGINT)  # as a terminal does
            rest, errors = running.communicate(timeout=60)
        finally:
            running.kill()
    assert running.returncode == 0, rest + errors
    assert "Traceback" not in errors
    counts = re.search(r"([\d,]+) of 500.*?([\d,]+) of 500 seats sold", rest, re.DOTALL)
    assert counts is not None, rest
    taken, sold = (int(count.replace(",", "")) for count in counts.groups())
    assert sold <= taken <= 500, "the figures add up"


def test_b18_the_server_of_a_demo_that_was_killed_ends_too(tmp_path):
    with demo._start(tmp_path, 0, 20) as server:
        url, banner = demo._read_banner(server)
        assert url.startswith("http://")
        assert banner[-1].startswith("  mails")
        server.stdin.close()  # the system does this when the demo's process is gone
        assert server.wait(60) in (0, -signal.SIGTERM)


async def test_b14_jobs_in_a_process_of_their_own_end_a_hold_and_pay_a_refund_out(
    tmp_path, redis_url, postgres_ledger_url
):
    ledger = await open_ledger(postgres_ledger_url)
    await put_into(ledger, SystemClock()(), hold_ttl_s=2)
    stores = {"FRONTROW_REDIS_URL": redis_url, "FRONTROW_LEDGER_URL": postgres_ledger_url}
    server = Process(["serve", "--port", "0"], tmp_path, FRONTROW_SERVER_JOBS_INSIDE="false", **stores)
    worker = Process(["work"], tmp_path, **stores)
    try:
        server.listening()
        await server.ready()
        assert worker.process.stdout is not None
        assert "working: " in await asyncio.to_thread(worker.process.stdout.readline)
        async with httpx.AsyncClient(base_url=server.url, timeout=20) as client:
            buyer = Buyer(client, (await client.get("/openapi.json")).json())
            await buyer.enter(EVENT_ID)
            left = await buyer.hold(EVENT_ID, seats=["S-A-1"])
            held = await buyer.hold(EVENT_ID, seats=["S-A-2"])
            await buyer.pay(held["booking"])

            async def states() -> list[str]:
                payments = await ledger.payments.payments_of(held["booking"])
                return [payment.state for payment in payments]

            async def ends() -> list[str]:
                expired = await ledger.booking(left["booking"])
                refunds = await ledger.payments.refunds_of(held["booking"])
                return [expired.state, *(refund.state for refund in refunds)]

            await eventually(states, until=lambda states: states == ["captured"])  # the worker has taken the money
            await buyer.call("cancel_booking", booking_id=held["booking"])
            await eventually(ends, until=lambda ends: ends == ["expired", "done"])
    finally:
        codes = [worker.stop(), server.stop()]
        await ledger.aclose()
    assert codes == [0, 0]
