"""A member of an organiser's team with a browser: pages and forms without scripts."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import httpx

from frontrow.boxoffice.people.model.people import csrf_of
from frontrow.boxoffice.people.model.roles import Role
from frontrow.web.http.cookies import SESSION_COOKIE
from tests.boxoffice.organiser.http import OrganiserApi, an_organiser_api
from tests.support.browser_headers import BROWSER
from tests.support.form_answers import submit


class Site:
    """A member of the team with a browser."""

    def __init__(self, api: OrganiserApi) -> None:
        self.api = api
        self.headers = BROWSER | {"cookie": f"{SESSION_COOKIE}={api.person.session}"}
        self.base = f"/organiser/events/{api.event}"

    async def get(self, path: str, status: int = 200) -> str:
        answer = await self.api.client.get(path, headers=self.headers)
        assert answer.status_code == status, (path, answer.status_code, answer.text[:500])
        return answer.text

    async def post(self, path: str, status: int = 303, **fields: str | list[str]) -> httpx.Response:
        """Send a form; the page that says what came of it, or the redirect if it says nothing."""
        given = {"csrf": csrf_of(self.api.person.session), **fields}
        answer = await submit(self.api.client, path, given, self.headers)
        assert answer.status_code == status, (path, answer.status_code, answer.text[-900:])
        return answer

    async def as_(self, role: Role, organiser: str = "org_hall", name: str = "") -> "Site":
        return Site(await self.api.as_(role, organiser, name))


@contextlib.asynccontextmanager
async def a_site(folder: Path) -> AsyncIterator[Site]:
    async with an_organiser_api(folder) as api:
        yield Site(api)
