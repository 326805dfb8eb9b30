"""A member of an organiser's team with a browser: pages and forms without scripts."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import httpx

from frontrow.boxoffice.people.model.people import csrf_of
from frontrow.boxoffice.people.model.roles import Role
from frontrow.web.http.cookies import SESSION_COOKIE
from tests.boxoffice.organiser.http import Desk, a_desk
from tests.support.browser_headers import BROWSER
from tests.support.form_answers import submit


class Site:
    """A member of the team with a browser."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.headers = BROWSER | {"cookie": f"{SESSION_COOKIE}={desk.person.session}"}
        self.base = f"/organiser/events/{desk.event}"

    async def get(self, path: str, status: int = 200) -> str:
        answer = await self.desk.client.get(path, headers=self.headers)
        assert answer.status_code == status, (path, answer.status_code, answer.text[:500])
        return answer.text

    async def post(self, path: str, status: int = 303, **fields: str | list[str]) -> httpx.Response:
        """Send a form; the page that says what came of it, or the redirect if it says nothing."""
        given = {"csrf": csrf_of(self.desk.person.session), **fields}
        answer = await submit(self.desk.client, path, given, self.headers)
        assert answer.status_code == status, (path, answer.status_code, answer.text[-900:])
        return answer

    async def as_(self, role: Role, organiser: str = "org_hall", name: str = "") -> "Site":
        return Site(await self.desk.as_(role, organiser, name))


@contextlib.asynccontextmanager
async def a_site(folder: Path) -> AsyncIterator[Site]:
    async with a_desk(folder) as desk:
        yield Site(desk)
