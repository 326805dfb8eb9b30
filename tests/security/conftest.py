"""One world for all security tests of a test process, on one event loop."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import pytest_asyncio

from frontrow.web.server import app as web_app
from tests.boxoffice.people.support import CHEAP, opened
from tests.security.world import AsgiClient, Reached, World, a_client, a_world

MANY = ("100000/minute",)
PATIENT = replace(CHEAP, ip_tries=MANY, account_tries=MANY, code_tries=MANY, link_asks=MANY, link_asks_per_ip=MANY)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """Tests may add to it; what they take away they must have added."""
    folder = tmp_path_factory.mktemp("world")
    async with (
        opened(folder, PATIENT, per_person="100000/second", per_ip="100000/second") as platform,
        a_client(platform) as client,
    ):
        yield await a_world(platform, client)


@pytest.fixture(scope="module")
def guarded(world: World) -> AsgiClient:
    """The app with its guards and without its handlers."""

    async def stop(request: object) -> None:
        raise Reached("the guard let this through")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(web_app, "before_request", stop)
        return AsgiClient(web_app.platform_app(world.platform, own_loops=False))
