"""Brands of organisations: one colour and a logo, on every page of their sales and nowhere else."""

import base64
import hashlib
import io
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

from frontrow.app.wiring import Platform
from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.events.event_art import poster_colour
from frontrow.boxoffice.events.model.event_changes import Editor
from frontrow.boxoffice.events.model.pictures import KEEP_UNUSED_US, PictureTooLarge
from frontrow.boxoffice.events.picture_leftovers import PictureLeftovers
from frontrow.boxoffice.events.pictures import LOGO_HEIGHT, LOGO_WIDTH, MAX_LOGO_BYTES, prepare_logo
from frontrow.boxoffice.organiser.brands import Brands
from frontrow.boxoffice.organiser.model.brands import Brand
from frontrow.boxoffice.people.model.roles import Role
from frontrow.core.errors import InvalidInput
from frontrow.shared.heavy_work import HeavyWork
from frontrow.testing.clock import ManualClock
from tests.boxoffice.people.support import Person, api_key, member
from tests.support.browser_headers import BROWSER
from tests.support.built_files import serving_built
from tests.support.pictures import a_logo, a_picture, bomb
from tests.web.api.support import EVENT_ID, a_client, a_platform, put_event
from tests.web.room.page_size import MAX_PAGE_BYTES

BRAND = "/v1/organiser/brand"
FOREVER = "public, max-age=31536000, immutable"
OTHER_ID = "evt_01JCQ3W2N4X7Z8Y9A0B1C2D3E5"


@dataclass
class Branded:
    """Two organisations with an event each. The first is yellow and has a logo, unless a test removes them."""

    platform: Platform
    client: httpx.AsyncClient
    owner: Person
    key: dict[str, str]
    plain: httpx.Response  # the event's page before
    colour: dict[str, Any]  # what the API answered
    logo_url: str

    async def page(self, path: str = f"/events/{EVENT_ID}") -> httpx.Response:
        return await self.client.get(path, headers=BROWSER)


@pytest.fixture
def built(tmp_path: Path) -> Iterator[None]:
    """The pages as a wheel has them, with scripts and styles minified."""
    with serving_built(tmp_path / "built"):
        yield


@pytest.fixture
async def branded(tmp_path: Path) -> AsyncIterator[Branded]:
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        owner = await member(platform, Role.OWNER, "org_hall")
        await put_event(platform, organiser_id="org_hall")
        await put_event(platform, id=OTHER_ID, organiser_id="org_other")
        await platform.box_office.openings.refresh()
        key = {"authorization": f"Bearer {await api_key(platform, owner, ['events:read', 'events:write'])}"}
        plain = await client.get(f"/events/{EVENT_ID}", headers=BROWSER)
        colour = (await client.put(BRAND, json={"colour": "#FC0"}, headers=key)).json()
        logo = (await client.put(f"{BRAND}/logo", json={"logo": a_logo()}, headers=key)).json()
        assert logo == colour | {"logo_url": logo["logo_url"]}, "the logo leaves the colour"
        yield Branded(platform, client, owner, key, plain, colour, logo["logo_url"])


async def test_a_colour_is_shown_with_its_shades_before_and_after_it_is_saved(branded: Branded) -> None:
    assert branded.colour["colour"] == "#ffcc00"
    assert (branded.colour["light"]["adjusted"], branded.colour["dark"]["adjusted"]) == (True, False)
    assert branded.colour["dark"]["brand"] == "#ffcc00"
    preview = await branded.client.get(f"{BRAND}/preview", params={"colour": "#ffcc00"}, headers=branded.key)
    assert preview.json() == branded.colour | {"logo_url": branded.logo_url}


async def test_an_organisations_pages_have_its_colour_and_logo(branded: Branded) -> None:
    for path in (f"/events/{EVENT_ID}", f"/events/{EVENT_ID}/waitlist"):
        page = await branded.page(path)
        assert f'src="{branded.logo_url}"' in page.text
        assert 'alt="Hall"' in page.text
        assert 'class="branded"' in page.text
    assert (await branded.page()).headers["cache-control"] == branded.plain.headers["cache-control"], "kept as before"


async def test_pages_of_others_do_not_have_this_brand(branded: Branded) -> None:
    assert "/brands/ffcc00" not in branded.plain.text, "before there was one; the colour came from the poster"
    for path in ("/", "/sign-in", f"/events/{OTHER_ID}"):
        page = await branded.page(path)
        assert "/brands/ffcc00" not in page.text, path
        assert branded.logo_url not in page.text, path


async def test_a_brands_style_sheet_and_logo_are_kept_by_caches(branded: Branded) -> None:
    address = re.search(r'href="(/brands/ffcc00-[0-9a-f]{12}\.css)"', (await branded.page()).text)
    assert address
    sheet = await branded.client.get(address[1])
    assert (sheet.headers["cache-control"], sheet.headers["content-type"]) == (FOREVER, "text/css; charset=utf-8")
    assert f"--brand:light-dark({branded.colour['light']['brand']},#ffcc00)" in sheet.text
    older = await branded.client.get("/brands/ffcc00-000000000000.css")
    assert (older.text, older.headers["cache-control"]) == (sheet.text, "no-cache")
    shown = await branded.client.get(branded.logo_url)
    assert (shown.headers["content-type"], shown.headers["cache-control"]) == ("image/png", FOREVER)


@pytest.mark.usefixtures("built")
async def test_without_a_brand_the_waiting_room_has_the_posters_colour_within_its_bytes(branded: Branded) -> None:
    room = await branded.page(f"/v1/events/{OTHER_ID}/room/")
    assert f"--brand-fill:{poster_colour(OTHER_ID)};" in room.text
    assert len(room.content) <= MAX_PAGE_BYTES, len(room.content)


@pytest.mark.usefixtures("built")
async def test_the_waiting_rooms_page_has_the_brand_within_its_bytes(branded: Branded) -> None:
    room = await branded.page(f"/v1/events/{EVENT_ID}/room/")
    assert len(room.content) <= MAX_PAGE_BYTES, len(room.content)
    assert branded.logo_url in room.text
    styles = re.findall("<style>(.*?)</style>", room.text, re.S)
    assert branded.colour["light"]["brand"] in styles[1]
    names = re.findall(r"(--[\w-]+):", styles[1])
    assert len(names) == 5
    assert all(f"var({name}" in styles[0] for name in names), "names that the page uses"


async def test_the_waiting_rooms_policy_admits_the_brands_style_and_logo(branded: Branded) -> None:
    room = await branded.page(f"/v1/events/{EVENT_ID}/room/")
    policy, styles = room.headers["content-security-policy"], re.findall("<style>(.*?)</style>", room.text, re.S)
    hashes = [base64.b64encode(hashlib.sha256(style.encode()).digest()).decode() for style in styles]
    assert "style-src " + " ".join(f"'sha256-{one}'" for one in hashes) in policy
    assert "img-src 'self'" in policy
    bare = await branded.page(f"/v1/events/{OTHER_ID}/room/")
    assert "img-src" not in bare.headers["content-security-policy"]


async def test_a_brand_is_removed_part_by_part_and_the_audit_log_has_each_step(branded: Branded) -> None:
    removed = await branded.client.delete(f"{BRAND}/logo", headers=branded.key)
    assert removed.json() == branded.colour
    cleared = (await branded.client.put(BRAND, json={"colour": ""}, headers=branded.key)).json()
    assert cleared == {"colour": "", "logo_url": "", "light": None, "dark": None}
    assert (await branded.client.get(BRAND, headers=branded.key)).json() == cleared
    assert "/brands/ffcc00" not in (await branded.page()).text
    audit = (await branded.client.get("/organiser/audit", headers=BROWSER | branded.owner.bearer)).text
    for words in ("Brand changed", "Logo changed", "Logo removed", "Colour", "#ffcc00"):
        assert words in audit, words


async def test_what_cannot_be_a_brand_is_refused_in_words(tmp_path: Path) -> None:
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        owner = await member(platform, Role.OWNER, "org_hall")
        key = {"authorization": f"Bearer {await api_key(platform, owner, ['events:read', 'events:write'])}"}
        for colour in ("red", "#12345", "url(x)", "#a3123f}"):
            refused = await client.put(BRAND, json={"colour": colour}, headers=key)
            assert (refused.status_code, refused.json()["param"]) == (422, "colour"), colour
            assert "like #a3123f" in refused.json()["detail"]
        assert (await client.get(f"{BRAND}/preview?colour=", headers=key)).status_code == 422
        svg = base64.b64encode(b"<svg xmlns='http://www.w3.org/2000/svg'/>").decode()
        huge = base64.b64encode(bomb(60_000, 60_000)).decode()
        for logo, status in ((svg, 422), ("not base64!", 422), (huge, 413)):
            refused = await client.put(f"{BRAND}/logo", json={"logo": logo}, headers=key)
            assert (refused.status_code, refused.json()["param"]) == (status, "logo"), refused.text
        for path in ("/brands/red.css", "/brands/ffcc00.css", "/brands/ffcc00-zzzzzzzzzzzz.css", "/brands/"):
            assert (await client.get(path, headers=BROWSER)).status_code == 404, path
        assert platform.brands.of("org_hall") == Brand("org_hall")


@pytest.mark.parametrize(("colour", "plate"), [("#102040", (255, 255, 255)), ("#fdfdfd", (22, 27, 34))])
def test_a_transparent_logo_gets_a_plate_on_which_it_can_be_seen(colour: str, plate: tuple[int, int, int]) -> None:
    made = prepare_logo(a_logo(colour))
    image = Image.open(io.BytesIO(made.body))
    assert (image.format, image.size) == ("PNG", (made.width, made.height))
    assert image.width <= LOGO_WIDTH
    assert image.height <= LOGO_HEIGHT
    assert image.convert("RGB").getpixel((0, 0)) == plate
    assert image.convert("RGB").getpixel((image.width // 2, image.height // 2)) == Image.new(
        "RGB", (1, 1), colour
    ).getpixel((0, 0))


def test_a_logo_full_of_detail_still_becomes_small() -> None:
    noise = Image.effect_noise((600, 200), 90).convert("RGB")
    body = io.BytesIO()
    noise.save(body, "PNG")
    assert len(prepare_logo(base64.b64encode(body.getvalue())).body) <= MAX_LOGO_BYTES


def test_an_invisible_logo_and_a_dot_are_refused() -> None:
    for raw in (a_picture(size=(8, 8)), base64.b64decode(a_logo("#00000000"))):
        with pytest.raises(InvalidInput):
            prepare_logo(base64.b64encode(raw))
    with pytest.raises(PictureTooLarge):
        prepare_logo(base64.b64encode(bomb(2**31 - 1, 2**31 - 1)))


@pytest.fixture
async def ledger(ledger_url: str) -> AsyncIterator[SqlLedger]:
    opened = await open_ledger(ledger_url)
    yield opened
    await opened.aclose()


async def test_another_server_learns_of_a_brand(ledger: SqlLedger) -> None:
    """Also of one that was written a little before the newest it knows, by a server whose clock is behind."""
    clock = ManualClock(1_800_000_000_000_000)
    here, there = (Brands(ledger, clock, HeavyWork()) for _ in range(2))
    await here.change_colour(Editor("stf_1", "org_1"), "#112233")
    await there.refresh()
    assert there.of("org_1").colour == "#112233"
    behind = Brands(ledger, lambda: clock() - 5_000_000, HeavyWork())
    await behind.change_colour(Editor("stf_2", "org_late"), "#445566")
    await there.refresh()
    assert there.of("org_late").colour == "#445566"
    clock.advance(1)
    await here.put_logo(Editor("stf_1", "org_1"), a_logo())
    await here.change_colour(Editor("stf_1", "org_1"), "")
    await there.refresh()
    assert there.of("org_1") == here.of("org_1")
    assert (there.of("org_1").colour, there.of("org_1").logo is None) == ("", False)


async def test_a_picture_that_is_uploaded_again_is_not_deleted_under_its_uploader(ledger: SqlLedger) -> None:
    book, now_us, due_us = ledger.pictures, 1_000, 1_000 + KEEP_UNUSED_US
    await book.add("0" * 32, "org_hall", b"picture", now_us)
    ((found, check_at_us),) = await book.to_check(due_us, 10)
    await book.add("0" * 32, "org_hall", b"picture", now_us + 1)
    assert not await book.drop_unused(found, check_at_us, due_us)
    assert await book.find(found) == b"picture"
    assert await book.to_check(due_us, 10) == []
    assert await book.drop_unused(found, due_us + 1, due_us + 1)
    assert await book.find(found) is None


async def test_a_replaced_picture_is_deleted_once_nothing_shows_it(tmp_path: Path) -> None:
    async with a_platform(tmp_path) as platform:
        await put_event(platform, organiser_id="org_hall")
        editor, api, brands = Editor("stf_1", "org_hall"), platform.organiser.organise, platform.brands
        ledger, late = platform.ledger, [0]
        leftovers = PictureLeftovers(ledger.pictures, lambda: platform.clock() + late[0])

        async def kept(*hashes: str) -> list[bool]:
            return [await ledger.pictures.find(one) is not None for one in hashes]

        def encoded(size: tuple[int, int]) -> str:
            return base64.b64encode(a_picture(size=size)).decode()

        first = (await api.put_picture(editor, EVENT_ID, encoded((400, 300)))).event.picture
        copy = await api.copy(editor, EVENT_ID, "Again")
        second = (await api.put_picture(editor, EVENT_ID, encoded((500, 300)))).event.picture
        third = (await api.put_picture(editor, EVENT_ID, encoded((600, 300)))).event.picture
        old_logo = (await brands.put_logo(editor, a_logo())).logo
        new_logo = (await brands.put_logo(editor, a_logo("#802040"))).logo
        assert old_logo
        assert new_logo
        everything = (first, second, third, old_logo.hash, new_logo.hash)
        assert await leftovers.drop() == 0
        assert all(await kept(*everything)), "caches may still ask for them"
        late[0] = KEEP_UNUSED_US + 1_000_000
        assert await leftovers.drop() == 2
        assert await kept(*everything) == [True, False, True, False, True]
        await api.put_picture(editor, copy.event.id, encoded((700, 300)))
        assert await leftovers.drop() == 1, "the copy showed it"
        assert await kept(first) == [False]
