"""The reconciler makes the ledger and the provider agree about every authorisation, capture and refund.

It reads the provider's objects page by page and finds each one in the ledger, then reads the ledger's payments that the
pages did not contain. Unfinished payments are driven on. An object that no payment uses is voided, or refunded if it
was captured. A refund made by hand at the provider, or one that failed there later, is saved in the ledger. What it
cannot decide is reported to a person.

A full pass (`run`) reads every payment at the provider. The passes of a running server (`keep`) read an old payment
only when its age has doubled: at 16 days, 32, 64 and so on. Webhooks report changes in between at once.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Final

import msgspec

from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.payments.model.disputes import DisputeState, is_disputed, sum_by_state
from frontrow.boxoffice.payments.model.payment_saga import is_late_money, state_from_intent
from frontrow.boxoffice.payments.model.payments import ENDED, Payment, PaymentState
from frontrow.boxoffice.payments.model.provider_intents import (
    Intent,
    IntentState,
    ProviderNotCalled,
    ProviderRefused,
    ProviderUnknown,
)
from frontrow.boxoffice.payments.model.retry_schedule import WORK_CLAIM_S
from frontrow.boxoffice.payments.open_providers import OpenProviders, ServersOwn, open_together
from frontrow.boxoffice.payments.payment_driver import PaymentDriver
from frontrow.boxoffice.payments.payment_records import PaymentRecords
from frontrow.boxoffice.payments.ports import Payee, Payees, PaymentLedger, PaymentProvider
from frontrow.boxoffice.refunds.model.refunds import Refund, RefundState
from frontrow.boxoffice.refunds.payouts import RefundPayouts
from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import FrontrowError
from frontrow.core.failures import note_failure, note_success
from frontrow.shared.log_lines import RECONCILIATION_DIFFERENCE, RECONCILIATION_PROBLEM

PAGE: Final = 100
EVERY_S: Final = 300.0
MAX_PAGES: Final = 100_000
DAY_S: Final = 86_400
WINDOW_S: Final = 8 * DAY_S  # authorisations are valid for about 7 days
OLD_AGES_S: Final = tuple(2**n * WINDOW_S for n in range(1, 7))  # 16 days to 512: later nothing can be given back
FIRST_LOOK_BACK_S: Final = DAY_S  # how far back a starting process reads, in case no reconciler ran
MARGIN_US: Final = 3600 * US_PER_S
YOUNG_US: Final = 2 * WORK_CLAIM_S * US_PER_S  # younger objects may still be saved by the driver that created them
MAX_PROBLEMS: Final = 1_000
MAX_DISPUTES: Final = 10_000


class AccountSums(msgspec.Struct):
    """The money of one account on both sides, in minor units by currency."""

    ledger_minor: dict[str, int] = {}
    provider_minor: dict[str, int] = {}


class ReconciliationReport(msgspec.Struct):
    """What was compared, what was corrected, what needs a person, and the money on both sides in minor units."""

    objects: int = 0
    payments: int = 0
    mended: int = 0
    problems: list[str] = []
    ledger_minor: dict[str, int] = {}  # by currency: captured less refunded
    provider_minor: dict[str, int] = {}
    disputed_minor: dict[str, int] = {}  # by currency: with the banks of fans until it is decided
    lost_minor: dict[str, int] = {}  # by currency: taken back for good; captured, and not ours any more
    accounts: dict[str, AccountSums] = {}  # by provider and account: `stripe`, `stripe acct_1`

    @property
    def wrong_accounts(self) -> list[str]:
        """The accounts that hold more or less than the ledger says."""
        return sorted(name for name, one in self.accounts.items() if _differs(one))

    @property
    def difference_minor(self) -> dict[str, int]:
        currencies = self.ledger_minor.keys() | self.provider_minor.keys()
        both = {c: self.provider_minor.get(c, 0) - self.ledger_minor.get(c, 0) for c in sorted(currencies)}
        return {currency: minor for currency, minor in both.items() if minor}


class Reconciler:
    """Compares and corrects. Safe to run at any time, beside everything else."""

    def __init__(
        self,
        ledger: PaymentLedger,
        provider: PaymentProvider | OpenProviders,
        clock: Clock,
        driver: PaymentDriver,
        *,
        payees: Payees | None = None,
    ) -> None:
        self._ledger, self._providers, self._clock, self._driver = ledger, open_together(provider), clock, driver
        self._payees = payees or ServersOwn()
        self._records = PaymentRecords(ledger, clock)
        self._payouts = RefundPayouts(ledger, self._providers, clock)
        self._passed_us = 0  # when the last pass of `keep` began
        self.last: ReconciliationReport | None = None
        self._told: dict[str, int] = {}  # currency -> the difference that was logged last
        self.failures = 0

    async def run(self, window_s: int = WINDOW_S) -> ReconciliationReport:
        """One pass over every object younger than the window and every payment."""
        return await self._pass(self._clock() - window_s * US_PER_S, self._ledger.payments.all_payments())

    async def run_due(self) -> ReconciliationReport:
        """One pass over what is young, not finished, or of an age at which it is read again."""
        now_us = self._clock()
        since_us = now_us - WINDOW_S * US_PER_S
        passed_us = self._passed_us or now_us - FIRST_LOOK_BACK_S * US_PER_S
        young = (since_us - MARGIN_US, now_us + MARGIN_US)  # a payment is older than its object; clocks differ
        spans = [young, *((passed_us - age_s * US_PER_S, now_us - age_s * US_PER_S) for age_s in OLD_AGES_S)]
        report = await self._pass(since_us, self._ledger.payments.payments_between(spans))
        self._passed_us = now_us
        return report

    async def _pass(self, since_us: int, payments: AsyncIterator[Payment]) -> ReconciliationReport:
        """Compare the provider's objects since then, and these payments."""
        report = ReconciliationReport()
        intents: dict[tuple[Payee, str], Intent] = {}
        own = [Payee(provider.name) for provider in self._providers.all()]
        for payee in (*own, *await self._payees.accounts()):
            async for intent in self._objects(payee, since_us, report):
                if intent.booking_id:
                    intents[payee, intent.ref] = intent
                    with self._note_bugs(report, intent.ref, intent.booking_id):
                        intents[payee, intent.ref] = await self._compare(payee, intent, report)
                    report.objects += 1
        async for payment in payments:
            if self._providers.find(payment.provider) is not None:
                report.payments += 1
                with self._note_bugs(report, f"payment {payment.id}", payment.booking_id):
                    await self._check(payment, intents, report)
        await self._add_disputes(report)
        for (payee, _), intent in intents.items():
            minor = intent.captured_minor - intent.refunded_minor
            _add(report.provider_minor, intent.currency, minor)
            _add(_sums(report, payee).provider_minor, intent.currency, minor)
        return report

    async def _add_disputes(self, report: ReconciliationReport) -> None:
        """What banks of fans have taken back, of all disputes."""
        found = await self._ledger.payments.disputes("", "", MAX_DISPUTES)
        if len(found) == MAX_DISPUTES:
            _add_problem(report, f"more than {MAX_DISPUTES} disputes: their sums are of the newest")
        report.disputed_minor = sum_by_state(found, DisputeState.OPEN)
        report.lost_minor = sum_by_state(found, DisputeState.LOST)

    @contextlib.contextmanager
    def _note_bugs(self, report: ReconciliationReport, what: str, booking_id: str) -> Iterator[None]:
        """Log an unexpected error: an object that cannot be compared must not block the others."""
        try:
            yield
        except FrontrowError:  # the provider or the ledger is unavailable: the pass ends
            raise
        except Exception as error:
            note_failure(error, booking_id=booking_id)
            _add_problem(report, f"{what}: could not be compared ({type(error).__name__}); see the log")

    async def keep(self, every_s: float = EVERY_S) -> None:
        """Run repeatedly until cancelled. `last` is the newest report."""
        while True:  # until cancelled
            try:
                before, self.last = self.last, await self.run_due()
                self._tell(before, self.last)
                note_success()
            except FrontrowError as error:  # the provider or the ledger is unavailable: the next turn tries again
                self.failures += 1
                note_failure(error)
            await asyncio.sleep(every_s)

    def _tell(self, before: ReconciliationReport | None, report: ReconciliationReport) -> None:
        """Log new problems, and a difference that two passes saw: one alone may be a payment in progress."""
        known = before or ReconciliationReport()
        for problem in sorted(set(report.problems) - set(known.problems)):
            RECONCILIATION_PROBLEM(problem=problem)
        for currency, minor in report.difference_minor.items():
            if known.difference_minor.get(currency) == minor and self._told.get(currency) != minor:
                sums = report.ledger_minor.get(currency, 0), report.provider_minor.get(currency, 0)
                RECONCILIATION_DIFFERENCE(currency=currency, ledger_minor=sums[0], provider_minor=sums[1])
                self._told[currency] = minor

    async def _objects(self, payee: Payee, since_us: int, report: ReconciliationReport) -> AsyncIterator[Intent]:
        provider, after = self._at(payee), ""
        for _ in range(MAX_PAGES):
            try:
                page = await provider.page(since_us, after, PAGE)
            except (ProviderRefused, ProviderNotCalled) as error:  # such as an account that was closed
                if isinstance(error, ProviderNotCalled) and not payee.account:
                    raise  # all of the provider is away; of an organiser's account, the others are compared
                _add_problem(report, f"{_name_of(payee)}: not readable: {error.message}")
                return
            for intent in page:
                yield intent
            if len(page) < PAGE:
                return
            after = page[-1].ref

    def _at(self, payee: Payee) -> PaymentProvider:
        return self._providers.named(payee.provider, payee.account)

    async def _compare(self, payee: Payee, intent: Intent, report: ReconciliationReport) -> Intent:
        """Make one object and its payment agree. Returns the object as it is afterwards."""
        payment = await self._ledger.payments.payment_by_ref(payee.provider, intent.ref)
        if payment is None:
            return await self._handle_orphan(payee, intent, report)
        if payment.account != payee.account:
            _add_problem(
                report, f"{intent.ref}: lies on {_name_of(payee)}, the ledger says {payment.account or 'ours'}"
            )
            return intent
        mended = report.mended
        if state_from_intent(payment, intent) is not None or (
            payment.retry_at_us and payment.retry_at_us <= self._clock()
        ):
            driven = await self._driver.drive_any(payment)
            report.mended += driven.state is not payment.state or driven.declines != payment.declines
        elif is_late_money(payment, intent):
            await self._driver.take_late_money(payment, intent)
            report.mended += 1
        elif payment.state in ENDED and intent.state in (IntentState.AUTHORISED, IntentState.ACTION):
            await self._drop(payee, intent, report)
        elif payment.state is PaymentState.CAPTURED and intent.state is not IntentState.CAPTURED:
            _add_problem(report, f"{intent.ref}: the ledger says captured, the provider says {intent.state}")
        report.mended += await self._payouts.compare(payment, intent)
        if payment.state not in ENDED:  # what was sent back of a payment that was ended is in no refund
            await self._save_foreign_refunds(intent, payment, report)
        is_settled = (
            payment.state is PaymentState.CAPTURED and intent.state is IntentState.CAPTURED and not payment.retry_at_us
        )
        if is_settled and report.mended == mended:
            return intent  # nobody changed it: no need to read it again
        return await self._at(payee).read(intent.ref)

    async def _handle_orphan(self, payee: Payee, intent: Intent, report: ReconciliationReport) -> Intent:
        """Handle an object of ours that no payment names: the answer was lost, and another object replaced it."""
        booking = await self._ledger.booking(intent.booking_id)
        payments = await self._ledger.payments.payments_of(intent.booking_id)
        own = next((p for p in payments if p.attempt == intent.attempt), None)
        waiting = own is not None and own.state is PaymentState.CREATING
        if waiting or self._clock() - intent.created_at_us < YOUNG_US or intent.state is IntentState.VOID:
            return intent
        if booking is None:
            _add_problem(report, f"{intent.ref}: names booking {intent.booking_id}, which this ledger does not have")
            return intent
        return await self._drop(payee, intent, report)

    async def _drop(self, payee: Payee, intent: Intent, report: ReconciliationReport) -> Intent:
        """Void the object, or refund all of it if it was captured."""
        left = intent.captured_minor - intent.refunded_minor
        moment = self._clock()  # a new key each time: a stored 500 must not stop us, and the object was just read
        try:
            if intent.state is IntentState.CAPTURED:
                if left and is_disputed(await self._ledger.payments.disputes_of_ref(payee.provider, intent.ref)):
                    _add_problem(report, f"{intent.ref}: is disputed, so it is not refunded")
                elif left:
                    key = f"{intent.ref}:refund:{moment}"
                    await self._at(payee).refund(intent.ref, left, f"rfd_{intent.ref}", key)
                    report.mended += 1
            else:
                await self._at(payee).void(intent.ref, f"{intent.ref}:void:{moment}")
                report.mended += 1
        except (ProviderRefused, ProviderUnknown, ProviderNotCalled) as error:
            _add_problem(report, f"{intent.ref}: cannot be dropped now: {error.message}")
        return await self._at(payee).read(intent.ref)

    async def _save_foreign_refunds(self, intent: Intent, payment: Payment, report: ReconciliationReport) -> None:
        """Save refunds that were made by hand at the provider."""
        refunds = {refund.id: refund for refund in await self._ledger.payments.refunds_of(payment.booking_id)}
        refs = {refund.ref for refund in refunds.values()}
        known = {*refunds, f"rfd_{intent.ref}"}  # the latter: of money that came for a payment that was ended here
        foreign = [r for r in intent.refunds if not r.failed and r.ref not in refs and r.refund_id not in known]
        if not foreign:
            return
        booking = await self._records.load_booking(payment.booking_id)
        total = sum(refund.amount_minor for refund in foreign)
        if booking.state is not BookingState.CONFIRMED or total != booking.amount_minor:
            _add_problem(report, f"{intent.ref}: {total} were refunded at the provider without naming seats")
            return
        now_us = self._clock()
        number = max([refund.number for refund in refunds.values()], default=0) + 1
        written = Refund(
            f"rfd_{booking.id.removeprefix('bkg_')}_{number}",
            booking.id,
            payment.id,
            number,
            total,
            booking.currency,
            booking.seats,
            state=RefundState.DONE,
            ref=foreign[0].ref,
            reason="at_provider",
            created_at_us=now_us,
            changed_at_us=now_us,
        )
        await self._ledger.payments.ask_refund(written, fence=booking.fence, now_us=now_us)
        report.mended += 1

    async def _check(
        self, payment: Payment, intents: dict[tuple[Payee, str], Intent], report: ReconciliationReport
    ) -> None:
        """Compare one payment of the ledger: what was captured and what was refunded."""
        refunds = await self._ledger.payments.refunds_of(payment.booking_id)
        at_provider = (RefundState.DONE, RefundState.PENDING)
        given = sum(r.amount_minor for r in refunds if r.state in at_provider and r.payment_id == payment.id)
        taken = payment.amount_minor if payment.state is PaymentState.CAPTURED else 0
        payee = Payee(payment.provider, payment.account)
        if payment.ref and (payee, payment.ref) not in intents:
            if payment.retry_at_us == 0 and taken == given:
                return  # older than the window, and fully refunded
            try:
                found = await self._at(payee).read(payment.ref)
                intents[payee, payment.ref] = await self._compare(payee, found, report)
            except ProviderRefused:
                _add_problem(report, f"payment {payment.id}: the provider does not know {payment.ref}")
            except ProviderNotCalled as error:
                if not payment.account:
                    raise
                _add_problem(report, f"payment {payment.id}: {payment.account} is not readable: {error.message}")
        if taken - given:
            _add(report.ledger_minor, payment.currency, taken - given)
            payee = Payee(payment.provider, payment.account)
            _add(_sums(report, payee).ledger_minor, payment.currency, taken - given)
        for refund in refunds:
            if refund.state is RefundState.FAILED and refund.payment_id == payment.id:
                _add_problem(report, f"refund {refund.id}: failed at the provider ({refund.failure}); try it again")
        if payment.state is PaymentState.LAPSED and not payment.retry_at_us:
            await self._check_unpaid(payment, report)

    async def _check_unpaid(self, payment: Payment, report: ReconciliationReport) -> None:
        """Report a sale that was never paid while its holder is inside: it cannot be cancelled."""
        booking = await self._records.load_booking(payment.booking_id)
        latest = await self._records.latest_payment(payment.booking_id)
        if booking.state is BookingState.CONFIRMED and latest is not None and latest.id == payment.id:
            booking, _ = await self._driver.drive(booking, payment)  # the admission may have been undone meanwhile
        is_owed = booking.state is BookingState.CONFIRMED and booking.amount_minor > 0
        if is_owed and latest is not None and latest.id == payment.id:
            _add_problem(report, f"booking {booking.id}: was let in and never paid")


def _add(sums: dict[str, int], currency: str, minor: int) -> None:
    sums[currency] = sums.get(currency, 0) + minor


def _name_of(payee: Payee) -> str:
    return f"{payee.provider} {payee.account}".strip()


def _sums(report: ReconciliationReport, payee: Payee) -> AccountSums:
    return report.accounts.setdefault(_name_of(payee), AccountSums())


def _differs(one: AccountSums) -> bool:
    currencies = one.ledger_minor.keys() | one.provider_minor.keys()
    return any(one.ledger_minor.get(each, 0) != one.provider_minor.get(each, 0) for each in currencies)


def _add_problem(report: ReconciliationReport, problem: str) -> None:
    if len(report.problems) < MAX_PROBLEMS:
        report.problems.append(problem)
