"""One world for all security tests of a test process, on one event loop."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from litestar import Request

from frontrow.web.server import app as web_app
from frontrow.web.site import routes
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
def guarded(world: World) -> Iterator[AsgiClient]:
    """The app with its guards and without its handlers."""

    async def stop(request: object) -> None:
        raise Reached("the guard let this through")

    show_kept_page = routes.kept_page

    async def stop_here(request: Request[Any, Any, Any]) -> Any:
        return await (stop(request) if request.app is app else show_kept_page(request))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(web_app, "before_request", stop)
        app = web_app.platform_app(world.platform, own_loops=False)
        patch.setattr(routes, "kept_page", stop_here)  # pages have a step of their own before their handler
        yield AsgiClient(app)
