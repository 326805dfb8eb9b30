"""J9, J10 and the organiser's side of them: tickets go back, an event is cancelled, and everybody has their money.

The embedded shop takes its money from the simulated provider, the clustered one from localstripe.
"""

import contextlib
import csv
import io
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from frontrow.app.wiring import Platform
from frontrow.boxoffice.messages.model.messages import Contact
from frontrow.boxoffice.refunds.model.refund_policy import RefundPolicy
from tests.browser.staff import staff
from tests.browser.steps import click_seat, until
from tests.journeys.conftest import Visitor
from tests.journeys.stack import Stack
from tests.journeys.steps import buy, come_to_checkout, fill_buyer, fill_card
from tests.support.eventually import eventually_sync
from tests.support.localstripe import LocalStripe
from tests.support.stripe_js import bring_stripe_js, leave_after_paying, wait_until_taken

REFUND_FAILS_CARD = "4000 0000 0000 5126"  # the first refund fails at the bank, the next one is paid
WAIT_S = 120
POOL_ONLY = RefundPolicy(allowed=False)


@pytest.fixture(scope="module")
def stack_options(form: str) -> Iterator[dict[str, Any]]:
    if form == "embedded":
        yield {}
        return
    with LocalStripe() as running:
        yield {"stripe": running}


@pytest.fixture
def visitor(visitor: Visitor, stack: Stack) -> Visitor:
    """Everybody's browser finds Stripe's form, if the shop sells with Stripe."""

    def come(**options: Any) -> Page:
        page = visitor(**options)
        if stack.stripe is not None:
            bring_stripe_js(page.context, stack.stripe)
        return page

    return come


def until_paid(stack: Stack, booking_id: str, amount_minor: int) -> None:
    """Until the provider has taken this much for a booking, refunds deducted."""
    eventually_sync(lambda: stack.paid(booking_id), WAIT_S, until=lambda paid: paid == amount_minor, every_s=0.1)


def give_back(page: Page, stack: Stack, booking_id: str, count: int, how: str) -> None:
    """Tick tickets on the booking's page and press the button. Only what is paid for can be resold."""
    stack.paid(booking_id)
    page.goto(f"{stack.url}/bookings/{booking_id}")
    page.get_by_text("Return tickets", exact=True).click()
    for number in range(count):
        page.locator("details.give input[name=seat]").nth(number).check()
    page.get_by_role("button", name="See the refund").click()
    page.get_by_role("button", name=how).click()
    page.wait_for_url(f"**/bookings/{booking_id}")


def fill_form(page: Page, stack: Stack, name: str, email: str) -> str:
    """One seat, and everything filled in to pay for it; the booking's id."""
    booking_id = come_to_checkout(page, stack, name)
    fill_card(page, stack)
    fill_buyer(page, "Bob", email)
    return booking_id


def pay_unheard(page: Page, stack: Stack, name: str, email: str) -> str:
    """Stripe takes the card, and neither the fan's page nor a webhook tells our server; the booking's id."""
    assert stack.stripe is not None
    booking_id = fill_form(page, stack, name, email)
    stack.stripe.send_no_webhooks()
    leave_after_paying(page)
    page.locator("#go").click()
    wait_until_taken(page)
    stack.stripe.send_webhooks_to(f"{stack.url}/v1/webhooks/stripe")
    assert stack.authorised(booking_id) == 1
    return booking_id


def test_j9_a_returned_ticket_is_bought_by_somebody_else_and_paid_back(stack: Stack, visitor: Visitor) -> None:
    stack.put_on_sale("Pool Night", seats=2, refunds=POOL_ONLY)
    ada, bob = visitor(), visitor()
    first = buy(ada, stack, "Pool Night", "ada9@example.org", count=2)
    give_back(ada, stack, first, 1, "Offer for resale")
    expect(ada.get_by_text("Offered for resale. Refunded once it is sold.")).to_be_visible()
    stack.mailbox.wait_for("ada9@example.org", "You returned tickets for Pool Night")
    assert stack.paid(first) == 100_00, "paid back when it is sold, not before"

    second = buy(bob, stack, "Pool Night", "bob9@example.org")
    until_paid(stack, first, 50_00)  # Ada has her money for the seat
    assert stack.paid(second) == 50_00
    stack.mailbox.wait_for("ada9@example.org", "Your returned ticket for Pool Night is sold")
    ada.goto(f"{stack.url}/bookings/{first}")
    expect(ada.locator(".returned")).to_contain_text("Refunded on")
    expect(ada.locator(".ticket")).to_have_count(1)


def test_j9_a_refund_in_part_and_then_in_full(stack: Stack, visitor: Visitor) -> None:
    stack.put_on_sale("Second Thoughts", seats=6)
    ada = visitor()
    booking_id = buy(ada, stack, "Second Thoughts", "eve9@example.org", count=3)
    give_back(ada, stack, booking_id, 1, "Request a refund")
    until_paid(stack, booking_id, 100_00)  # one of three seats
    expect(ada.locator(".ticket")).to_have_count(2)
    give_back(ada, stack, booking_id, 2, "Request a refund")
    until_paid(stack, booking_id, 0)  # all of it
    part = stack.mailbox.wait_for("eve9@example.org", "Part of your booking for Second Thoughts is refunded")
    assert "Still valid: " in part.text
    assert "€50.00 goes back" in part.text
    rest = stack.mailbox.wait_for("eve9@example.org", "Your booking for Second Thoughts is refunded")
    assert "€100.00 goes back" in rest.text
    expect(ada.get_by_text("This booking has no valid tickets.")).to_be_visible()


def follow(page: Page, link: Locator, url: str) -> None:
    """Click until it has led there: while the cancellation goes on, the page also loads itself again."""
    for _ in range(10):
        link.click()
        with contextlib.suppress(PlaywrightTimeout):
            page.wait_for_url(url, timeout=10_000)
            return
    raise AssertionError(f"{link} does not lead to {url}")


def test_j10_an_event_is_cancelled_in_the_middle_of_everything(stack: Stack, visitor: Visitor) -> None:
    """A ticket that is kept, one in the pool that is offered to who waits, a refund that fails at the bank, a card form
    that is filled in but not sent yet, and (with Stripe) a card that was taken without our server knowing."""
    name = "Cancelled Gala"
    event = stack.put_on_sale(name, seats=5 if stack.stripe is None else 6, refunds=POOL_ONLY)
    ada, bob, carl, dora, owner = (visitor() for _ in range(5))
    kept = buy(ada, stack, name, "ada10@example.org", count=2)
    fails = buy(carl, stack, name, "carl10@example.org", card=REFUND_FAILS_CARD, name="Carl")
    buy(dora, stack, name, "dora10@example.org")
    held = fill_form(bob, stack, name, "bob10@example.org")
    taken = "" if stack.stripe is None else pay_unheard(visitor(), stack, name, "finn10@example.org")
    eve = Contact("fan_eve", email="eve10@example.org", locale="de")
    stack.call(lambda platform: platform.ledger.messages.put_contact(eve, 0))
    stack.call(lambda platform: platform.box_office.waitlist.join(event.id, "fan_eve", 1))
    give_back(ada, stack, kept, 1, "Offer for resale")
    eventually_sync(
        lambda: stack.call(lambda platform: platform.box_office.waitlist.offers(event.id, "fan_eve")), WAIT_S
    )
    assert (stack.paid(kept), stack.paid(fails), stack.paid(held)) == (100_00, 50_00, 0)

    member = staff(owner, stack.site).staff
    assert member is not None
    here = f"{stack.url}/organiser/events/{event.id}"
    owner.goto(here)
    owner.get_by_role("link", name="Cancel the event …").click()
    owner.get_by_role("dialog").get_by_role("button", name="Cancel the event").click()
    expect(owner.get_by_role("heading", name="Everyone is refunded automatically")).to_be_visible()

    bob.locator("#go").click()  # only now, on the page as it was before the cancellation
    expect(bob.locator("#outcome")).to_be_visible()  # which of its texts depends on how far the cancellation is
    until_paid(stack, kept, 0)  # Ada has her money, also for the seat in the pool
    expect(owner.get_by_text("Refunds that failed at the bank: 1. The money is still owed.")).to_be_visible()
    assert stack.paid(fails) == 50_00
    stack.mailbox.wait_for("carl10@example.org", f"Your refund for {name} takes longer")
    alert = stack.mailbox.wait_for(member.email, f"A refund for {name} failed")
    assert "€50.00" in alert.text
    assert f"/bookings/{fails}" in alert.text
    follow(owner, owner.get_by_role("link", name=fails[-8:]), f"**/bookings/{fails}")
    expect(owner.get_by_text("lost_or_stolen_card")).to_be_visible()
    owner.get_by_role("button", name="Retry this refund").click()
    expect(owner.get_by_role("status").first).to_contain_text("The refund is being retried.")
    until_paid(stack, fails, 0)  # Carl has his money

    mine = stack.call(lambda platform: _bookings(platform, event.id))
    assert held in mine
    eventually_sync(lambda: sum(map(stack.authorised, mine)), WAIT_S, until=lambda left: left == 0)
    eventually_sync(lambda: [stack.paid(one) for one in mine], WAIT_S, until=lambda paid: not any(paid))
    stack.let_pass(60)
    owner.goto(here)
    eventually_sync(lambda: _reloaded(owner, "Everyone has been refunded"), WAIT_S)  # the job says so
    for who in ("ada10", "carl10", "dora10"):
        stack.mailbox.wait_for(f"{who}@example.org", f"Your booking for {name} is refunded")
    for who in ("ada10", "carl10"):  # of the seat in the pool, and of the refund that had failed
        stack.mailbox.wait_for(f"{who}@example.org", f"Your refund for {name}\n")
    bob.goto(f"{stack.url}/checkout/{held}")
    expect(bob.locator("#card, #stripe-number")).to_have_count(0)
    expect(bob.locator("#outcome")).to_contain_text("This show is cancelled.")
    assert (stack.paid(held), stack.authorised(held)) == (0, 0)
    if taken:
        assert (stack.paid(taken), stack.authorised(taken)) == (0, 0)
    stack.mailbox.wait_for("eve10@example.org", f"{name} ist abgesagt: Die Warteliste ist beendet")
    assert stack.call(lambda platform: platform.box_office.waitlist.offers(event.id, "fan_eve")) == []

    table = owner.context.request.get(f"{here}/exports/revenue.csv")
    rows = {row["booking"]: row for row in csv.DictReader(io.StringIO(table.text().lstrip("\ufeff")))}
    assert {row["net"] for row in rows.values()} == {"0.00"}
    assert rows[kept]["captured"] == "100.00"
    owner.goto(f"{stack.url}/organiser/audit")
    for act in ("Event cancelled", "Refund retried"):
        expect(owner.get_by_role("cell", name=act).first).to_be_visible()


def test_an_organiser_refunds_and_moves_and_the_returner_is_paid(stack: Stack, visitor: Visitor) -> None:
    """M3 on the page: Bob is moved onto the seat that Ada had returned; then he gets his money back."""
    name = "Musical Chairs"
    event = stack.put_on_sale(name, seats=3, refunds=POOL_ONLY)
    bob, ada, owner = visitor(), visitor(), visitor()
    moved = buy(bob, stack, name, "bob11@example.org")
    returned = buy(ada, stack, name, "ada11@example.org")
    seat = stack.call(lambda platform: _seats(platform, returned))[0]
    give_back(ada, stack, returned, 1, "Offer for resale")
    staff(owner, stack.site)
    here = f"{stack.url}/organiser/events/{event.id}/bookings/{moved}"
    owner.goto(here)
    owner.get_by_role("button", name="Change seats").click()
    until(owner, "document.querySelector('fr-seatmap').model")
    click_seat(owner, seat)
    owner.locator("#move").click()
    owner.get_by_role("dialog").get_by_role("button", name="Move seats").click()
    expect(owner.get_by_role("status").first).to_contain_text("Moved.")
    until_paid(stack, returned, 0)  # Ada has her money
    stack.mailbox.wait_for("ada11@example.org", f"Your returned ticket for {name} is sold")

    owner.get_by_role("link", name="Write to the buyer").click()
    owner.get_by_label("Subject").fill("Your new seat at {event}")
    owner.get_by_label("Text").fill("Please use **gate B**.")
    owner.get_by_role("button", name="Preview").click()
    expect(owner.frame_locator("iframe.preview").get_by_text("gate B")).to_be_visible()
    expect(owner.get_by_role("heading", name="Send it to 1 address?")).to_be_visible()
    owner.get_by_role("button", name="Send now").click()
    expect(owner.get_by_text("1 of 1 sent, 0 failed")).to_be_visible(timeout=WAIT_S * 1000)  # it follows by itself
    written = stack.mailbox.wait_for("bob11@example.org", f"Your new seat at {name}")
    assert "<strong>gate B</strong>" in written.html
    assert any("/open#" in link for link in written.links())
    owner.goto(here)

    owner.get_by_role("button", name="Refund", exact=True).click()
    dialog = owner.get_by_role("dialog")
    dialog.get_by_label("in full, regardless of the refund policy").check()
    dialog.get_by_label("Reason (needed for a refund in full)").fill("ill")
    dialog.get_by_role("button", name="Refund now").click()
    expect(owner.get_by_role("status").first).to_contain_text("The refund is in progress")
    until_paid(stack, moved, 0)  # Bob has his
    stack.mailbox.wait_for("bob11@example.org", f"Your booking for {name} is refunded")


def _reloaded(page: Page, heading: str) -> bool:
    page.reload()
    return page.get_by_role("heading", name=heading).is_visible()


async def _bookings(platform: Platform, event_id: str) -> set[str]:
    return {one.id for one in await platform.ledger.organiser.event_bookings(event_id, "", 0, 100)}


async def _seats(platform: Platform, booking_id: str) -> list[str]:
    booking = await platform.ledger.booking(booking_id)
    assert booking is not None
    return [platform.box_office.sales.get(booking.event_id).plan.seat_id(seat) for seat in booking.seats]
