"""Several dates of one show: made at once over both ledgers, and walked by API and pages (B13)."""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx
import pytest

from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.events.model.events import EventNotFound, EventStatus
from frontrow.boxoffice.events.model.published_changes import FixedOncePublished
from frontrow.boxoffice.events.model.show_dates import MAX_DATES, SaleOpening
from frontrow.boxoffice.events.show_dates import ShowDates
from frontrow.boxoffice.people.model.people import csrf_of
from frontrow.core.errors import InvalidInput
from frontrow.shared.ids import Ids
from frontrow.web.http.cookies import SESSION_COOKIE
from tests.boxoffice.organiser.http import EVENTS, OrganiserApi, a_venue_body, an_event_body, an_organiser_api
from tests.boxoffice.organiser.support import ADA, BOB, a_clock, an_office, on_sale
from tests.support.browser_headers import BROWSER, FORM
from tests.support.form_answers import submit

DATES = [datetime(2027, 5, day, 19, 30) for day in (7, 8, 14)]
WEEKENDS = {
    "weekdays": ["fri", "sat"],
    "times": ["19:30:00"],
    "first_day": "2098-03-24",
    "last_day": "2098-04-06",
}


def a_plan_of_dates(ledger: SqlLedger) -> tuple[ShowDates, object]:
    clock = a_clock()
    office = an_office(ledger, clock)
    return ShowDates(ledger, office, clock, Ids(clock)), office


async def test_dates_are_made_at_once_like_the_first_and_know_each_other(ledger):
    shows, office = a_plan_of_dates(ledger)
    first = await on_sale(office, max_per_person=3)
    made = await shows.add(ADA, first.id, DATES, SaleOpening.SAME)
    assert (made.added, len(made.events)) == (3, 4)
    changed = await ledger.catalogue.event(first.id)
    assert changed.show_id.startswith("shw_")
    assert changed.status is EventStatus.ON_SALE
    drafts = [one for one in made.events if one.id != first.id]
    assert {one.show_id for one in drafts} == {changed.show_id}
    assert {(one.tiers, one.max_per_person, one.status) for one in drafts} == {(first.tiers, 3, EventStatus.DRAFT)}
    repeated = await shows.add(ADA, drafts[0].id, [*DATES, datetime(2027, 5, 15, 19, 30)], SaleOpening.RELATIVE)
    assert (repeated.added, len(repeated.events)) == (1, 5)
    copied = await office.copy(ADA, drafts[0].id, "Another show")
    assert copied.event.show_id == ""
    published = await shows.publish(ADA, first.id)
    assert {one.status for one in published} == {EventStatus.ON_SALE}
    acts = [one.act for one in await ledger.organiser.changes("org_hall", first.id, 0, 10)]
    assert acts == ["add_dates", "publish_event", "create_event"]
    of_draft = await ledger.organiser.changes("org_hall", drafts[0].id, 0, 10)
    assert [one.act for one in of_draft] == ["publish_event", "add_dates", "create_event"]


async def test_two_people_who_add_the_same_dates_at_once_make_them_once(ledger):
    shows, office = a_plan_of_dates(ledger)
    first = await on_sale(office)
    both = await asyncio.gather(*(shows.add(ADA, first.id, DATES, SaleOpening.SAME) for _ in range(8)))
    assert sum(one.added for one in both) == 3
    assert len(await shows.of(ADA, first.id)) == 4


async def test_dates_that_cannot_be_are_refused_and_nothing_is_made(sqlite_ledger):
    shows, office = a_plan_of_dates(sqlite_ledger)
    first = await on_sale(office)
    with pytest.raises(EventNotFound):
        await shows.add(BOB, first.id, DATES, SaleOpening.SAME)
    most = [datetime(2027, 5, 1 + n // 20, n % 20) for n in range(MAX_DATES)]
    with pytest.raises(InvalidInput, match="at most 100 dates"):
        await shows.add(ADA, first.id, most, SaleOpening.SAME)
    assert await shows.of(ADA, first.id) == (first,)
    before_sale = [datetime(2026, 1, 1, 20)]  # its sale would end before it starts
    with pytest.raises(InvalidInput) as refused:
        await shows.add(ADA, first.id, before_sale, SaleOpening.SAME)
    assert refused.value.param == "sale_ends_at"
    await office.complete(ADA, first.id)
    with pytest.raises(FixedOncePublished):
        await shows.add(ADA, first.id, DATES, SaleOpening.SAME)


@dataclass
class Season:
    """A show on the weekends of two weeks, in Vienna: five drafts, made by a rule."""

    api: OrganiserApi
    event: str
    made: dict[str, Any]  # what the API answered

    @property
    def path(self) -> str:
        return f"{EVENTS}/{self.event}/dates"

    @property
    def page(self) -> str:
        return f"/organiser/events/{self.event}/dates"

    async def post_form(self, path: str, **fields: str) -> httpx.Response:
        session = self.api.person.session
        headers = FORM | {"cookie": f"{SESSION_COOKIE}={session}"}
        return await submit(self.api.client, path, {"csrf": csrf_of(session)} | fields, headers)


@pytest.fixture
async def season(tmp_path):
    async with an_organiser_api(tmp_path) as api:
        venue = await api.post("/v1/organiser/venues", 201, json=a_venue_body(time_zone="Europe/Vienna"))
        body = an_event_body(venue["venue"], starts_at="2098-03-21T19:30:00+01:00", sale_ends_at="2098-03-21T18:00:00Z")
        event = (await api.post(EVENTS, 201, json=body))["event"]
        made = await api.post(f"{EVENTS}/{event}/dates", 201, json={"rule": WEEKENDS, "opening": "relative"})
        yield Season(api, event, made)


async def test_a_rule_makes_dates_at_the_same_local_time(season):
    assert season.made["added"] == 4
    assert [one["starts_at"] for one in season.made["dates"]][1:] == [  # the clocks change on 30 March 2098
        "2098-03-28T18:30:00Z",
        "2098-03-29T18:30:00Z",
        "2098-04-04T17:30:00Z",
        "2098-04-05T17:30:00Z",
    ]


async def test_a_rule_that_ends_before_it_begins_is_refused(season):
    wrong = await season.api.ask("POST", season.path, json={"rule": WEEKENDS | {"last_day": "2098-03-01"}})
    assert (wrong.status_code, wrong.json()["param"]) == (422, "last_day")


async def test_the_page_shows_which_dates_are_new_before_it_makes_them(season):
    typed = {"list": "2098-03-28 19:30\n2098-04-11 15:00", "opening": "same"}  # the show has the first
    look = await season.post_form(season.page, **typed)
    assert look.status_code == 200
    assert "1 date will be made:" in look.text
    assert "11 Apr 2098" in look.text
    assert 'name="make"' in look.text
    done = await season.post_form(season.page, **typed, make="1")
    assert (done.status_code, done.headers["location"]) == (303, f"{season.page}?done=added")
    assert len((await season.api.get(season.path))["dates"]) == 6


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"list": "soon"}, ["Write one date per line"]),
        ({"list": "2098-03-30 02:30"}, ["the clocks skip it"]),
        ({"day4": "1", "first": "2098-05-01"}, ['id="last-err"', 'id="time-err"']),
    ],
    ids=["no date", "no such time", "half a rule"],
)
async def test_the_page_says_what_is_wrong_with_dates(season, typed, said):
    refused = await season.post_form(season.page, **typed, opening="same")
    assert refused.status_code == 422
    assert [words for words in said if words not in refused.text] == []


async def test_published_dates_are_public_and_offer_each_other(season):
    api = season.api
    assert (await api.client.get(f"/v1/events/{season.event}/dates")).status_code == 404, "drafts are not"
    for _ in range(2):  # again: nothing is left to publish
        published = await season.post_form(f"{season.page}/publish")
        assert (published.status_code, published.headers["location"]) == (303, f"{season.page}?done=published")
    listed = (await api.get(season.path))["dates"]
    assert [one["status"] for one in listed] == ["on_sale"] * 5
    public = (await api.client.get(f"/v1/events/{season.event}/dates")).json()["dates"]
    assert [one["id"] for one in public] == [one["event"] for one in listed]
    seen = (await api.client.get(f"/v1/events/{listed[-1]['event']}")).json()
    assert seen["show"] == (await api.get(f"{EVENTS}/{season.event}"))["show"] != ""
    fans = (await api.client.get(f"/events/{listed[-1]['event']}", headers=BROWSER)).text
    assert "Other dates" in fans
    assert [f"/events/{one['event']}" in fans for one in listed[:-1]] == [True] * 4
    alone = (await api.client.get(f"/events/{api.event}", headers=BROWSER)).text
    assert "Other dates" not in alone
