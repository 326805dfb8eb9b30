"""Members of an organiser's team in a browser: `staff(page, site, role="owner")` signs one in without the forms."""

import itertools

from playwright.sync_api import Page

from frontrow.app.wiring import Platform
from frontrow.boxoffice.people.model.people import DEFAULT_ORGANISER
from frontrow.boxoffice.people.model.roles import Role
from frontrow.web.http.cookies import SESSION_COOKIE
from tests.boxoffice.people.support import Person, member
from tests.browser.served import Site

_numbers = itertools.count(1)


def staff(page: Page, site: Site, role: str = "owner", organiser: str = DEFAULT_ORGANISER) -> Person:
    """A new member of the team (password and second factor set), whose session this browser has from now on."""
    name = f"{role.replace('_', '-')}{next(_numbers)}"

    async def made(platform: Platform) -> Person:
        return await member(platform, Role(role), organiser, name)

    person: Person = site.call(made)
    page.context.add_cookies([session_cookie(site, person)])  # type: ignore[list-item]
    return person


def session_cookie(site: Site, person: Person) -> dict[str, object]:
    return {
        "name": SESSION_COOKIE,
        "value": person.session,
        "url": site.url.replace("http://", "https://"),
        "secure": True,
        "httpOnly": True,
        "sameSite": "Lax",
    }
