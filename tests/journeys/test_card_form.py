"""J3, J4, J5: a fan pays on Stripe's own form, which the browser confirms without our server (B6, B7, B8, B9, F2, F4).

The form is a stand-in for Stripe.js whose confirm really calls localstripe (tests/support/stripe_js.py). In each
journey the provider's book and the mails are read.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from frontrow.boxoffice.checkout.checkout import Checkout
from frontrow.boxoffice.pricing.model.sale_options import AddOn, Discount
from tests.journeys.conftest import Visitor
from tests.journeys.stack import Stack
from tests.journeys.steps import come_to_checkout, fill_buyer, hold_seats
from tests.support.eventually import eventually
from tests.support.localstripe import LocalStripe
from tests.support.stripe_js import (
    ASKS_BANK,
    DECLINED,
    GOOD,
    MISTYPED,
    bring_stripe_js,
    have_a_wallet,
    leave_after_paying,
    pay_on_stripes_form,
    wait_until_taken,
)

ONE_MORE = "You can try 1 more time. After that the seats go back on sale."
CHOICES = {"add_ons": (AddOn("parking", "Parking", 800, 10, 4),), "discounts": (Discount("GIFT", 10_000),)}


@pytest.fixture(scope="module")
def localstripe() -> Iterator[LocalStripe]:
    with LocalStripe() as running:
        yield running


@pytest.fixture(scope="module")
def stack_options(localstripe: LocalStripe) -> dict[str, Any]:
    return {"stripe": localstripe}


@pytest.fixture(autouse=True)
def hear_stripe(stack: Stack) -> None:
    """Webhooks come unless a journey loses them; the provider is there."""
    assert stack.stripe is not None
    stack.stripe.come_back()
    stack.stripe.send_webhooks_to(f"{stack.url}/v1/webhooks/stripe")


def come(visitor: Visitor, stack: Stack, **options: Any) -> Page:
    assert stack.stripe is not None
    page = visitor(**options)
    bring_stripe_js(page.context, stack.stripe)
    return page


def at_form(page: Page, stack: Stack, name: str, email: str = "ada@example.org") -> str:
    """A fan with one seat, in front of Stripe's form; the booking's id."""
    booking_id = come_to_checkout(page, stack, name)
    page.locator("#stripe-number").wait_for()
    if page.locator("#email").count():
        fill_buyer(page, "Ada Lovelace", email)
    return booking_id


def lose_webhooks(stack: Stack) -> None:
    assert stack.stripe is not None
    stack.stripe.send_no_webhooks()


def state_of(stack: Stack, booking_id: str) -> str:
    async def read(platform: Any) -> str:
        return str((await platform.ledger.booking(booking_id)).state)

    return str(stack.call(read))


def until_state(stack: Stack, booking_id: str, state: str) -> None:
    async def wait(platform: Any) -> None:
        await eventually(lambda: platform.ledger.booking(booking_id), until=lambda booking: booking.state == state)

    stack.call(wait)


def until_nothing_is_authorised(stack: Stack, booking_id: str) -> None:
    async def wait(platform: Any) -> None:
        async def states() -> set[str]:
            book = await platform.box_office.provider.page(0)
            return {one.state for one in book if one.booking_id == booking_id}

        await eventually(states, until=lambda found: found == {"void"})

    stack.call(wait)


def sold_once(stack: Stack, booking_id: str, email: str = "ada@example.org") -> None:
    """Captured exactly once, nothing left authorised, one mail with the tickets."""
    assert state_of(stack, booking_id) == "confirmed"
    assert stack.paid(booking_id) == 50_00
    assert stack.authorised(booking_id) == 0
    assert sum(one.captured_minor > 0 for one in stack.book() if one.booking_id == booking_id) == 1
    mail = stack.mailbox.wait_for(email, "")
    assert any(name.endswith(".pdf") for name in mail.attachments())
    assert len(stack.mailbox.mails(email)) == 1


@pytest.mark.parametrize("told_by", ["return", "webhook", "nobody"])
def test_a_guest_pays_on_stripes_form(stack: Stack, visitor: Visitor, told_by: str) -> None:
    """J3: the fan comes back and no webhook comes; the webhook comes and the fan does not; neither does."""
    name, email = f"Told by {told_by}", f"{told_by}@example.org"
    stack.put_on_sale(name)
    ada = come(visitor, stack)
    console: list[str] = []
    ada.on("console", lambda message: console.append(message.text) if message.type == "error" else None)
    booking_id = at_form(ada, stack, name, email)
    if told_by != "webhook":
        lose_webhooks(stack)
    if told_by != "return":
        leave_after_paying(ada)
    pay_on_stripes_form(ada)
    if told_by == "return":
        ada.wait_for_url("**/bookings/**")
        expect(ada.locator(".ticket")).to_have_count(1)
    else:
        wait_until_taken(ada)
        if told_by == "nobody":
            stack.let_pass(16)  # the next look is at most 15 s away
        until_state(stack, booking_id, "confirmed")
    sold_once(stack, booking_id, email)
    refused = [text for text in console if "the server responded with a status of" not in text]
    assert refused == [], "the page's policy allows what Stripe's form needs"


def test_an_address_is_missing_or_mistyped_before_stripe_is_asked(stack: Stack, visitor: Visitor) -> None:
    stack.put_on_sale("No address")
    ada = come(visitor, stack)
    at_form(ada, stack, "No address", "none@example.org")
    for typed, said in (
        (" ", "Please enter an email address."),
        ("nobody", "This does not look like an email address."),
    ):
        ada.locator("#email").fill(typed)
        pay_on_stripes_form(ada, GOOD)
        expect(ada.locator("#stripe-err")).to_have_text(said)
        expect(ada.locator("#email")).to_be_focused()


def test_mistyped_then_declined_then_paid_where_two_cards_may_be_tried(stack: Stack, visitor: Visitor) -> None:
    """J4: what was mistyped does not count; after a decline the page says how often another card can be tried."""
    stack.put_on_sale("Two tries", card_tries=2)
    ada = come(visitor, stack)
    booking_id = at_form(ada, stack, "Two tries", "two@example.org")
    expect(ada.get_by_text("back on sale")).to_have_count(0)
    pay_on_stripes_form(ada, "42")
    expect(ada.locator("#stripe-err")).to_have_text("Your card number is incomplete.")
    pay_on_stripes_form(ada, MISTYPED)
    expect(ada.locator("#stripe-err")).to_have_text("Your card's security code is incorrect.")
    pay_on_stripes_form(ada, DECLINED)
    expect(ada.locator("#stripe-err")).to_have_text(f"Your card was declined. {ONE_MORE}")
    ada.reload()
    expect(ada.get_by_text("Your bank declined this card.")).to_contain_text(ONE_MORE)
    pay_on_stripes_form(ada, GOOD)
    ada.wait_for_url("**/bookings/**")
    sold_once(stack, booking_id, "two@example.org")


@pytest.mark.parametrize("told_by", ["page", "webhook", "both"])
def test_three_declined_cards_free_the_seat_which_can_be_held_again(
    stack: Stack, visitor: Visitor, told_by: str
) -> None:
    """J4, B9: three tries are the default, whoever tells of the declines; the same seat is paid for in the end."""
    name, email = f"Three tries, told by {told_by}", f"three-{told_by}@example.org"
    stack.put_on_sale(name, seats=1)
    ada = come(visitor, stack)
    first = at_form(ada, stack, name, email)
    if told_by == "page":
        lose_webhooks(stack)
    for left in ("2 more times", "1 more time"):
        pay_on_stripes_form(ada, DECLINED)
        expect(ada.locator("#stripe-err")).to_contain_text(left)
    if told_by == "webhook":
        ada.route("**/look", lambda route: route.abort())
    pay_on_stripes_form(ada, DECLINED)
    if told_by == "webhook":
        expect(ada.locator("#stripe-err")).to_have_text("Your card was declined.")
        until_state(stack, first, "cancelled")
        ada.reload()
    expect(ada.get_by_role("heading", name="Your card was declined")).to_be_visible()
    until_nothing_is_authorised(stack, first)
    ada.get_by_role("button", name="Hold the same seats again").click()
    ada.wait_for_url(lambda url: "/checkout/" in url and first not in url)
    second = ada.url.rpartition("/")[2]
    pay_on_stripes_form(ada)
    ada.wait_for_url("**/bookings/**")
    assert (stack.paid(first), stack.paid(second), stack.authorised(second)) == (0, 50_00, 0)
    assert state_of(stack, second) == "confirmed"


def test_a_card_in_stripes_form_outlives_changes_of_the_price(stack: Stack, visitor: Visitor) -> None:
    """Issue 26: each price has its own payment at Stripe, and the card that was typed pays the last one."""
    stack.put_on_sale("Extras", **CHOICES)
    ada = come(visitor, stack)
    booking_id = at_form(ada, stack, "Extras", "extras@example.org")
    ada.locator("#stripe-number").fill(GOOD)
    for count, price in (("2", "Pay €66"), ("1", "Pay €58")):
        ada.get_by_label("Parking").fill(count)
        ada.locator("#stripe-number").focus()
        expect(ada.locator("#go")).to_have_text(price)
    ada.get_by_label("Parking").fill("0")
    code = ada.get_by_label("Discount code")
    code.fill("gift")
    code.press("Enter")
    expect(ada.locator("#stripe-number")).to_be_hidden()
    code.fill("")
    ada.get_by_label("Parking").fill("1")
    code.press("Enter")
    expect(ada.locator("#go")).to_have_text("Pay €58")
    expect(ada.locator("#stripe-number")).to_have_value(GOOD)
    expect(ada.locator("#email")).to_have_value("extras@example.org")
    ada.locator("#go").click()
    ada.wait_for_url("**/bookings/**")
    assert stack.paid(booking_id) == 58_00
    assert stack.authorised(booking_id) == 0


@pytest.mark.parametrize("told_by", ["page", "webhook"])
def test_a_declined_card_frees_the_seat_for_the_next_at_once(stack: Stack, visitor: Visitor, told_by: str) -> None:
    """J4, B9: one try, for hot sales: the last seat is somebody else's a moment later."""
    name = f"One try, told by {told_by}"
    stack.put_on_sale(name, seats=1, card_tries=1)
    ada = come(visitor, stack)
    booking_id = at_form(ada, stack, name, f"no-{told_by}@example.org")
    if told_by == "page":
        lose_webhooks(stack)
    else:
        ada.route("**/look", lambda route: route.abort())
    pay_on_stripes_form(ada, DECLINED)
    if told_by == "page":
        expect(ada.get_by_role("heading", name="Your card was declined")).to_be_visible()
    else:
        expect(ada.locator("#stripe-err")).to_have_text("Your card was declined.")
    until_state(stack, booking_id, "cancelled")
    until_nothing_is_authorised(stack, booking_id)
    assert stack.paid(booking_id) == 0
    bob = come(visitor, stack)
    other = at_form(bob, stack, name, f"bob-{told_by}@example.org")
    pay_on_stripes_form(bob)
    bob.wait_for_url("**/bookings/**")
    sold_once(stack, other, f"bob-{told_by}@example.org")


def test_the_bank_asks_and_a_reload_does_not_lose_the_question(stack: Stack, visitor: Visitor) -> None:
    """J5: 3-D Secure, answered after the page was loaded again; then another fan says no and pays with another card."""
    stack.put_on_sale("Secure", card_tries=2)
    ada = come(visitor, stack)
    booking_id = at_form(ada, stack, "Secure", "secure@example.org")
    pay_on_stripes_form(ada, ASKS_BANK)
    ada.get_by_role("button", name="Bank: yes").wait_for()
    ada.reload()
    expect(ada.get_by_role("heading", name="Confirm with your bank")).to_be_visible()
    ada.get_by_role("button", name="Go to my bank").click()
    ada.get_by_role("button", name="Bank: yes").click()
    ada.wait_for_url("**/bookings/**")
    sold_once(stack, booking_id, "secure@example.org")

    bob = come(visitor, stack)
    other = at_form(bob, stack, "Secure", "bob-secure@example.org")
    pay_on_stripes_form(bob, ASKS_BANK)
    bob.get_by_role("button", name="Bank: no").click()
    expect(bob.locator("#stripe-err")).to_contain_text("unable to authenticate")
    expect(bob.locator("#stripe-err")).to_contain_text(ONE_MORE)
    pay_on_stripes_form(bob, ASKS_BANK)
    bob.get_by_role("button", name="Bank: yes").wait_for()
    bob.reload()
    bob.get_by_role("button", name="Pay with another card").click()
    pay_on_stripes_form(bob, GOOD)
    bob.wait_for_url("**/bookings/**")
    sold_once(stack, other, "bob-secure@example.org")


def test_a_provider_that_is_away_for_a_while_loses_no_sale(stack: Stack, visitor: Visitor) -> None:
    """J5, B8: away when the page is opened, and away for five minutes when the fan comes back from paying: it was
    given up after 200 s."""
    assert stack.stripe is not None
    stack.put_on_sale("Away")
    ada = come(visitor, stack)
    stack.stripe.go_down()
    booking_id = come_to_checkout(ada, stack, "Away")
    expect(ada.get_by_role("heading", name="Your payment is taking longer")).to_be_visible()
    stack.stripe.come_back()
    stack.let_pass(10)  # the next try is 5 s away
    ada.locator("#stripe-number").wait_for()
    fill_buyer(ada, "Ada Lovelace", "away@example.org")
    lose_webhooks(stack)
    stack.stripe.go_down()
    pay_on_stripes_form(ada)
    expect(ada.get_by_role("heading", name="Your payment is taking longer")).to_be_visible()
    for _ in range(20):
        stack.let_pass(15)
        ada.wait_for_timeout(100)
    expect(ada.get_by_role("heading", name="Your payment is taking longer")).to_be_visible()
    stack.stripe.come_back()
    stack.let_pass(10)
    ada.wait_for_url("**/bookings/**")
    sold_once(stack, booking_id, "away@example.org")


def test_two_tabs_double_clicks_and_the_back_button_charge_once(stack: Stack, visitor: Visitor) -> None:
    """J4, B7."""
    stack.put_on_sale("Two tabs")
    ada = come(visitor, stack)
    booking_id = at_form(ada, stack, "Two tabs", "tabs@example.org")
    other = ada.context.new_page()
    other.goto(ada.url)
    other.locator("#stripe-number").fill(GOOD)
    fill_buyer(other, "Ada Lovelace", "tabs@example.org")
    ada.locator("#stripe-number").fill(GOOD)
    ada.locator("#go").dblclick()
    ada.wait_for_url("**/bookings/**")
    other.locator("#go").dispatch_event("click")  # "your visit is over" may stand before it by now
    other.wait_for_url("**/bookings/**")
    ada.go_back()
    expect(ada.locator("#pay")).to_have_count(0)
    ada.goto(f"{stack.url}/checkout/{booking_id}")
    ada.wait_for_url("**/bookings/**")
    sold_once(stack, booking_id, "tabs@example.org")


def test_seats_can_be_changed_after_the_form_was_opened(stack: Stack, visitor: Visitor) -> None:
    """The open payment is void at once; a second tab that still shows its form can pay nothing with it."""
    stack.put_on_sale("Change seats")
    ada = come(visitor, stack)
    first = at_form(ada, stack, "Change seats", "other@example.org")
    old = ada.context.new_page()
    old.goto(ada.url)
    old.locator("#stripe-number").fill(GOOD)
    ada.get_by_role("button", name="Release these seats and choose others").click()
    ada.wait_for_url("**/seats")
    until_nothing_is_authorised(stack, first)
    fill_buyer(old, "Ada Lovelace", "other@example.org")
    old.locator("#go").click()
    expect(old.get_by_role("heading", name="The seats are free again")).to_be_visible()
    second = hold_seats(ada)
    assert second != first
    pay_on_stripes_form(ada)
    ada.wait_for_url("**/bookings/**")
    assert stack.paid(first) == 0
    sold_once(stack, second, "other@example.org")


async def nothing_due(self: Checkout) -> int:
    return 0


def test_who_comes_back_from_the_bank_after_the_hold_ended_is_not_charged(stack: Stack, visitor: Visitor) -> None:
    """J5, F4: the authorisation is void, and page and mail say so.

    The last journey of this file: afterwards the shop's clock is too far from the browsers' to let anybody in.
    """
    stack.put_on_sale("Too late")
    ada = come(visitor, stack)
    booking_id = at_form(ada, stack, "Too late", "late@example.org")
    lose_webhooks(stack)
    pay_on_stripes_form(ada, ASKS_BANK)
    ada.get_by_role("button", name="Bank: yes").wait_for()
    with pytest.MonkeyPatch.context() as patch:  # the job does not void the payment before the bank has said yes
        patch.setattr(Checkout, "_start_due", nothing_due)
        stack.let_pass(700)
        ada.get_by_role("button", name="Bank: yes").click()
        expect(ada.get_by_role("heading", name="Your time ran out")).to_be_visible()
    expect(ada.get_by_text("if your bank reserved an amount, it is released automatically")).to_be_visible()
    until_nothing_is_authorised(stack, booking_id)
    assert (stack.paid(booking_id), stack.authorised(booking_id)) == (0, 0)
    assert stack.mailbox.wait_for("late@example.org", "").attachments() == {}


def test_on_a_phone_an_express_button_stands_first_and_pays_with_one_touch(stack: Stack, visitor: Visitor) -> None:
    """Issue 27: the wallet brings the address for the tickets, and the card form need not be filled in."""
    stack.put_on_sale("Express")
    page = come(visitor, stack)
    page.set_viewport_size({"width": 390, "height": 844})
    have_a_wallet(page.context)
    booking_id = come_to_checkout(page, stack, "Express")
    wallet = page.get_by_role("button", name="Wallet")
    expect(wallet).to_be_visible()
    top = "(one) => one.getBoundingClientRect().top"
    assert wallet.evaluate(top) < page.locator("#email").evaluate(top), "before the form"
    wallet.click()
    page.wait_for_url(f"**/bookings/{booking_id}")
    until_state(stack, booking_id, "confirmed")
    sold_once(stack, booking_id, "wallet@example.org")


def test_a_browser_without_a_wallet_shows_no_empty_place(stack: Stack, visitor: Visitor) -> None:
    stack.put_on_sale("No wallet")
    page = come(visitor, stack)
    at_form(page, stack, "No wallet")
    expect(page.locator("#express")).to_be_hidden()
