"""O3: a failing job, consumer, payment and follower are planted; each is in the log, in /metrics and in /readyz."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontrow.boxoffice.checkout.checkout import Checkout
from frontrow.boxoffice.events.catalogue_follower import CatalogueFollower
from frontrow.boxoffice.facts.fact_consumers import FactConsumer
from frontrow.boxoffice.holds.expiry import Sweeper
from frontrow.boxoffice.payments.model.payments import Payment, PaymentState
from frontrow.boxoffice.payments.model.retry_schedule import WORK_CLAIM_S
from frontrow.boxoffice.payments.payment_log import PAYMENT_JOB
from frontrow.boxoffice.payments.provider_calls import ProviderCalls
from frontrow.boxoffice.payments.resting_payments import LONGEST_REST_S, RestingPayments, rest_s
from frontrow.boxoffice.refunds.model.refunds import RefundState
from frontrow.boxoffice.refunds.payouts import RefundPayouts
from frontrow.core.clock import US_PER_S
from frontrow.core.failures import FailureBook
from frontrow.testing.clock import ManualClock
from frontrow.web.observability.job_health import job_families
from frontrow.web.observability.worker_metrics import Board
from tests.support.eventually import eventually, eventually_sync
from tests.support.log_lines import log_lines
from tests.support.metrics_page import total
from tests.web.api.script import a_buyer
from tests.web.api.support import EVENT_ID, a_server


def failing(message: str) -> Callable[..., Awaitable[Any]]:
    async def fail(*given: object, **more: object) -> None:
        await asyncio.sleep(0)
        raise LookupError(message)

    return fail


PLANTED = {  # job -> where it fails
    "sweeper": (Sweeper, "sweep"),
    "consumer notify": (FactConsumer, "work"),
    "openings": (CatalogueFollower, "_catch_up"),
    PAYMENT_JOB: (ProviderCalls, "capture"),
}


async def test_o3_planted_failures_are_in_the_log_the_metrics_and_readyz(tmp_path: Path) -> None:
    """None of the four was anywhere before: `serve` never read the runner's failures."""
    with log_lines() as lines, pytest.MonkeyPatch.context() as patch:
        async with a_server(tmp_path) as (platform, address), httpx.AsyncClient(base_url=address) as client:
            assert "failing" not in (await client.get("/readyz")).json()
            for job, (owner, name) in PLANTED.items():
                patch.setattr(owner, name, failing(f"planted in {job}"))
            buyer = await a_buyer(client)
            await buyer.enter(EVENT_ID)
            held = await buyer.hold(EVENT_ID, seats=["S-B-3"])
            assert (await buyer.pay(held["booking"]))["state"] == "confirmed"
            await platform.ledger.catalogue.put_event(platform.box_office.openings.events[EVENT_ID], platform.clock())
            counts = platform.server.telemetry.failures.counts
            await eventually(lambda: all(counts.get(job, 0) for job in PLANTED), 30)
            page = (await client.get("/metrics")).text
            answer = await client.get("/readyz")
        assert answer.status_code == 200, "a broken job must not take every server out of the sale"
        assert answer.json()["failures"].keys() >= PLANTED.keys()
        for job in PLANTED:
            assert total(page, "frontrow_job_failures_total", job=job) >= 1, job
        told = [line for line in lines() if line.get("action") == "job_failed"]
        for job in PLANTED:
            (line,) = [one for one in told if one["job"] == job and f"planted in {job}" in one["exception"]]
            assert line["level"] == "error"
            assert "Traceback" in line["exception"]
        (payment,) = [one for one in told if one["job"] == PAYMENT_JOB]
        assert payment["booking_id"] == held["booking"]


async def test_o3_b8_a_payment_that_meets_a_bug_is_tried_less_and_less_often(tmp_path: Path) -> None:
    """Before: every 30 s for ever, and nobody heard of it."""
    tries = 0

    async def capture(self: ProviderCalls, payment: Payment) -> Payment:
        nonlocal tries
        tries += 1
        raise LookupError("a bug")

    with pytest.MonkeyPatch.context() as patch:
        async with a_server(tmp_path, jobs_inside=False) as (platform, address):
            async with httpx.AsyncClient(base_url=address) as client:
                buyer = await a_buyer(client)
                await buyer.enter(EVENT_ID)
                booking = (await buyer.hold(EVENT_ID, seats=["S-B-3"]))["booking"]
                await buyer.pay(booking)
            original = ProviderCalls.capture
            patch.setattr(ProviderCalls, "capture", capture)
            clock, pauses_s = ManualClock(platform.clock()), []
            for _ in range(12):
                checkout = Checkout(platform.ledger, platform.box_office.provider, clock)  # remembers nothing
                assert await checkout.work() == 1
                (payment,) = await platform.ledger.payments.payments_of(booking)
                pauses_s.append((payment.retry_at_us - clock()) // US_PER_S)
                clock.advance(us=payment.retry_at_us - clock())
            assert tries == 12
            assert pauses_s == [rest_s(n) for n in range(12)]
            assert (pauses_s[0], pauses_s[-1]) == (WORK_CLAIM_S, LONGEST_REST_S)
            assert payment.state is PaymentState.CAPTURING, "the money is owed: it is never dropped"
            patch.setattr(ProviderCalls, "capture", original)
            await checkout.work()
            (payment,) = await platform.ledger.payments.payments_of(booking)
            assert payment.state is PaymentState.CAPTURED, "the version that mends the bug finds it due"


async def test_o3_b12_a_refund_that_meets_a_bug_is_tried_less_and_less_often(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        server = a_server(tmp_path, jobs_inside=False)
        async with server as (platform, address), httpx.AsyncClient(base_url=address) as client:
            buyer = await a_buyer(client)
            await buyer.enter(EVENT_ID)
            booking = (await buyer.hold(EVENT_ID, seats=["S-B-3"]))["booking"]
            await buyer.pay(booking)
            await platform.box_office.checkout.work()
            await platform.box_office.refunds.override(booking)
            clock, pauses_s, ledger = ManualClock(platform.clock()), [], platform.ledger
            original = RefundPayouts.pay_out
            patch.setattr(RefundPayouts, "pay_out", failing("a bug"))
            for _ in range(4):
                payouts = RefundPayouts(ledger, platform.box_office.provider, clock)
                assert await payouts.work() == 1
                (refund,) = await ledger.payments.refunds_of(booking)
                pauses_s.append((refund.retry_at_us - clock()) // US_PER_S)
                clock.advance(us=refund.retry_at_us - clock())
            assert pauses_s == [30, 60, 120, 240]
            patch.setattr(RefundPayouts, "pay_out", original)
            await RefundPayouts(ledger, platform.box_office.provider, clock).work()
            (refund,) = await ledger.payments.refunds_of(booking)
            assert refund.state is RefundState.DONE


def test_a_payment_that_cannot_even_be_saved_rests_in_this_process() -> None:
    resting = RestingPayments()
    payment = Payment("pay_1", "bkg_1", 1, "simulated", 100, "EUR")
    assert [resting.rest(payment, 0) for _ in range(9)] == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]
    assert resting.rests("pay_1", 3600 * US_PER_S - 1)
    assert not resting.rests("pay_1", 3600 * US_PER_S)
    resting.forget("pay_1")
    assert not resting.rests("pay_1", 0)


async def test_o3_readyz_tells_of_all_workers_of_a_server(tmp_path: Path) -> None:
    async with a_server(tmp_path / "one") as (platform, address), httpx.AsyncClient(base_url=address) as client:
        telemetry = platform.server.telemetry
        telemetry.board = Board(tmp_path)
        other = FailureBook()
        for _ in range(2):
            other.note("relay", LookupError("in the other worker"))
        Board(tmp_path).write(job_families(other))
        told = (await client.get("/readyz")).json()
        assert (told["failing"], told["failures"]) == (["relay"], {"relay": 2})


def said(url: str, path: str) -> Any:
    with contextlib.suppress(httpx.HTTPError):
        return httpx.get(url + path, trust_env=False, timeout=5)
    return None


@contextlib.contextmanager
def a_process(folder: Path, code: str, *words: str, **env: str) -> Iterator[subprocess.Popen[str]]:
    """`frontrow` with these words, after `code` has planted something."""
    (folder / "planted.py").write_text(f"{code}\nfrom frontrow.cli.main import main\nmain()\n")
    command = [sys.executable, str(folder / "planted.py"), *words]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=os.environ | env, stdout=subprocess.PIPE, stderr=log, text=True
        )
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)


def logged(folder: Path) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in (folder / "log").read_text().splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("action") == "job_failed"]


def test_o3_frontrow_work_tells_of_a_failing_job(tmp_path: Path) -> None:
    code = """
from frontrow.boxoffice.holds.expiry import Sweeper
async def sweep(self):
    raise LookupError("planted")
Sweeper.sweep = sweep
"""
    words = ["work", "--ledger", f"sqlite:///{tmp_path}/ledger.sqlite", "--health", "127.0.0.1:0"]
    words += ["--bus", "memory:", "--mail", str(tmp_path / "mails"), "--keys", str(tmp_path / "keys.json")]
    with a_process(tmp_path, code, *words) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        answer = eventually_sync(
            lambda: (told := said(url, "/readyz")) is not None and told.status_code == 503 and told
        )
        assert answer.json()["failing"] == ["sweeper"]
        assert total(said(url, "/metrics").text, "frontrow_job_failures_total", job="sweeper") >= 2
    (line,) = logged(tmp_path)
    assert (line["job"], line["level"]) == ("sweeper", "error")
    assert "planted" in line["exception"]


def test_o3_w11_room_serve_tells_of_a_failing_leader(tmp_path: Path) -> None:
    """Before: the first error that was not ours ended the room's loop, and nobody was admitted any more."""
    code = """
from frontrow.waitingroom.service.leader import Leader
lead, turns = Leader.take_turn, 0
async def take_turn(self, event, state):
    global turns
    turns += 1
    if turns < 4:
        raise LookupError("planted")
    return await lead(self, event, state)
Leader.take_turn = take_turn
"""
    with a_process(tmp_path, code, "room", "serve", "--port", "0", FRONTROW_ROOM_FOLDER=str(tmp_path)) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        eventually_sync(lambda: said(url, "/healthz"))
        httpx.post(f"{url}/join", trust_env=False)
        answer = eventually_sync(
            lambda: (told := said(url, "/readyz").json()) and told["failures"].get("room") == 3 and told
        )
        assert answer["ok"]
        assert total(said(url, "/metrics").text, "frontrow_job_failures_total", job="room") == 3
        eventually_sync(lambda: total(said(url, "/metrics").text, "frontrow_room_is_leader"))
    (line,) = logged(tmp_path)
    assert line["job"] == "room"
    assert line["event_id"]
