"""The organisers' pages without a browser: who may come, where others are led, and what stays theirs alone (B13)."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from frontrow.bootstrap import Platform
from frontrow.boxoffice.model.people import Role, Stage, SubjectKind, csrf_of
from frontrow.boxoffice.vault import SealBroken
from frontrow.web.api.access import SESSION_COOKIE
from frontrow.web.app import pages
from tests.people.support import PASSWORD, Person, asking, code_now, fan, member, opened
from tests.web.site.test_pages import BROWSER, FORM

EVERYWHERE = ("/organiser",)


@pytest.fixture
async def platform(tmp_path: Path) -> AsyncIterator[Platform]:
    async with opened(tmp_path) as running:
        yield running


@pytest.fixture
async def client(platform: Platform) -> AsyncIterator[httpx.AsyncClient]:
    async with asking(platform) as one:
        yield one


def cookie(secret: str) -> dict[str, str]:
    return {"cookie": f"{SESSION_COOKIE}={secret}"}


def form(person: Person, **fields: str) -> dict[str, str]:
    return {"csrf": csrf_of(person.session), **fields}


def test_every_page_under_organiser_asks_for_a_member_of_the_team() -> None:
    public = {"/organiser/sign-in", "/organiser/sign-in/code", "/organiser/second-factor", "/organiser/sign-out"}
    for handler in pages():
        for path in handler.paths:
            if path.startswith("/organiser") and path not in public:
                assert handler.opt["access"].kind == "staff", path


async def test_who_is_not_signed_in_is_led_to_the_staffs_door(platform: Platform, client: httpx.AsyncClient) -> None:
    somebody = await fan(platform)
    for path in EVERYWHERE:
        for headers in (BROWSER, BROWSER | cookie(somebody.session)):
            answer = await client.get(path, headers=headers)
            assert (answer.status_code, answer.headers["location"]) == (303, f"/organiser/sign-in?back={path}")


async def test_a_half_signed_in_member_is_led_to_the_second_step(platform: Platform, client: httpx.AsyncClient) -> None:
    owner = await member(platform, Role.OWNER)
    half = await platform.people.sessions.start(SubjectKind.STAFF, owner.id, stage=Stage.TOTP)
    answer = await client.get("/organiser", headers=BROWSER | cookie(half.secret))
    assert answer.headers["location"] == "/organiser/sign-in?back=/organiser"
    step = await client.get(answer.headers["location"], headers=BROWSER | cookie(half.secret))
    assert "One more step" in step.text
    given = {"csrf": half.csrf, "code": "000000", "back": "/organiser"}
    wrong = await client.post("/organiser/sign-in/code", data=given, headers=FORM | cookie(half.secret))
    assert wrong.status_code == 401
    given["code"] = code_now(platform, owner)
    right = await client.post("/organiser/sign-in/code", data=given, headers=FORM | cookie(half.secret))
    assert (right.status_code, right.headers["location"]) == (303, "/organiser")
    assert (await client.get("/organiser", headers=BROWSER)).status_code == 200


async def test_signing_in_by_password_never_leads_to_another_site(
    platform: Platform, client: httpx.AsyncClient
) -> None:
    owner = await member(platform, Role.OWNER)
    assert owner.staff is not None
    for back in ("//evil.example", "https://evil.example/organiser", "/organiser/../../x", "/tickets", ""):
        given = {"email": owner.staff.email, "password": PASSWORD, "back": back}
        answer = await client.post("/organiser/sign-in", data=given, headers=FORM)
        assert (answer.status_code, answer.headers["location"]) == (303, "/organiser/sign-in?back=/organiser")
        client.cookies.clear()
    wrong = await client.post("/organiser/sign-in", data={**given, "password": "x"}, headers=FORM)
    assert wrong.status_code == 401
    assert owner.staff.email in wrong.text, "what was typed is still there"


async def test_an_enrolment_is_shown_again_to_its_own_session_only(platform: Platform) -> None:
    owner = await member(platform, Role.OWNER)
    people = platform.people
    session = (await people.sessions.start(SubjectKind.STAFF, owner.id, stage=Stage.ENROL)).session
    other = (await people.sessions.start(SubjectKind.STAFF, owner.id, stage=Stage.ENROL)).session
    begun = await people.staff.begin_enrolment(session, "")
    assert await people.staff.same_enrolment(session, begun.pending) == begun
    with pytest.raises(SealBroken):
        await people.staff.same_enrolment(other, begun.pending)
