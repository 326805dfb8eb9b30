"""The organisers' pages without a browser: who may come, where others are led, and what stays theirs alone (B13)."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from frontrow.app.wiring import Platform
from frontrow.boxoffice.events.model.event_changes import Editor
from frontrow.boxoffice.people.model.people import Stage, SubjectKind, csrf_of
from frontrow.boxoffice.people.model.roles import ROLES, Role
from frontrow.boxoffice.seats.venues import PlanSource, VenueEdit
from frontrow.core.errors import InvalidInput
from frontrow.shared.vault import SealBroken
from frontrow.web.http.cookies import SESSION_COOKIE
from frontrow.web.server.app import pages
from frontrow.web.site.organiser.form_fields import Reading, local_text, money_text
from frontrow.web.site.routes import Form
from tests.boxoffice.people.support import PASSWORD, Person, asking, code_now, fan, member, on_sale, opened
from tests.support.browser_headers import BROWSER, FORM
from tests.support.form_answers import submit
from tests.web.api.support import EVENT_ID

BEHIND = ("", "/details", "/venue", "/prices", "/sale", "/seats", "/preview", "/preview/page", "/preview/map.json")
EVERYWHERE = (
    "/organiser",
    "/organiser/events/new",
    "/organiser/venues",
    "/organiser/venues/new",
    "/organiser/venues/ven_x",
    *(f"/organiser/events/{EVENT_ID}{behind}" for behind in (*BEHIND, "/codes", "/cancel")),
)


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


async def test_who_is_not_signed_in_is_led_to_the_staffs_sign_in(platform: Platform, client: httpx.AsyncClient) -> None:
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
    wrong = await submit(client, "/organiser/sign-in/code", given, cookie(half.secret))
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
    wrong = await submit(client, "/organiser/sign-in", {**given, "password": "x"})
    assert wrong.status_code == 401
    assert owner.staff.email in wrong.text, "what was typed is still there"


async def test_an_enrolment_is_shown_again_to_its_own_session_only(platform: Platform) -> None:
    owner = await member(platform, Role.OWNER)
    people = platform.people
    session = (await people.sessions.start(SubjectKind.STAFF, owner.id, stage=Stage.ENROL)).session
    other = (await people.sessions.start(SubjectKind.STAFF, owner.id, stage=Stage.ENROL)).session
    begun = await people.staff.begin_enrolment(session, "")
    assert await people.staff.reload_enrolment(session, begun.pending) == begun
    with pytest.raises(SealBroken):
        await people.staff.reload_enrolment(other, begun.pending)


async def test_another_organisers_things_do_not_exist(platform: Platform, client: httpx.AsyncClient) -> None:
    await on_sale(platform)
    mine, theirs = await member(platform, Role.OWNER), await member(platform, Role.OWNER, "org_other")
    for behind in (*BEHIND, "/codes", "/cancel"):
        path = f"/organiser/events/{EVENT_ID}{behind}"
        assert (await client.get(path, headers=BROWSER | cookie(mine.session))).status_code == 200, path
        assert (await client.get(path, headers=BROWSER | cookie(theirs.session))).status_code == 404, path
    for behind in ("details", "venue", "prices", "sale", "seats", "publish", "cancel", "close", "copy", "codes"):
        path = f"/organiser/events/{EVENT_ID}/{behind}"
        answer = await client.post(path, data=form(theirs), headers=FORM | cookie(theirs.session))
        assert answer.status_code == 404, path
    made = await platform.organiser.organise.venues.create(
        Editor("stf_x", "org_hall"), VenueEdit(name="Hall", plan=PlanSource("theatre", 100))
    )
    path = f"/organiser/venues/{made.venue.id}"
    assert (await client.get(path, headers=BROWSER | cookie(mine.session))).status_code == 200
    for behind in ("", "/map.json", "/arrange"):
        assert (await client.get(path + behind, headers=BROWSER | cookie(theirs.session))).status_code == 404
    for behind in ("", "/plan", "/edit", "/arrange"):
        given = form(theirs, name="Mine now", source="template", seats="100", shape="arena")
        answer = await client.post(path + behind, data=given, headers=FORM | cookie(theirs.session))
        assert answer.status_code == 404


async def test_every_form_of_a_member_who_may_only_read_is_refused_and_needs_its_word(
    platform: Platform, client: httpx.AsyncClient
) -> None:
    await on_sale(platform)
    reader, owner = await member(platform, Role.READ_ONLY), await member(platform, Role.OWNER)
    for handler in pages():
        access = handler.opt["access"]
        if "POST" not in handler.http_methods or access.kind != "staff" or access.permission == "events:read":
            continue
        for path in handler.paths:
            if not path.startswith("/organiser") or access.permission in ROLES[Role.READ_ONLY]:
                continue
            real = path.replace("{event_id:str}", EVENT_ID).replace("{venue_id:str}", "ven_x")
            if "{" in real:
                continue
            refused = await client.post(real, data=form(reader), headers=FORM | cookie(reader.session))
            assert refused.status_code == 403, path
            wordless = await client.post(real, data={}, headers=FORM | cookie(owner.session))
            assert wordless.status_code == 403, path


async def test_an_arrangement_is_saved_or_comes_back_with_what_is_wrong(
    platform: Platform, client: httpx.AsyncClient
) -> None:
    mine, venues = await member(platform, Role.OWNER), platform.organiser.organise.venues
    editor = Editor("stf_x", "org_hall")
    plan = PlanSource(csv="section,row,seat,x,y\nA,1,1,20,20\nA,1,2,30,20\nB,1,1,20,60\n")
    made = await venues.create(editor, VenueEdit(name="Hall", plan=plan))
    path = f"/organiser/venues/{made.venue.id}/arrange"

    async def save(placed: str, tag: str) -> httpx.Response:
        return await submit(client, path, form(mine, placed=placed, tag=tag), cookie(mine.session))

    assert (await save('{"sections":[{"of":"A"},{"of":"B"}]}', made.tag)).headers["location"].endswith("?done=saved")
    same = await venues.get(editor, made.venue.id)
    assert same.venue.plan_hash == made.venue.plan_hash, "saved without a change"
    onto = '{"sections":[{"of":"A"},{"of":"B","rows":[{"of":"1","points":[3000,2100]}]}]}'
    refused = await save(onto, same.tag)
    assert refused.status_code == 422
    assert "A-1-2 and B-1-1 overlap" in refused.text
    assert '"points":[3000,2100]' in refused.text, "nothing is lost"
    moved = '{"sections":[{"of":"A"},{"of":"B","rows":[{"of":"1","points":[3000,9000]}]}]}'
    assert (await save(moved, same.tag)).status_code == 303
    after = await venues.get(editor, made.venue.id)
    assert [(seat.x, seat.y) for seat in (await venues.plan(after.venue.plan_hash)).seats] == [
        (20, 20),
        (30, 20),
        (30, 90),
    ]
    late = await save(moved, same.tag)
    assert late.status_code == 422
    assert "Someone else changed this venue" in late.text
    for rubbish in (
        "{",
        moved.replace("9000", "9" * 40),
        '{"sections":' + "[" * 900 + "]" * 900 + "}",
        '{"sections":[NaN]}',
    ):
        assert (await save(rubbish, after.tag)).status_code == 422


async def test_an_edit_of_an_older_version_is_told_and_keeps_what_was_typed(
    platform: Platform, client: httpx.AsyncClient
) -> None:
    await on_sale(platform)
    owner = await member(platform, Role.OWNER)
    path, headers = f"/organiser/events/{EVENT_ID}/details", FORM | cookie(owner.session)
    given = form(owner, name="Second", description="two", starts="2040-01-01T20:00", tag="an older one")
    answer = await submit(client, path, given, headers)
    assert answer.status_code == 422
    assert "Someone else changed this event in the meantime" in answer.text
    assert 'value="Second"' in answer.text
    tag = re.search(r'name="tag" value="(\w+)"', answer.text)
    assert tag is not None
    again = await submit(client, path, given | {"tag": tag[1]}, headers)
    assert again.status_code == 303
    assert (await platform.ledger.catalogue.event(EVENT_ID)).name == "Second"


async def test_w12_codes_of_a_batch_are_the_same_each_time_and_only_their_numbers_are_noted(platform: Platform) -> None:
    await on_sale(platform)
    editor, codes, event = (
        Editor("stf_x", "org_hall"),
        platform.organiser.codes,
        await platform.ledger.catalogue.event(EVENT_ID),
    )
    first, second = await codes.make(editor, event, "general", 5), await codes.make(editor, event, "general", 7)
    kept = await codes.batches(editor, EVENT_ID)
    assert [(one.first, one.count) for one in kept] == [(second.first, 7), (first.first, 5)]
    texts = codes.texts(event, kept[1])
    assert texts == codes.texts(event, first)
    assert not set(texts) & set(codes.texts(event, second))
    assert [platform.room.service.codes.check(EVENT_ID, text).lane for text in texts] == [0] * 5
    assert await codes.used(EVENT_ID) == 0
    for lane, count in (("nowhere", 5), ("general", 0), ("general", 10_001)):
        with pytest.raises(InvalidInput):
            await codes.make(editor, event, lane, count)
    assert await codes.batches(Editor("stf_y", "org_other"), EVENT_ID) == []


@pytest.mark.parametrize(
    ("typed", "minor"),
    [
        ("45", 4500),
        ("45.5", 4550),
        ("45,50", 4550),
        ("0", 0),
        ("1 000", 100_000),
        ("-1", None),
        ("4.555", None),
        ("1e5", None),
        ("4٫5", None),
        ("99999999999", None),
    ],
)
def test_amounts_are_read_as_people_type_them(typed: str, minor: int | None) -> None:
    reading = Reading(Form([("price", typed)]), "UTC", "EUR")
    found = reading.money("price", needed=True)
    assert (found if not reading.errors else None) == minor


def test_amounts_percentages_and_moments_go_there_and_back() -> None:
    assert money_text(4550, "EUR") == "45.50"
    assert money_text(1200, "JPY") == "1200"
    yen = Reading(Form([("price", "12.5")]), "UTC", "JPY")
    yen.money("price")
    assert yen.errors["price"]
    summer = Reading(Form([("at", "2031-07-01T20:00"), ("p", "2,5"), ("bad", "tomorrow")]), "Europe/Vienna")
    at_us = summer.when("at")
    assert local_text(at_us, "Europe/Vienna") == "2031-07-01T20:00"
    assert local_text(at_us, "UTC") == "2031-07-01T18:00"
    assert summer.percent("p") == 250
    assert summer.when("bad") == 0
    assert list(summer.errors) == ["bad"]
