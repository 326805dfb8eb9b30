"""O3: "Where is my ticket?" is answered from the log alone, and the log knows nobody's name."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from frontrow.boxoffice.adapters.channels.email import FolderChannel
from frontrow.boxoffice.adapters.payments.simulated import SimulatedProvider
from frontrow.boxoffice.messages.model.messages import Outcome
from frontrow.boxoffice.payments.model.provider_intents import ProviderUnknown
from tests.journeys.conftest import Visitor
from tests.journeys.stack import Stack
from tests.journeys.steps import buy, come_to_checkout, fill_buyer, pay_by_card
from tests.support.eventually import eventually_sync
from tests.support.log_lines import Lines, log_lines, story_of

EVENT = "The log"
DECLINED_CARD = "4000 0000 0000 0002"
WAIT_S = 120


@pytest.fixture(scope="module")
def form() -> str:
    return "embedded"


@pytest.fixture
def lines() -> Iterator[Lines]:
    with log_lines() as read:
        yield read


def told(lines: Lines, booking_id: str, wanted: Callable[[list[str]], bool]) -> list[str]:
    """The booking's story, as soon as the log tells it."""
    return eventually_sync(lambda: story_of(booking_id, lines()), WAIT_S, until=wanted, every_s=0.1)


def in_order(story: list[str], *actions: str) -> bool:
    """Whether the story has these actions, each after the one before."""
    rest = iter(story)
    return all(action in rest for action in actions)


def test_j12_o3_where_is_my_ticket(stack: Stack, visitor: Visitor, lines: Lines, monkeypatch: Any) -> None:
    stack.put_on_sale(EVENT, seats=8, card_tries=1)
    people = {"Ada Lovelace": "ada.lovelace@example.org", "Grace Hopper": "grace@example.org"}

    # Ada bought, and her mail was handed over: look into the spam folder.
    ada = buy(visitor(), stack, EVENT, people["Ada Lovelace"], name="Ada Lovelace")
    bought = told(lines, ada, lambda story: {"payment_captured", "delivery_sent"} <= set(story))
    assert in_order(bought, "payment_authorised", "booking_sold", "payment_captured")
    assert in_order(bought, "booking_sold", "delivery_sent")
    (mail,) = [one for one in lines() if one.get("action") == "delivery_sent" and ada in one["about"]]
    assert mail["about"].startswith("confirmed-")

    # Grace's card was declined: her seat is free, and nothing was taken.
    page = visitor()
    grace = come_to_checkout(page, stack, EVENT)
    fill_buyer(page, "Grace Hopper", people["Grace Hopper"])
    pay_by_card(page, DECLINED_CARD)
    lost = told(lines, grace, lambda story: "booking_ended" in story)
    assert in_order(lost, "payment_declined", "booking_ended")
    assert not {"booking_sold", "payment_captured"} & set(lost)

    # Edsger's mail was refused for good: his ticket exists, and somebody must send it again.
    refused = Outcome(False, final=True, reason="550 no such user edsger@example.org")

    async def refuse(self: FolderChannel, messages: Any, note: Any) -> list[Outcome]:
        return [refused for _ in messages]

    with monkeypatch.context() as patch:
        patch.setattr(FolderChannel, "send", refuse)
        people["Edsger Dijkstra"] = "edsger@example.org"
        edsger = buy(visitor(), stack, EVENT, people["Edsger Dijkstra"], name="Edsger Dijkstra")
        story = told(lines, edsger, lambda story: {"payment_captured", "delivery_given_up"} <= set(story))
    assert in_order(story, "booking_sold", "delivery_given_up")

    # Barbara's bank was away for a moment: she has her ticket, and the log says what took so long.
    authorise, answers = SimulatedProvider.create, iter([False])

    async def away_once(self: SimulatedProvider, *given: Any, **more: Any) -> Any:
        if not next(answers, True):
            raise ProviderUnknown("no answer")
        return await authorise(self, *given, **more)

    with monkeypatch.context() as patch:
        patch.setattr(SimulatedProvider, "create", away_once)
        people["Barbara Liskov"] = "barbara@example.org"
        page = visitor()
        barbara = come_to_checkout(page, stack, EVENT)
        fill_buyer(page, "Barbara Liskov", people["Barbara Liskov"])
        pay_by_card(page)
        stack.let_pass(10)
        page.wait_for_url("**/bookings/**")
    waited = told(lines, barbara, lambda story: "payment_captured" in story)
    assert in_order(waited, "payment_retried", "booking_sold", "payment_captured")

    # Ada gives her ticket back, and gets her money.
    page = visitor()
    page.goto(stack.mailbox.wait_for(people["Ada Lovelace"], EVENT).links()[0])
    page.wait_for_url(f"**/bookings/{ada}")
    stack.call(lambda platform: platform.box_office.refunds.override(ada))
    back = told(lines, ada, lambda story: "refund_paid" in story)
    assert in_order(back, "payment_captured", "refund_asked", "refund_paid")
    expect(page.locator("body")).to_be_visible()

    # Nobody who reads the log learns who these people are.
    log = json.dumps(lines(), ensure_ascii=False)
    words = [word for name, address in people.items() for word in (*name.split(), address)]
    for word in [*words, "example.org", "4242", "4000 0000", "pm_card", "pm_", "@"]:
        assert word not in log, word
