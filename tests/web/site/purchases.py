"""A purchase by the services themselves, ten days before the show."""

from frontrow.app.wiring import Platform
from frontrow.boxoffice.holds.model.holds import ShopPass
from frontrow.core.clock import US_PER_S
from tests.web.api.support import EVENT_ID

NOW_US = 1_800_000_000 * US_PER_S  # 15 January 2027, 08:00 UTC
STARTS_US = NOW_US + 10 * 86_400 * US_PER_S


async def buy(platform: Platform, *seats: str) -> str:
    visit = ShopPass(EVENT_ID, "fan_ada", platform.clock() + 900 * US_PER_S)
    hold = await platform.box_office.holds.place(EVENT_ID, visit, list(seats))
    return (await platform.box_office.checkout.pay(hold.booking_id, hold.fence, "pm_card_visa")).booking.id
