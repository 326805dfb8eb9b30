"""B1: events are listed and found by words, with free seats by section and price tier."""

from dataclasses import replace
from pathlib import Path

import pytest

from frontrow.boxoffice.events.event_listing import EventBrowser, FreeSeats
from frontrow.boxoffice.events.model.event_search import EventSearch
from frontrow.boxoffice.events.model.events import EventStatus
from frontrow.boxoffice.seats.model.venues import Venue
from frontrow.core.errors import InvalidInput
from tests.boxoffice.shop import EVENT, NOW, open_shop, sqlite_url


async def test_events_are_found_by_all_their_words_page_by_page(tmp_path: Path) -> None:
    async with open_shop(sqlite_url(tmp_path)) as shop:
        await shop.ledger.catalogue.put_venue(Venue("ven_1", "Olympia Hall", "0" * 64, "Munich", "DE"), NOW)
        for number in range(30):
            name = f"Aurora {number}" if number % 2 else f"Borealis {number}"
            await shop.ledger.catalogue.put_event(replace(shop.event, id=f"evt_{number:02d}", name=name), NOW)
        await shop.ledger.catalogue.put_event(
            replace(shop.event, id="evt_d", name="Aurora", status=EventStatus.DRAFT), NOW
        )
        browse = EventBrowser(shop.ledger.catalogue, shop.sales)
        first = await browse.search(EventSearch("aurora MUNICH", limit=10))
        assert len(first.listings) == 10
        assert first.after is not None
        rest = await browse.search(EventSearch("aurora munich", after=first.after, limit=10))
        assert len(rest.listings) == 5
        assert rest.after is None
        names = [listing.event.name for page in (first, rest) for listing in page.listings]
        assert names == [f"Aurora {number}" for number in range(1, 30, 2)]
        assert (await browse.search(EventSearch("aurora berlin"))).listings == ()
        assert len((await browse.search(EventSearch("aurora", status=EventStatus.DRAFT))).listings) == 1
        with pytest.raises(InvalidInput):
            await browse.search(EventSearch(limit=101))


async def test_free_seats_are_counted_by_section_and_by_tier(tmp_path: Path) -> None:
    async with open_shop(sqlite_url(tmp_path), withheld=frozenset({39})) as shop:
        browse = EventBrowser(shop.ledger.catalogue, shop.sales)
        await shop.hold("ann", 3, 4)
        await shop.buy(await shop.hold("bob", 80))
        told = browse.availability(EVENT)
        assert (told.free, told.size) == (136, 140)
        assert told.sections == (FreeSeats("A", 37, 40), FreeSeats("B", 40, 40), FreeSeats("S", 59, 60))
        assert told.tiers == (FreeSeats("standard", 77, 80, 5000), FreeSeats("standing", 59, 60, 3000))
