"""Fixtures of the journeys: `stack` (embedded, then clustered) and `visitor` (a fresh browser for each person)."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.journeys.stack import Stack, clustered, embedded
from tests.support.databases import database

WAIT_MS = 60_000  # nobody waits that long unless something is broken or the machine is very busy
expect.set_options(timeout=WAIT_MS)
FORMS = ("embedded", "clustered")
Visitor = Callable[..., Page]


@pytest.fixture(scope="module", params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    """Each journey is taken once in an embedded shop and once in a clustered one."""
    return str(request.param)


@pytest.fixture(scope="module")
def stack_options() -> dict[str, Any]:
    """Overridden by a file that wants other settings: sections by name, or fields of `[server]`."""
    return {}


@pytest.fixture(scope="module")
def stack(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, form: str, stack_options: dict[str, Any]
) -> Iterator[Stack]:
    """The running shop, once embedded and once clustered."""
    folder = tmp_path_factory.mktemp("shop")
    if form == "embedded":
        with embedded(folder, **stack_options) as running:
            yield running
        return
    redis_url, postgres_url = request.getfixturevalue("empty_redis"), request.getfixturevalue("empty_postgres")
    with clustered(folder, redis_url, postgres_url, **stack_options) as running:
        yield running


@pytest.fixture(scope="module")
def empty_redis(shared_redis_url: str) -> str:
    with redis.Redis.from_url(shared_redis_url) as client:
        client.flushdb()
    return shared_redis_url


@pytest.fixture(scope="module")
def empty_postgres(shared_postgres_url: str, migrated_postgres: str) -> Iterator[str]:
    """A database of this file's own, with the newest schema and nothing in it."""
    with database(shared_postgres_url, migrated_postgres) as url:
        yield url


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Visitor]:
    """A person with their own browser: `visitor(width=390, height=844, locale="ar", java_script_enabled=False)`."""
    contexts: list[BrowserContext] = []

    def come(width: int = 1280, height: int = 800, **options: Any) -> Page:
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        context.set_default_timeout(WAIT_MS)
        contexts.append(context)
        return context.new_page()

    yield come
    for context in contexts:
        context.close()
