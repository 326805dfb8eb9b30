"""B15: organisers' webhooks are registered only at public addresses; by service and by `frontrow event webhooks`."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.messages.model.messages import EndpointNotFound
from frontrow.boxoffice.messages.safe_http import SafeHttpClient, UnsafeAddress
from frontrow.boxoffice.messages.webhook_endpoints import MAX_PER_EVENT, TooManyEndpoints, WebhookEndpoints
from frontrow.cli.event import app
from frontrow.core.errors import InvalidInput, Unavailable
from frontrow.testing.clock import ManualClock
from tests.boxoffice.messages.outbox import NOW
from tests.boxoffice.shop import sqlite_url

NAMES = {"hooks.example.org": ["93.184.216.34"], "mixed.example.org": ["93.184.216.34", "10.0.0.7"]}


async def resolver(host: str, port: int) -> list[str]:
    if host not in NAMES:
        raise OSError("no such name")
    return NAMES[host]


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[SqlLedger]:
    one = await open_ledger(sqlite_url(tmp_path))
    yield one
    await one.aclose()


@pytest.fixture
async def endpoints(ledger: SqlLedger) -> AsyncIterator[WebhookEndpoints]:
    outgoing = SafeHttpClient(resolver=resolver)
    yield WebhookEndpoints(ledger.messages, outgoing, ManualClock(NOW))
    await outgoing.aclose()


async def test_a_webhook_is_registered_with_a_secret_of_its_own_and_removed(endpoints: WebhookEndpoints) -> None:
    url = "https://hooks.example.org/x"
    one = await endpoints.register("org_1", "evt_1", url, ("BookingConfirmed",))
    two = await endpoints.register("org_1", "evt_1", url)
    assert one.secret != two.secret
    assert (one.secret[:6], len(one.secret) > 40, one.facts) == ("whsec_", True, ("BookingConfirmed",))
    assert {e.id for e in await endpoints.of_event("evt_1")} == {one.id, two.id}
    await endpoints.remove(one.id)
    await endpoints.remove(one.id)
    assert await endpoints.of_event("evt_1") == [two]
    with pytest.raises(EndpointNotFound):
        await endpoints.remove("whk_nobody")


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("http://hooks.example.org/", UnsafeAddress),
        ("https://127.0.0.1/", UnsafeAddress),
        ("https://169.254.169.254/latest", UnsafeAddress),
        ("https://[::1]/", UnsafeAddress),
        ("https://2130706433/", UnsafeAddress),
        ("https://a:b@hooks.example.org/", UnsafeAddress),
        ("https://mixed.example.org/", UnsafeAddress),
        ("https://gone.example.org/", Unavailable),
    ],
)
async def test_an_address_that_is_not_public_is_not_registered(
    url: str, error: type[Exception], endpoints: WebhookEndpoints
) -> None:
    with pytest.raises(error):
        await endpoints.register("org_1", "evt_1", url)
    assert await endpoints.of_event("evt_1") == []


async def test_unknown_facts_and_too_many_webhooks_are_refused(endpoints: WebhookEndpoints) -> None:
    url = "https://hooks.example.org/x"
    with pytest.raises(InvalidInput):
        await endpoints.register("org_1", "evt_1", url, ("BookingConfimed",))
    for _ in range(MAX_PER_EVENT):
        await endpoints.register("org_1", "evt_1", url)
    with pytest.raises(TooManyEndpoints):
        await endpoints.register("org_1", "evt_1", url)
    await endpoints.register("org_1", "evt_2", url)


async def test_the_command_adds_lists_and_removes(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path)

    async def said(*words: str) -> tuple[int, list[str]]:
        done = await asyncio.to_thread(CliRunner().invoke, app, ["webhooks", *words, "--ledger", url])
        return done.exit_code, done.output.splitlines()

    code, (made, secret) = await said("add", "evt_1", "https://93.184.216.34/hook", "--fact", "BookingConfirmed")
    assert (code, made[:4], secret[:6]) == (0, "whk_", "whsec_")
    listed = f"{made}\torg_default\thttps://93.184.216.34/hook\tBookingConfirmed"
    assert await said("list", "evt_1") == (0, [listed])
    assert (await said("add", "evt_1", "https://10.0.0.1/hook"))[0] == 2
    assert (await said("remove", "whk_nobody"))[0] == 2
    assert await said("remove", made) == (0, [f"{made} removed"])
    assert await said("list", "evt_1") == (0, [])
