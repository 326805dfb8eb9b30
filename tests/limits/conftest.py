"""The doors the limiter's tests go through."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.limits.doors import DOORS, Door


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    own = asyncio.new_event_loop()
    yield own
    own.close()


@pytest.fixture(params=DOORS)
def door(request: pytest.FixtureRequest, redis_url: str, loop: asyncio.AbstractEventLoop) -> Iterator[Door]:
    opened = Door(request.param, redis_url, loop)
    yield opened
    opened.close()
