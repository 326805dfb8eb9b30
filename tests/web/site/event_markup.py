"""What an event's page says to search engines, and when the server has seen a change of the event."""

import re

from frontrow.app.wiring import Platform
from tests.support.eventually import eventually
from tests.web.api.support import EVENT_ID

LD = re.compile(r'<script type="application/ld\+json">(.*?)</script>', re.DOTALL)


async def wait_for_event(platform: Platform, words: str) -> None:
    """Wait until this server has seen the event's new description."""
    openings = platform.box_office.openings
    await eventually(lambda: openings.events[EVENT_ID].description, until=lambda seen: words in seen, ignoring=KeyError)
