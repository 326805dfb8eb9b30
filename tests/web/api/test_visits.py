"""A visit to the shop: kept by a live hold, over after buying; one policy everywhere (B17, W6, W7; section 3)."""

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontrow.app.wiring import Platform, open_platform
from frontrow.boxoffice.events.model.events import EventStatus
from frontrow.core.clock import US_PER_S, SystemClock
from frontrow.settings.room import RoomSettings
from frontrow.waitingroom.model.errors import NotYourTurn, RoomFull
from frontrow.waitingroom.model.idle_visits import PLATFORM_IDLE_S
from frontrow.waitingroom.protect.guard import PASS_COOKIES
from frontrow.web.server.app import run_platform
from tests.support.eventually import eventually
from tests.support.form_answers import submit
from tests.web.api.script import Buyer, a_buyer
from tests.web.api.support import EVENT_ID, a_client, put_event, settings_for

FORM = {"accept": "text/html", "content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin"}


@dataclass
class Shop:
    """A shop with room for one visitor, whose time can be moved."""

    platform: Platform
    client: httpx.AsyncClient
    ahead_s: int = 0

    @property
    def inside(self) -> int:
        return self.platform.room.service.control.view(EVENT_ID).state.active

    @property
    def kept(self) -> int:
        return self.platform.room.service.control.view(EVENT_ID).state.kept


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    clock, made = SystemClock(), []
    room = RoomSettings(capacity=1, window_size=100, interval_s=0.05, human="none")
    settings = replace(settings_for(tmp_path), room=room)
    async with contextlib.AsyncExitStack() as stack:
        now = lambda: clock() + sum(one.ahead_s for one in made) * US_PER_S  # noqa: E731
        platform = await stack.enter_async_context(open_platform(settings, clock=now))
        await put_event(platform, hold_ttl_s=1_200)
        await stack.enter_async_context(run_platform(platform))
        made.append(Shop(platform, await stack.enter_async_context(a_client(platform))))
        yield made[0]


async def pass_by(shop: Shop, seconds: int) -> None:
    """So many seconds pass, and the server looks at the room."""
    shop.ahead_s += seconds
    await shop.platform.room.service.loops.tick(EVENT_ID)


async def holding(shop: Shop) -> tuple[Buyer, str]:
    """Somebody inside who holds a seat, and the booking."""
    buyer = await a_buyer(shop.client)
    await buyer.enter(EVENT_ID)
    held = await buyer.hold(EVENT_ID, seats=["S-A-1"])
    await eventually(lambda: shop.kept == 1)
    return buyer, held["booking"]


async def test_a_hold_outlives_the_pass_and_is_extended_and_paid_all_the_same(shop: Shop) -> None:
    """Before: with a pass of 15 minutes and a hold of 20, paying was refused in the middle."""
    buyer, booking = await holding(shop)
    shop.ahead_s = 16 * 60
    refused = await buyer.call("place_hold", event_id=EVENT_ID, json={"seats": ["S-A-3"]})
    assert (refused.status_code, refused.json()["code"]) == (401, "pass_expired"), "more seats need a pass that runs"
    renewed = await buyer.call("room_renew", event_id=EVENT_ID)
    assert renewed.status_code == 200
    longer = await buyer.call("extend_hold", booking_id=booking, json={"extend": True})
    assert longer.status_code == 200, longer.text
    shop.ahead_s = 25 * 60
    assert (await buyer.pay(booking))["state"] == "confirmed"


async def test_w6_after_buying_the_visit_is_over_and_the_next_comes_in(shop: Shop) -> None:
    """Before: no page gave a pass back, so the next waited until it ran out."""
    buyer, booking = await holding(shop)
    waiting = await a_buyer(shop.client)
    joined = await waiting.call("room_join", event_id=EVENT_ID)
    place = {"Authorization": f"Bearer {joined.json()['place']}"}
    full = await waiting.call("room_claim", event_id=EVENT_ID, headers=place)
    assert full.status_code in (409, 503)
    await buyer.pay(booking)
    await eventually(lambda: shop.inside == 0)
    over = await buyer.call("place_hold", event_id=EVENT_ID, json={"seats": ["S-A-3"]})
    assert (over.status_code, over.json()["code"]) == (409, "pass_ended")
    await eventually(
        lambda: waiting.call("room_claim", event_id=EVENT_ID, headers=place),
        until=lambda answer: answer.status_code == 201,
    )


async def test_after_giving_the_seats_back_the_visit_goes_on_with_the_idle_time(shop: Shop) -> None:
    buyer, booking = await holding(shop)
    assert (await buyer.call("release_hold", booking_id=booking)).status_code == 200
    await eventually(lambda: shop.kept == 0)
    again = await buyer.hold(EVENT_ID, seats=["S-A-2"])
    await eventually(lambda: shop.kept == 1)
    assert (await buyer.call("release_hold", booking_id=again["booking"])).status_code == 200
    await eventually(lambda: shop.kept == 0)
    visits = shop.platform.room.service.visits
    waiting = (await shop.platform.room.service.joins.join(EVENT_ID)).place_jwt
    for _ in range(PLATFORM_IDLE_S // 20 - 1):
        await pass_by(shop, 20)
        with pytest.raises((NotYourTurn, RoomFull)):
            await visits.claim(waiting)
    await pass_by(shop, 20)
    await pass_by(shop, 20)
    assert await visits.claim(waiting), "the next person comes in"


async def test_the_pages_ask_for_a_visit_as_the_api_does(shop: Shop) -> None:
    """Before: the pages extended a hold, gave it back and began a payment without a pass."""
    buyer, booking = await holding(shop)
    token = buyer.headers["Frontrow-Booking"]
    shop.client.cookies.set("frontrow_bookings", token)
    before = (await shop.platform.ledger.booking(booking)).hold_expires_at_us  # type: ignore[union-attr]
    shop.ahead_s = 60
    for act in ("extend", "release", "pay"):
        refused = await submit(shop.client, f"/checkout/{booking}/{act}", {})
        assert refused.status_code == 401, act
        assert "Your visit has ended" in refused.text
    for name, body in (("extend_hold", {"extend": True}), ("release_hold", None), ("pay", {"method": "pm_card_visa"})):
        more = {} if body is None else {"json": body}
        api = await (await a_buyer(shop.client)).call(
            name, booking_id=booking, headers={"Frontrow-Booking": token}, **more
        )
        assert api.status_code == 401, name
    now = await shop.platform.ledger.booking(booking)
    assert now is not None
    assert (now.state, now.hold_expires_at_us) == ("held", before)
    shop.client.cookies.set(PASS_COOKIES[1], buyer.headers["Frontrow-Pass"])
    longer = await shop.client.post(f"/checkout/{booking}/extend", headers=FORM, content=b"")
    assert longer.status_code == 303
    now = await shop.platform.ledger.booking(booking)
    assert now is not None
    assert now.hold_expires_at_us > before


async def test_the_checkout_page_brings_a_pass_that_lasts_as_long_as_the_hold(shop: Shop) -> None:
    """Without scripts: the server renews the pass by a cookie with the page."""
    buyer, booking = await holding(shop)
    text = buyer.headers["Frontrow-Pass"]
    shop.client.cookies.set(PASS_COOKIES[1], text)
    page = await shop.client.get(f"/checkout/{booking}", headers={"accept": "text/html"})
    assert page.status_code == 200
    fresh = page.cookies[PASS_COOKIES[1]]
    before, after = (shop.platform.room.service.visits.read_pass(one) for one in (text, fresh))
    assert (after.id, after.since_s) == (before.id, before.since_s)
    held = await shop.platform.ledger.booking(booking)
    assert held is not None
    assert after.expires_s * US_PER_S >= held.hold_expires_at_us > before.expires_s * US_PER_S


async def test_a_pass_beside_the_line_can_be_given_back_and_had_again_later(shop: Shop) -> None:
    passes, room = shop.platform.room.passes, shop.platform.room.service
    first, _ = passes.beside_the_line(EVENT_ID, "fan_1", "offer_1")
    assert await room.visits.give_back(first)
    shop.ahead_s = 61
    second, _ = passes.beside_the_line(EVENT_ID, "fan_1", "offer_1")
    assert room.visits.check_pass(second)


async def test_paying_what_the_organiser_cancels_at_that_moment_shows_what_became_of_it(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before: a page with "begin_payment is not possible" if the cancellation came while the form was being read."""
    buyer, booking = await holding(shop)
    shop.client.cookies.set("frontrow_bookings", buyer.headers["Frontrow-Booking"])
    shop.client.cookies.set(PASS_COOKIES[1], buyer.headers["Frontrow-Pass"])
    pay = shop.platform.box_office.purchases.pay

    async def cancelled_before(*given: Any) -> Any:
        event = await shop.platform.ledger.catalogue.event(EVENT_ID)
        cancelled = replace(event, status=EventStatus.CANCELLED)
        await shop.platform.ledger.catalogue.put_event(cancelled, shop.platform.clock())
        await shop.platform.box_office.refunds.cancel_booking(booking)
        return await pay(*given)

    monkeypatch.setattr(shop.platform.box_office.purchases, "pay", cancelled_before)
    card = {"card": "4242 4242 4242 4242", "expiry": "12 / 40", "cvc": "123"}
    form = {"name": "Ada", "email": "ada@example.org", **card}
    answer = await shop.client.post(f"/checkout/{booking}/pay", headers=FORM, data=form)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/checkout/{booking}")
    events = shop.platform.box_office.openings.events
    await eventually(lambda: EVENT_ID not in events or events[EVENT_ID].status is EventStatus.CANCELLED)
    page = await shop.client.get(f"/checkout/{booking}", headers=FORM)
    assert page.status_code == 200
    assert 'data-kind="event_cancelled"' in page.text
    assert "This show is cancelled." in page.text
