"""The workers (B14, B15, F5): all jobs in one process, a failing job begun again, a graceful stop on SIGTERM."""

import asyncio
import base64
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from frontrow.app.wiring import WorkUrls, open_jobs
from frontrow.boxoffice.adapters.channels.email import FolderChannel, SmtpChannel
from frontrow.boxoffice.adapters.channels.from_settings import (
    MessageSettings,
    open_channels,
    open_mail,
    open_sms,
    open_sms_limits,
)
from frontrow.boxoffice.adapters.channels.ses import SesChannel
from frontrow.boxoffice.adapters.ledger.engine.group_commit import RunStatements
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.payments.simulated import SimulatedProvider
from frontrow.boxoffice.adapters.payments.simulated_journal import PaymentJournal
from frontrow.boxoffice.checkout.checkout import Checkout, CheckoutState
from frontrow.boxoffice.events.model.events import EventStatus
from frontrow.boxoffice.facts.model import PriorityGranted
from frontrow.boxoffice.holds.model.bookings import BookingState, Move
from frontrow.boxoffice.messages.model.messages import Contact
from frontrow.boxoffice.messages.safe_http import SafeHttpClient
from frontrow.boxoffice.payments.model.payments import PaymentState
from frontrow.boxoffice.payments.ports import Payee
from frontrow.boxoffice.refunds.event_cancellation import SURE_US
from frontrow.boxoffice.refunds.model.refunds import RefundState
from frontrow.boxoffice.refunds.refunds import Refunds
from frontrow.boxoffice.seats.formats.plan_document import digest, plan_bytes
from frontrow.boxoffice.tickets.signing_keys import TicketKeys
from frontrow.boxoffice.tickets.ticket_codes import Issuer
from frontrow.boxoffice.waitlist.waitlist_entries import WaitlistService
from frontrow.core.clock import SystemClock
from frontrow.core.errors import ConfigError, Unavailable
from frontrow.core.settings_loader import load
from frontrow.shared.jobs import Job, JobRunner, every
from frontrow.testing.clock import ManualClock
from tests.boxoffice.adapters.channels.service_account import service_account
from tests.boxoffice.messages.outbox import put_facts, unpublished
from tests.boxoffice.shop import EVENT, open_shop, shop_event, shop_plan, sqlite_url
from tests.contracts.ledger_contract import Bench
from tests.support.eventually import eventually

PATIENCE_S = 60.0
WORKED = (BookingState.CONFIRMED, PaymentState.CAPTURED, RefundState.DONE, True, True)


async def test_a_job_that_fails_is_begun_again_and_the_others_go_on() -> None:
    runs = {"bad": 0, "good": 0}
    stop_good = asyncio.Event()

    async def bad() -> None:
        runs["bad"] += 1
        raise KeyError("broken")

    async def good() -> None:
        runs["good"] += 1
        await stop_good.wait()

    workers = JobRunner([Job("bad", bad), Job("good", good, stop_good.set)], first_pause_s=0.001)
    running = asyncio.create_task(workers.run())
    await eventually(lambda: runs["bad"] >= 3)
    workers.stop()
    assert await running
    assert runs["good"] == 1
    assert workers.book.counts["bad"] >= 3
    assert "broken" in workers.book.last_errors["bad"]


async def test_a_job_finishes_what_it_has_in_hand_but_not_for_ever() -> None:
    finished: list[str] = []
    told = asyncio.Event()

    async def polite() -> None:
        await told.wait()
        await asyncio.sleep(0)
        finished.append("polite")

    began = asyncio.Event()

    async def deaf() -> None:
        began.set()
        await asyncio.Event().wait()

    workers = JobRunner([Job("polite", polite, told.set), Job("deaf", deaf, lambda: None)], grace_s=0.05)
    running = asyncio.create_task(workers.run())
    await began.wait()
    workers.stop()
    assert not await running, "the deaf job was cut off"
    assert finished == ["polite"]


async def test_a_periodic_job_goes_on_when_its_store_is_away() -> None:
    calls = 0

    async def act() -> None:
        nonlocal calls
        calls += 1
        raise Unavailable("away")

    workers = JobRunner([every("reconcile", act, 0.001)])
    running = asyncio.create_task(workers.run())
    await eventually(lambda: calls >= 3)
    workers.stop()
    assert await running
    assert workers.book.counts["reconcile"] >= 3, "each round without its store is counted"


async def test_frontrow_work_sends_the_confirmation_and_stops_on_sigterm(tmp_path: Path) -> None:
    """B10, B14, B15: a booking confirmed in the ledger becomes a mail, a dead hold is ended, provider or not."""
    url, ring, outbox = sqlite_url(tmp_path), tmp_path / "ring.json", tmp_path / "outbox"
    ledger = await open_ledger(url)
    now_us = await ledger.time_us()
    await ledger.catalogue.put_event(shop_event(starts_at_us=now_us, sale_ends_at_us=now_us + 1), now_us)
    await ledger.messages.put_contact(Contact("fan_1", email="ada@example.org"), now_us)
    bench = Bench(ledger, ledger)
    bench.event, bench.clock.now_us = EVENT, now_us
    hold = await bench.paid(3, fan="fan_1")
    booking = await ledger.booking(hold.booking_id)
    assert booking is not None
    tickets = Issuer(TicketKeys.opened(ring)).issue(booking)
    await ledger.confirm(booking.id, booking.fence, now_us, tickets)
    dead = await bench.hold(5, fan="fan_2", expires_at_us=now_us + 1)
    command = [sys.executable, "-m", "frontrow.cli.main", "work", "--ledger", url, "--keys", str(ring)]
    command += ["--stripe-key", "sk_test_away", "--stripe-api", "http://127.0.0.1:1"]  # the provider is away
    child = await asyncio.to_thread(
        subprocess.Popen, [*command, "--mail", str(outbox)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        await eventually(lambda: list(outbox.glob("confirmed-*.eml")))
        assert tickets[0].id in next(outbox.glob("confirmed-*.eml")).read_text()
        await eventually(lambda: ledger.booking(dead.booking_id), until=lambda swept: swept.state == "expired")
        child.send_signal(signal.SIGTERM)
        output, _ = await asyncio.to_thread(child.communicate, timeout=PATIENCE_S)
    finally:
        child.kill()
        child.wait(60)
    assert (child.returncode, output.splitlines()[-1]) == (0, "stopped"), output
    assert output.startswith("working: sweeper, relay, consumer notify, consumer webhooks, deliver notification")
    money, seats = "checkout, refunds, reconciler, cancellations", "consumer waitlist, offering, resale, event status"
    assert output.splitlines()[0].endswith(f"purge, {money}, catalogue, unused pictures, {seats}")
    assert output.splitlines()[1].startswith("not working on account mails, report mails, messages to buyers")
    assert await unpublished(ledger) == 0
    await ledger.aclose()


async def test_frontrow_work_finishes_a_payment_and_offers_a_freed_seat(tmp_path: Path) -> None:
    """B8, B11, B14, F5: over a simulated provider by URL. A checkout whose server died is confirmed, the seat of a
    refunded booking is offered to who waits, a person whose payment was given up hears of the priority."""
    plan, body, journal = shop_plan(), plan_bytes(shop_plan()), tmp_path / "payments.jsonl"
    async with open_shop(
        sqlite_url(tmp_path), clock=SystemClock(), plan_hash=digest(body), starts_at_us=1 << 50, sale_ends_at_us=1 << 60
    ) as shop:
        ledger, now_us = shop.ledger, shop.clock()
        await ledger.catalogue.put_plan(digest(body), plan, body.decode(), now_us)
        await ledger.catalogue.put_event(shop.event, now_us)
        provider = SimulatedProvider(shop.clock, journal=PaymentJournal(journal))
        checkout = Checkout(ledger, provider, shop.clock)
        sold, dead = await shop.hold("fan_1", 0), await shop.hold("fan_2", 1)
        assert (await checkout.pay(sold.booking_id, sold.fence, "pm_card_visa")).state is CheckoutState.CONFIRMED
        await checkout.work()
        booking = await checkout.records.load_booking(dead.booking_id)
        payee = Payee(provider.name)
        _, payment = await checkout.driver.new_attempt(booking, 1, "pm_card_visa", payee, Move.BEGIN_PAYMENT)
        await checkout.records.save(checkout.records.reschedule(payment, now_us))  # its server died: due at once
        fact = PriorityGranted("bkg_x", EVENT, "fan_3", 1, (2,), now_us, until_us=now_us + 1)
        await put_facts(ledger, [fact])
        waiting = WaitlistService(shop.sales, ledger, shop.claims, shop.holds.held, shop.clock)
        await ledger.waitlist.shift_event(EVENT, EventStatus.ON_SALE, EventStatus.SOLD_OUT, now_us)
        await waiting.join(EVENT, "ada", 1)
        await Refunds(ledger, provider, shop.clock).override(sold.booking_id)
        command = [sys.executable, "-m", "frontrow.cli.main", "work", "--ledger", f"sqlite:///{tmp_path / 'ledger.db'}"]
        command += [
            "--keys",
            str(tmp_path / "ring.json"),
            "--payments",
            f"simulated:{journal}",
            "--mail",
            str(tmp_path),
        ]

        async def reached() -> tuple[object, ...]:
            now = await ledger.booking(dead.booking_id)
            paid = await checkout.records.reload_payment(payment)
            refunds = await ledger.payments.refunds_of(sold.booking_id)
            offers, messages = await waiting.offers(EVENT, "ada"), await ledger.messages.in_app("fan_3")
            return now.state, paid.state, refunds[0].state, bool(offers), bool(messages)

        child = await asyncio.to_thread(
            subprocess.Popen, command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        try:
            await eventually(reached, PATIENCE_S, until=lambda found: found == WORKED, every_s=0.05)
            child.send_signal(signal.SIGTERM)
            output, _ = await asyncio.to_thread(child.communicate, timeout=PATIENCE_S)
        finally:
            child.kill()
            child.wait(60)
        assert child.returncode == 0, output
        assert (await ledger.tickets.tickets_of(dead.booking_id))[0].seat_index == 1
        # One journal, two processes: this one knows what the other did.
        assert (await provider.read((await checkout.records.reload_payment(payment)).ref)).captured_minor == 5_000
        await provider.aclose()


async def test_the_jobs_of_work_give_the_money_of_a_cancelled_event_back(tmp_path: Path) -> None:
    """B14: servers without jobs inside leave a cancellation to `frontrow work`."""
    plan, body = shop_plan(), plan_bytes(shop_plan())
    async with open_shop(
        sqlite_url(tmp_path), clock=SystemClock(), plan_hash=digest(body), starts_at_us=1 << 50, sale_ends_at_us=1 << 60
    ) as shop:
        ledger, now_us = shop.ledger, shop.clock()
        await ledger.catalogue.put_plan(digest(body), plan, body.decode(), now_us)
        await ledger.catalogue.put_event(shop.event, now_us)
        provider = SimulatedProvider(shop.clock, journal=PaymentJournal(tmp_path / "payments.jsonl"))
        held = await shop.hold("fan_1", 0)
        checkout = Checkout(ledger, provider, shop.clock)
        await checkout.pay(held.booking_id, held.fence, "pm_card_visa")
        await checkout.work()
        await provider.aclose()
        await ledger.waitlist.shift_event(EVENT, EventStatus.ON_SALE, EventStatus.CANCELLED, now_us)
        long_ago_us = now_us - SURE_US  # the job need not wait for transactions that began before the cancellation
        await ledger.line.submit(RunStatements((Query("add_cancellations", [(EVENT, long_ago_us)]),), now_us=now_us))
        urls = WorkUrls(
            sqlite_url(tmp_path),
            "memory:",
            str(tmp_path),
            tmp_path / "ring.json",
            payments=f"simulated:{tmp_path / 'payments.jsonl'}",
        )
        async with open_jobs(urls) as jobs:
            workers = JobRunner([job for job in jobs if job.name in ("cancellations", "refunds")])
            working = asyncio.create_task(workers.run())

            async def reached() -> tuple[object, ...]:
                refunds = await ledger.payments.refunds_of(held.booking_id)
                job = await ledger.organiser.cancellation(EVENT)
                return [refund.state for refund in refunds], job and job.state, workers.book.last_errors

            try:
                await eventually(reached, PATIENCE_S, until=lambda found: found[:2] == ([RefundState.DONE], "done"))
            finally:
                workers.stop()
                await working
        booking = await ledger.booking(held.booking_id)
        assert booking is not None
        assert booking.state is BookingState.REFUNDED


def test_mail_is_chosen_by_url(tmp_path: Path) -> None:
    assert isinstance(open_mail(str(tmp_path)), FolderChannel)
    for url in ("smtp://a:b%40c@mail.example.org?from=t@example.org", "smtps://mail.example.org"):
        assert isinstance(open_mail(url), SmtpChannel)
    keys = MessageSettings(aws_key_id="AKIA", aws_secret="s")
    assert isinstance(open_mail("ses:eu-west-1?from=t@example.org", keys), SesChannel)
    with pytest.raises(ConfigError, match="aws_key_id"):
        open_mail("ses:eu-west-1?from=t@example.org")
    for bad in ("smtp://", "ftp://mail.example.org", "ses:", "ses:eu-west-1", "ses:eu/west?from=a@b.org"):
        with pytest.raises(ConfigError):
            open_mail(bad)


async def test_channels_are_those_there_are_settings_for(tmp_path: Path) -> None:
    """B15: what is not configured is not used; secrets do not show."""
    ledger, outgoing, clock = await open_ledger(sqlite_url(tmp_path)), SafeHttpClient(), ManualClock()

    def names(**env: str) -> list[str]:
        given = {f"FRONTROW_MESSAGES_{name.upper()}": value for name, value in env.items()}
        settings = load(MessageSettings, "messages", env=given)
        assert "sesame" not in repr(settings)
        sms = open_sms(settings, "https://tickets.example.org")
        book, limits = ledger.messages, open_sms_limits(settings, "memory://", clock)
        found = open_channels(str(tmp_path), settings, book, outgoing, clock, sms=sms, limits=limits)
        return [one.name for one in found]

    key = base64.urlsafe_b64encode(b"\x01" * 32).decode().rstrip("=")
    assert names() == ["email", "in_app"]
    assert names(sms_url="https://sms.example.org", sms_key="sesame") == ["email", "in_app", "sms"]
    assert names(vapid_key=key, vapid_contact="mailto:o@example.org") == ["email", "in_app", "push"]
    fcm = tmp_path / "fcm.json"
    fcm.write_bytes(msgspec.json.encode(service_account("https://oauth2.example")))
    assert names(fcm_file=str(fcm)) == ["email", "in_app", "push"]
    assert names(sms_url="twilio:AC1?from=+15005550006", sms_key="sesame") == ["email", "in_app", "sms"]
    assert names(sms_url="python:tests.boxoffice.messages.own_sms:open_provider") == ["email", "in_app", "sms"]
    fcm.with_suffix(".txt").write_text("{}")
    for wrong in (
        {"vapid_key": key},
        {"fcm_file": str(tmp_path / "none.json")},
        {"fcm_file": str(fcm.with_suffix(".txt"))},
        {"sms_url": "twilio:AC1?from=+15005550006"},  # without a token
        {"sms_url": "twilio:AC1", "sms_key": "sesame"},  # without a sender
        {"sms_url": "ftp://sms.example.org"},
        {"sms_url": "python:tests.boxoffice.messages.own_sms:nothing"},
        {"sms_url": "python:tests.boxoffice.messages.own_sms:NOW"},
        {"sms_url": "python:no_such_module:open_provider"},
        {"sms_per_number": "many"},
        {"sms_countries": "43"},
    ):
        with pytest.raises(ConfigError) as refused:
            names(**wrong)
        assert "sesame" not in str(refused.value)
    await ledger.aclose()
    await outgoing.aclose()
