"""The backends that the limiter's tests run over."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.limits.backends import BACKENDS, Backend


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    own = asyncio.new_event_loop()
    yield own
    own.close()


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, redis_url: str, loop: asyncio.AbstractEventLoop) -> Iterator[Backend]:
    opened = Backend(request.param, redis_url, loop)
    yield opened
    opened.close()
