"""What search engines and social networks read: the head of an event's page, JSON-LD, sitemaps, robots.txt, posters."""

import gzip
import io
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from PIL import Image

from frontrow.boxoffice.events.model.events import EventStatus, Fee, FeesShown, PriceTier
from frontrow.boxoffice.events.posters import poster_of, poster_svg
from frontrow.core.clock import US_PER_S
from frontrow.shared.money import Money
from frontrow.testing.clock import ManualClock
from frontrow.web.site import event_markup
from frontrow.web.site.event_markup import plain_text
from frontrow.web.site.fans.sitemaps import Sitemaps
from tests.support.browser_headers import BROWSER
from tests.web.api.support import EVENT_ID, a_client, a_platform, one_row, put_event
from tests.web.site.event_markup import LD, wait_for_event
from tests.web.site.purchases import NOW_US, STARTS_US, buy

META = re.compile(r'<meta (?:name|property)="([^"]+)" content="([^"]*)">')
NAMES = {"s": "http://www.sitemaps.org/schemas/sitemap/0.9"}


async def test_an_event_says_what_it_is_where_when_and_what_it_costs(tmp_path: Path) -> None:
    clock = ManualClock(NOW_US)
    async with a_platform(tmp_path, one_row(2), clock=clock) as platform, a_client(platform) as client:
        site = platform.settings.public_url.rstrip("/")
        told = (
            "# An evening\n\nwith **<b>strings</b>** & [more](https://example.org), </script><script>alert(1)</script>"
        )
        tiers = (PriceTier("front", Money(4950, "EUR"), "Front"),)
        fees = (Fee("Service", per_seat_minor=50),)
        await put_event(platform, one_row(2), description=told, tiers=tiers, fees=fees)
        await wait_for_event(platform, "An evening")
        page = (await client.get(f"/events/{EVENT_ID}", headers=BROWSER)).text
        url = f"{site}/events/{EVENT_ID}"
        meta = dict(META.findall(page))
        assert f'<link rel="canonical" href="{url}">' in page
        assert meta["description"].startswith("An evening with &lt;b&gt;strings&lt;/b&gt; &amp; more,")
        assert (meta["og:title"], meta["og:url"], meta["og:image"]) == ("Aurora", url, f"{url}/poster.png")
        (text,) = LD.findall(page)
        about = json.loads(text)
        assert (about["@type"], about["name"], about["url"]) == ("Event", "Aurora", url)
        assert about["startDate"] == "2027-01-25T09:00:00+01:00"
        assert about["location"] == {
            "@type": "Place",
            "name": "Small Hall",
            "address": {"@type": "PostalAddress", "addressLocality": "Vienna", "addressCountry": "AT"},
        }
        (offer,) = about["offers"]
        assert (offer["price"], offer["priceCurrency"], offer["url"]) == ("50.00", "EUR", url)  # with its fee
        assert offer["availability"] == "https://schema.org/InStock"
        assert offer["validFrom"] == "2027-01-14T09:00:00+01:00"
        await buy(platform, "S-A-1", "S-A-2")
        page = (await client.get(f"/events/{EVENT_ID}", headers=BROWSER)).text
        assert json.loads(LD.findall(page)[0])["offers"][0]["availability"] == "https://schema.org/SoldOut"

        poster = await client.get(f"/events/{EVENT_ID}/poster.png", headers=BROWSER)
        assert Image.open(io.BytesIO(poster.content)).size == (1200, 630)
        assert (await client.get("/events/evt_none/poster.png", headers=BROWSER)).status_code == 404


async def test_the_list_of_events_says_what_is_paid_on_top_of_a_price(tmp_path: Path) -> None:
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        tiers = (PriceTier("front", Money(4950, "EUR"), "Front"),)
        fees = (Fee("Service", per_seat_minor=50),)
        await put_event(platform, one_row(2), tiers=tiers, fees=fees, fees_shown=FeesShown.BESIDE, name="Beside")
        await put_event(platform, one_row(2), tiers=tiers, fees=fees, name="Included", id="evt_included")
        page = (await client.get("/", headers=BROWSER)).text
        assert re.findall(r"from €[^<]*", page) == ["from €49.50 + €0.50 fees", "from €50"]


async def test_the_sitemap_lists_what_is_public_in_files_of_a_bounded_size(tmp_path: Path) -> None:
    clock = ManualClock(NOW_US)
    async with a_platform(tmp_path, clock=clock) as platform, a_client(platform) as client:
        site = platform.settings.public_url.rstrip("/")
        await put_event(platform, id="evt_draft", status=EventStatus.DRAFT)
        for number in range(4):
            await put_event(platform, id=f"evt_{number}", starts_at_us=STARTS_US + number)
        robots = (await client.get("/robots.txt")).text
        assert f"Sitemap: {site}/sitemap.xml" in robots
        assert "Disallow: /bookings/" in robots
        whole = ElementTree.fromstring((await client.get("/sitemap.xml")).content)
        found = [one.text for one in whole.findall("s:url/s:loc", NAMES)]
        assert found == [
            f"{site}/",
            *(f"{site}/events/{one}" for one in ("evt_0", EVENT_ID, "evt_1", "evt_2", "evt_3")),
        ]
        assert whole.findall("s:url/s:lastmod", NAMES)[0].text == "2027-01-15T08:00:00Z"
        assert (await client.get("/sitemaps/2")).status_code == 404

        small = Sitemaps(platform.ledger.catalogue, site, platform.clock, per_file=2)
        assert len(await small.files()) == 3
        index = ElementTree.fromstring(gzip.decompress(await small.whole()))
        assert [one.text for one in index.findall("s:sitemap/s:loc", NAMES)] == [
            f"{site}/sitemaps/{number}" for number in (1, 2, 3)
        ]
        await put_event(platform, id="evt_new")
        assert len(await small.files()) == 3  # kept for a while
        clock.advance(us=601 * US_PER_S)
        assert len(await small.files()) == 4


def test_posters_differ_per_event_and_stay() -> None:
    drawn = {poster_svg(f"evt_{number}") for number in range(300)}
    assert len(drawn) == 300
    assert {type(shape).__name__ for number in range(50) for shape in poster_of(f"evt_{number}").shapes} == {
        "Column",
        "Ellipse",
        "Polygon",
    }
    poster_svg.cache_clear()
    assert poster_svg("evt_1") in drawn
    assert max(map(len, drawn)) < 8_000


def test_a_description_is_cut_at_a_word() -> None:
    assert plain_text("word " * 100) == "word " * 39 + "word …"
    assert plain_text("- one\n- *two*\n\n> three `four`") == "one two three four"


def test_marks_are_taken_off_the_beginning_of_a_description() -> None:
    for markdown, plain in (
        ("A [link](https://example.org/a_(b)) here", "A link here"),
        ("![poster](p.png) # not a heading", "poster # not a heading"),
        ("## Heading\n\n* one\n+ two", "Heading one two"),
        ("[[nested](a)](b)", "[nested](b)"),
        ("\n" * 10_000 + "late", "…"),
    ):
        assert plain_text(markdown) == plain, markdown[:40]


def test_a_long_description_is_read_as_far_as_its_beginning_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """10,000 brackets or empty lines stopped the loop for two seconds: each was searched to the end of the text."""
    read: list[str] = []

    class Counting:
        def sub(self, replace: Any, text: str) -> str:
            read.append(text)
            return marks.sub(replace, text)

    marks = event_markup._MARKS
    monkeypatch.setattr(event_markup, "_MARKS", Counting())
    for unit in ("[", "![", "[a](", "\n", " \n", "\t", "[a](b(", "*"):
        text = (unit * 10_000)[:10_000]
        plain_text(text)
        (seen,) = read
        read.clear()
        assert len(seen) <= event_markup.MAX_READ_CHARS
        # From each character the pattern looks at most to the next one that could begin a match: summed up, a few
        # times the length of the text, where it was the square of it.
        looked = sum(len(found[0]) for at in range(len(seen)) for found in [AHEAD.match(seen, at)] if found)
        assert looked <= 4 * len(seen), unit


AHEAD = re.compile(r"!?\[[^\[\]\n]*(?:\]\([^()\n]*)?|^[ \t]*", re.MULTILINE)
