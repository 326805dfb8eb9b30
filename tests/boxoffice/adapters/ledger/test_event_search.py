"""B1: events are found by text, place, date, price and free seats, by index, among thousands that do not matter."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from bench.events import DAY_US, HOUR_US, NOW_US, PLAN, PLAN_HASH, load_events, many_events
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.events.event_listing import EventBrowser
from frontrow.boxoffice.events.model.event_search import EventSearch, fold, index_texts, local_us
from frontrow.boxoffice.events.model.events import Event, EventStatus, PriceTier
from frontrow.boxoffice.holds.events_on_sale import Sales
from frontrow.boxoffice.seats.formats.plan_document import plan_bytes
from frontrow.boxoffice.seats.model.venues import Venue
from frontrow.core.errors import InvalidInput
from frontrow.shared.money import Money

SHOW = Event(
    "evt_show",
    "Café del Mar — live",
    "ven_vienna",
    PLAN_HASH,
    "EUR",
    NOW_US + 10 * DAY_US,
    NOW_US - DAY_US,
    NOW_US + 9 * DAY_US,
    (PriceTier("standing", Money(5_000, "EUR")), PriceTier("seat", Money(9_000, "EUR"))),
    status=EventStatus.ON_SALE,
    description="Ein Abend über den Dächern",
)
VENUES = (
    Venue("ven_vienna", "Große Halle", PLAN_HASH, "Wien", "AT", "Europe/Vienna"),
    Venue("ven_tokyo", "東京ドーム", PLAN_HASH, "Tōkyō", "JP", "Asia/Tokyo"),
    Venue("ven_york", "O'Brien's Bar", PLAN_HASH, "New York", "US", "America/New_York"),
)


@pytest.fixture
async def shows(ledger: SqlLedger) -> SqlLedger:
    await ledger.catalogue.put_plan(PLAN_HASH, PLAN, plan_bytes(PLAN).decode(), NOW_US)
    for venue in VENUES:
        await ledger.catalogue.put_venue(venue, NOW_US)
    await ledger.catalogue.put_events(
        [
            SHOW,
            replace(
                SHOW, id="evt_tokyo", name="Ёлка и Σίσυφος", venue_id="ven_tokyo", starts_at_us=NOW_US + 20 * DAY_US
            ),
            replace(
                SHOW,
                id="evt_york",
                name="Straßenfest",
                venue_id="ven_york",
                starts_at_us=NOW_US + 30 * DAY_US,
                currency="USD",
                tiers=(PriceTier("standing", Money(1_500, "USD")),),
                status=EventStatus.SOLD_OUT,
            ),
            replace(SHOW, id="evt_draft", status=EventStatus.DRAFT),
            replace(SHOW, id="evt_over", status=EventStatus.COMPLETED),
        ],
        NOW_US,
    )
    return ledger


async def found(ledger: SqlLedger, words: str = "", **asked: Any) -> list[str]:
    asked.setdefault("status", None)
    events, _ = await ledger.catalogue.find_events(EventSearch(words, **asked))
    return [event.id.removeprefix("evt_") for event in events]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("", ["show", "tokyo", "york"]),
        ("cafe mar", ["show"]),
        ("CAFÉ WIEN", ["show"]),
        ("uber dach", ["show", "tokyo", "york"]),
        ("grosse halle", ["show"]),
        ("елка σισυφοσ", ["tokyo"]),
        ("ドーム", ["tokyo"]),
        ("tokyo", ["tokyo"]),
        ("strassenfest", ["york"]),
        ("ＳＴＲＡＳＳＥＮ brien", ["york"]),
        ("cafe york", []),
        ("afe", []),
        ("!!! ***", ["show", "tokyo", "york"]),
        ("' OR 1=1 --", []),
        ("%", ["show", "tokyo", "york"]),
    ],
)
async def test_b1_words_match_whatever_their_case_accents_and_script(
    shows: SqlLedger, words: str, wanted: list[str]
) -> None:
    assert await found(shows, words) == wanted


async def test_b1_place_date_price_and_status_narrow_a_search(shows: SqlLedger) -> None:
    day = NOW_US + 30 * DAY_US
    assert await found(shows, city="new york") == ["york"]
    assert await found(shows, city="NEW") == ["york"]
    assert await found(shows, city="york") == []
    assert await found(shows, venue="o brien") == ["york"]
    assert await found(shows, venue="ven_tokyo") == ["tokyo"]
    assert await found(shows, venue="ven_tok") == []
    assert await found(shows, from_us=day) == ["york"]
    assert await found(shows, before_us=day) == ["show", "tokyo"]
    assert await found(shows, max_price_minor=1_500) == ["york"]
    assert await found(shows, max_price_minor=5_000, currency="EUR") == ["show", "tokyo"]
    assert await found(shows, min_price_minor=9_001) == []
    assert await found(shows, "cafe", max_price_minor=5_000, city="wien", before_us=day) == ["show"]
    assert await found(shows, status=EventStatus.SOLD_OUT) == ["york"]
    assert await found(shows, status=EventStatus.COMPLETED) == ["over"]
    assert await found(shows, sale_from_us=NOW_US) == []
    assert await shows.catalogue.listed_currencies() == ["EUR", "USD"]
    assert await found(shows, free=PLAN.size) == ["show", "tokyo", "york"]
    assert await found(shows, free=PLAN.size + 1) == []


async def test_b1_a_date_is_a_day_at_the_venue(shows: SqlLedger) -> None:
    """A show at 20:00 in New York is on that day, although it is the next one in UTC."""
    midnight = NOW_US - NOW_US % DAY_US + 40 * DAY_US
    await shows.catalogue.put_event(
        replace(SHOW, id="evt_late", venue_id="ven_york", starts_at_us=midnight + DAY_US + HOUR_US), NOW_US
    )
    assert local_us(midnight + DAY_US + HOUR_US, "America/New_York") == midnight + 20 * HOUR_US
    day = {"local_from_us": midnight, "local_before_us": midnight + DAY_US}
    assert await found(shows, **day) == ["late"]


async def test_b1_a_change_of_event_or_venue_is_found_at_once_and_the_old_words_are_gone(shows: SqlLedger) -> None:
    await shows.catalogue.put_event(replace(SHOW, name="Nachtmusik", tiers=SHOW.tiers[1:]), NOW_US + 1)
    assert await found(shows, "cafe del") == []
    assert await found(shows, "nachtmusik", max_price_minor=5_000) == []
    assert await found(shows, "nachtmusik", max_price_minor=9_000) == ["show"]
    await shows.catalogue.put_venue(
        replace(VENUES[0], name="Kleiner Saal", city="Graz", time_zone="Asia/Tokyo"), NOW_US + 2
    )
    assert await found(shows, "halle") == []
    assert await found(shows, "saal", city="graz") == ["show"]
    assert await found(shows, city="wien") == []
    local = local_us(SHOW.starts_at_us, "Asia/Tokyo")
    assert await found(shows, local_from_us=local, local_before_us=local + 1) == ["show"]


async def test_b1_pages_by_cursor_and_by_number_miss_nothing(shows: SqlLedger) -> None:
    await shows.catalogue.put_events(
        [replace(SHOW, id=f"evt_{n:02d}") for n in range(25)], NOW_US
    )  # all at the same time
    everything = await found(shows, "cafe", limit=100)
    assert len(everything) == 26
    browse, seen = EventBrowser(shows.catalogue, Sales()), []
    search = EventSearch("cafe", status=None, limit=10)
    for _ in range(3):
        page = await browse.search(search)
        seen += [listing.event.id.removeprefix("evt_") for listing in page.listings]
        search = msgspec.structs.replace(search, after=page.after or (-1, ""))
    assert (seen, page.after) == (everything, None)
    numbered = [await found(shows, "cafe", limit=10, page=number) for number in (1, 2, 3, 4)]
    assert [one for page in numbered for one in page] == everything
    for wrong in ({"limit": 101}, {"limit": 0}, {"page": 101}, {"words": "x" * 201}):
        with pytest.raises(InvalidInput):
            await shows.catalogue.find_events(EventSearch(**wrong))


async def test_b1_thousands_of_drafts_and_past_events_hide_nothing(ledger: SqlLedger) -> None:
    """The home page was empty once 60 past or draft events existed: it filtered the oldest 60."""
    await load_events(ledger, many_events(4_000, live_every=500))
    listed, more = await ledger.catalogue.find_events(EventSearch(status=None, from_us=NOW_US, limit=5))
    assert [event.id for event in listed] == [f"evt_{number:08d}" for number in range(0, 2_500, 500)]
    assert more
    (one,), _ = await ledger.catalogue.find_events(
        EventSearch(f"Künstler{1_500 % 5_000} Nacht", status=None, city="Stadt90")
    )
    assert (one.id, one.status) == ("evt_00001500", EventStatus.ON_SALE)


def test_folding_is_bounded_and_keeps_marks_that_make_letters() -> None:
    assert fold("  Ünï-cødé!  ") == "uni code"
    assert fold("हिन्दी") == "हिन्दी"
    assert fold("ガ") == "ガ"
    assert index_texts(["東京 ab"]) == ["東京", "京", "ab"]
    assert len(index_texts(["x" * 100_000])) == 1
    assert len(index_texts([" ".join(map(str, range(10_000)))])) == 300
    assert len(index_texts(["京都" * 5_000])) <= 300
