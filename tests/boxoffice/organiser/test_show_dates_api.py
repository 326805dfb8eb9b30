"""Several dates of one show: made at once over both ledgers, and walked by API and pages (B13)."""

import asyncio
from datetime import datetime

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
from tests.boxoffice.organiser.http import EVENTS, a_desk, a_venue_body, an_event_body
from tests.boxoffice.organiser.support import ADA, BOB, a_clock, an_office, on_sale
from tests.web.site.test_pages import BROWSER, FORM

DATES = [datetime(2027, 5, day, 19, 30) for day in (7, 8, 14)]


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


async def test_a_season_of_weekends_from_the_rule_to_the_fans_page(tmp_path):
    async with a_desk(tmp_path) as desk:
        venue = await desk.post("/v1/organiser/venues", 201, json=a_venue_body(time_zone="Europe/Vienna"))
        body = an_event_body(venue["venue"], starts_at="2098-03-21T19:30:00+01:00", sale_ends_at="2098-03-21T18:00:00Z")
        event = (await desk.post(EVENTS, 201, json=body))["event"]
        path, page = f"{EVENTS}/{event}/dates", f"/organiser/events/{event}/dates"
        rule = {
            "weekdays": ["fri", "sat"],
            "times": ["19:30:00"],
            "first_day": "2098-03-24",
            "last_day": "2098-04-06",
        }
        wrong = await desk.ask("POST", path, json={"rule": rule | {"last_day": "2098-03-01"}})
        assert (wrong.status_code, wrong.json()["param"]) == (422, "last_day")
        made = await desk.post(path, 201, json={"rule": rule, "opening": "relative"})
        assert made["added"] == 4
        starts = [one["starts_at"] for one in made["dates"]]
        assert starts[1:] == [  # the clocks change on 30 March 2098
            "2098-03-28T18:30:00Z",
            "2098-03-29T18:30:00Z",
            "2098-04-04T17:30:00Z",
            "2098-04-05T17:30:00Z",
        ]
        # the page: a look at two more dates, of which the show has one, then making the other
        cookie = {"cookie": f"{SESSION_COOKIE}={desk.person.session}"}
        csrf = {"csrf": csrf_of(desk.person.session)}
        typed = csrf | {"list": "2098-03-28 19:30\n2098-04-11 15:00", "opening": "same"}
        look = await desk.client.post(page, data=typed, headers=FORM | cookie)
        assert look.status_code == 200
        assert "1 date will be made:" in look.text
        assert "11 Apr 2098" in look.text
        assert 'name="make"' in look.text
        bad = await desk.client.post(page, data=typed | {"list": "soon"}, headers=FORM | cookie)
        assert (bad.status_code, "Write one date per line" in bad.text) == (422, True)
        skipped = await desk.client.post(page, data=typed | {"list": "2098-03-30 02:30"}, headers=FORM | cookie)
        assert (skipped.status_code, "the clocks skip it" in skipped.text) == (422, True)
        half = csrf | {"day4": "1", "first": "2098-05-01", "opening": "same"}
        missing = await desk.client.post(page, data=half, headers=FORM | cookie)
        assert missing.status_code == 422
        assert 'id="last-err"' in missing.text
        assert 'id="time-err"' in missing.text
        done = await desk.client.post(page, data=typed | {"make": "1"}, headers=FORM | cookie)
        assert (done.status_code, done.headers["location"]) == (303, f"{page}?done=added")
        # drafts are not public; published they offer each other
        assert (await desk.client.get(f"/v1/events/{event}/dates")).status_code == 404
        published = await desk.client.post(f"{page}/publish", data=csrf, headers=FORM | cookie)
        assert published.headers["location"] == f"{page}?done=published"
        listed = (await desk.get(path))["dates"]
        assert [one["status"] for one in listed] == ["on_sale"] * 6
        public = (await desk.client.get(f"/v1/events/{event}/dates")).json()["dates"]
        assert [one["id"] for one in public] == [one["event"] for one in listed]
        seen = (await desk.client.get(f"/v1/events/{listed[-1]['event']}")).json()
        assert seen["show"] == (await desk.get(f"{EVENTS}/{event}"))["show"] != ""
        fans = (await desk.client.get(f"/events/{listed[-1]['event']}", headers=BROWSER)).text
        assert "Other dates" in fans
        assert [f"/events/{one['event']}" in fans for one in listed[:-1]] == [True] * 5
        alone = (await desk.client.get(f"/events/{desk.event}", headers=BROWSER)).text
        assert "Other dates" not in alone
        again = await desk.client.post(f"{page}/publish", data=csrf, headers=FORM | cookie)
        assert again.status_code == 303
