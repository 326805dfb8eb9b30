"""Bad keys, wrong currencies, amounts that nothing takes, accounts that are gone: one sentence, and nothing is lost."""

from pathlib import Path
from typing import Any

import pytest

from frontrow.boxoffice.adapters.payments.adyen import AdyenProvider
from frontrow.boxoffice.adapters.payments.adyen_access import AdyenAccess
from frontrow.boxoffice.adapters.payments.guarded_provider import GuardedProvider
from frontrow.boxoffice.adapters.payments.stripe import StripeProvider
from frontrow.boxoffice.checkout.checkout import Checkout, CheckoutState
from frontrow.boxoffice.holds.model.bookings import BookingState
from frontrow.boxoffice.holds.model.holds import NewHold, PlacedHold
from frontrow.boxoffice.payments.model.provider_intents import NewIntent, ProviderNotCalled, ProviderRefused
from frontrow.core.errors import InvalidInput
from tests.boxoffice.checkout.till import EVENT, ISSUER, Till, open_till
from tests.boxoffice.payments.adyen_server import HMAC_KEY, KEY, MERCHANT
from tests.boxoffice.payments.banks import SECRET, AdyenBank, Bank, StripeBank, Way, a_bank
from tests.boxoffice.shop import shop_event

STRIPE, ADYEN = Way("stripe", "pm_card_visa"), Way("adyen", "fan/visa")


def with_key(bank: Bank, till: Till, key: str) -> Any:
    """The same provider with another key."""
    if isinstance(bank, StripeBank):
        return StripeProvider(key, SECRET, api_base=bank.url)
    assert isinstance(bank, AdyenBank)
    access = AdyenAccess(bank.server.url, key, MERCHANT, HMAC_KEY)
    return AdyenProvider(access, till.ledger.provider_notes, till.clock)


async def hold_for(till: Till, amount_minor: int, currency: str) -> PlacedHold:
    now_us = till.clock()
    new = NewHold("bkg_" + "P" * 26, EVENT, "ada", (1,), now_us, now_us + 600_000_000, amount_minor, currency,
                  (amount_minor,))  # fmt: skip
    return await till.ledger.place_hold(new)


@pytest.mark.parametrize(
    ("way", "good", "says"),
    [
        (STRIPE, "sk_test_1", "Stripe refuses the secret key; check stripe.key"),
        (ADYEN, KEY, "Adyen refuses our API key for the merchant account FrontrowECOM"),
    ],
    ids=["stripe", "adyen"],
)
async def test_a_bad_key_keeps_the_seats_and_the_good_one_sells_them(
    way: Way, good: str, says: str, tmp_path: Path
) -> None:
    async with open_till(tmp_path) as till, a_bank(way, till.ledger, till.clock) as bank:
        await till.ledger.catalogue.put_event(shop_event(id=EVENT), till.clock())
        bad, mended = with_key(bank, till, "sk_test_bad"), with_key(bank, till, good)
        with pytest.raises(ProviderNotCalled, match=says):
            await bad.create(NewIntent("bkg_1", 1, 5000, "EUR", "evt_1", 7, (1,), "k1", method=way.method))
        hold = await till.hold()
        checkout = Checkout(till.ledger, GuardedProvider(bad, till.clock), till.clock, issuer=ISSUER)
        told = await checkout.pay(hold.booking_id, hold.fence, way.method)
        assert told.state is CheckoutState.RETRYING
        assert (await till.booking(hold.booking_id)).live(till.clock())
        assert bank.charges(hold.booking_id) == []
        till.clock.advance(5)
        again = Checkout(till.ledger, mended, till.clock, issuer=ISSUER)
        for _ in range(2):
            await again.work()
        assert (await till.booking(hold.booking_id)).state is BookingState.CONFIRMED
        assert len(bank.charges(hold.booking_id)) == 1
        for one in (bad, mended):
            await one.aclose()


@pytest.mark.parametrize(
    ("way", "method", "amount_minor", "currency", "says"),
    [
        (STRIPE, "twint", 5000, "EUR", "TWINT cannot be used"),
        (STRIPE, "twint", 500_001, "CHF", "TWINT cannot be used"),
        (STRIPE, "ideal", 5000, "CHF", "iDEAL . Wero cannot be used"),
        (ADYEN, "ideal", 5000, "CHF", "iDEAL . Wero cannot be used"),
        (ADYEN, "swish", 5000, "EUR", "Swish cannot be used"),
    ],
)
async def test_a_price_that_a_method_cannot_take_costs_nobody_the_seats(
    way: Way, method: str, amount_minor: int, currency: str, says: str, tmp_path: Path
) -> None:
    async with open_till(tmp_path) as till, a_bank(way, till.ledger, till.clock) as bank:
        event = shop_event(id=EVENT, currency=currency)
        await till.ledger.catalogue.put_event(event, till.clock())
        hold = await hold_for(till, amount_minor, currency)
        checkout = Checkout(till.ledger, bank.provider, till.clock, issuer=ISSUER)
        booking = await till.booking(hold.booking_id)
        assert method not in {one.id for one in await checkout.offered(booking, event)}
        with pytest.raises(InvalidInput, match=says):
            await checkout.pay(hold.booking_id, hold.fence, method, event=event)
        assert (await till.booking(hold.booking_id)).state is BookingState.HELD
        assert bank.charges(hold.booking_id) == []


@pytest.mark.parametrize(
    ("way", "amount_minor", "currency", "says"),
    [
        (STRIPE, 49, "EUR", "Card cannot take 49 EUR at Stripe"),
        (ADYEN, 5000, "CLP", "Adyen counts CLP in other units than we do"),
    ],
)
async def test_a_price_that_a_provider_cannot_take_at_all_ends_the_booking_with_the_reason_and_no_charge(
    way: Way, amount_minor: int, currency: str, says: str, tmp_path: Path
) -> None:
    async with open_till(tmp_path) as till, a_bank(way, till.ledger, till.clock) as bank:
        await till.ledger.catalogue.put_event(shop_event(id=EVENT, currency=currency), till.clock())
        new = NewIntent("bkg_1", 1, amount_minor, currency, "evt_1", 7, (1,), "k1")
        with pytest.raises(ProviderRefused, match=says):
            await bank.provider.create(new)
        hold = await hold_for(till, amount_minor, currency)
        checkout = Checkout(till.ledger, bank.provider, till.clock, issuer=ISSUER)
        await checkout.pay(hold.booking_id, hold.fence, way.method)
        assert (await till.booking(hold.booking_id)).state is BookingState.CANCELLED
        assert (await till.driver_payment(hold.booking_id)).reason in ("amount_not_supported", "unsupported_currency")
        assert bank.charges(hold.booking_id) == []
        assert (await till.hold(1)).fence > hold.fence, "the seats are free again"


async def test_an_account_that_was_taken_away_keeps_the_seats_of_who_is_paying(tmp_path: Path) -> None:
    async with open_till(tmp_path) as till, a_bank(ADYEN, till.ledger, till.clock) as bank:
        assert isinstance(bank, AdyenBank)
        await till.ledger.catalogue.put_event(shop_event(id=EVENT), till.clock())
        bank.server.revoked.add(MERCHANT)
        hold = await till.hold()
        checkout = Checkout(till.ledger, GuardedProvider(bank.provider, till.clock), till.clock, issuer=ISSUER)
        assert (await checkout.pay(hold.booking_id, hold.fence, "fan/visa")).state is CheckoutState.RETRYING
        assert (await till.booking(hold.booking_id)).live(till.clock())
        bank.server.revoked.clear()
        till.clock.advance(5)
        await checkout.work()
        assert (await till.booking(hold.booking_id)).state is BookingState.CONFIRMED
        assert len(bank.charges(hold.booking_id)) == 1
