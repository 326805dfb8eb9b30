"""Brands of organisations: one colour and a logo, on every page of their sales and nowhere else."""

import base64
import hashlib
import io
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.events.model.event_changes import Editor
from frontrow.boxoffice.events.model.pictures import KEEP_UNUSED_US
from frontrow.boxoffice.events.picture_leftovers import PictureLeftovers
from frontrow.boxoffice.events.pictures import (
    LOGO_HEIGHT,
    LOGO_WIDTH,
    MAX_LOGO_BYTES,
    PictureTooLarge,
    prepare_logo,
)
from frontrow.boxoffice.organiser.brands import Brands
from frontrow.boxoffice.organiser.model.brands import Brand
from frontrow.boxoffice.people.model.roles import Role
from frontrow.core.clock import ManualClock
from frontrow.core.errors import InvalidInput
from frontrow.shared.heavy_work import HeavyWork
from tests.boxoffice.organiser.test_pictures import a_file, bomb
from tests.boxoffice.people.support import api_key, member
from tests.web.api.support import EVENT_ID, a_client, a_platform, put_event
from tests.web.room.test_page import MAX_PAGE_BYTES
from tests.web.site.test_pages import BROWSER

BRAND = "/v1/organiser/brand"
FOREVER = "public, max-age=31536000, immutable"
OTHER_ID = "evt_01JCQ3W2N4X7Z8Y9A0B1C2D3E5"


def a_logo(colour: str = "#102040") -> str:
    """An ellipse on nothing."""
    image = Image.new("RGBA", (900, 300))
    ImageDraw.Draw(image).ellipse((20, 20, 880, 280), fill=colour)
    body = io.BytesIO()
    image.save(body, "PNG")
    return base64.b64encode(body.getvalue()).decode()


async def test_an_organisations_pages_have_its_colour_and_logo(tmp_path: Path) -> None:
    async with a_platform(tmp_path) as platform, a_client(platform) as client:
        owner = await member(platform, Role.OWNER, "org_hall")
        await put_event(platform, organiser_id="org_hall")
        await put_event(platform, id=OTHER_ID, organiser_id="org_other")
        await platform.box_office.openings.refresh()
        key = {"authorization": f"Bearer {await api_key(platform, owner, ['events:read', 'events:write'])}"}
        plain = await client.get(f"/events/{EVENT_ID}", headers=BROWSER)
        assert "/brands/" not in plain.text
        assert (await client.get(BRAND, headers=key)).json() == {
            "colour": "",
            "logo_url": "",
            "light": None,
            "dark": None,
        }

        put = (await client.put(BRAND, json={"colour": "#FC0"}, headers=key)).json()
        assert put["colour"] == "#ffcc00"
        assert (put["light"]["adjusted"], put["dark"]["adjusted"]) == (True, False)
        assert put["dark"]["brand"] == "#ffcc00"
        preview = await client.get(f"{BRAND}/preview", params={"colour": "#ffcc00"}, headers=key)
        assert preview.json() == put
        logo = (await client.put(f"{BRAND}/logo", json={"logo": a_logo()}, headers=key)).json()
        assert logo == put | {"logo_url": logo["logo_url"]}, "the logo leaves the colour"

        for path in (f"/events/{EVENT_ID}", f"/events/{EVENT_ID}/waitlist"):
            page = await client.get(path, headers=BROWSER)
            assert f'src="{logo["logo_url"]}"' in page.text
            assert 'alt="Hall"' in page.text
            assert 'class="branded"' in page.text
        event = await client.get(f"/events/{EVENT_ID}", headers=BROWSER)
        assert event.headers["cache-control"] == plain.headers["cache-control"], "caches keep it as before"
        address = re.search(r'href="(/brands/ffcc00-[0-9a-f]{12}\.css)"', event.text)
        assert address
        sheet = await client.get(address[1])
        assert (sheet.headers["cache-control"], sheet.headers["content-type"]) == (FOREVER, "text/css; charset=utf-8")
        assert f"--brand:light-dark({put['light']['brand']},#ffcc00)" in sheet.text
        older = await client.get("/brands/ffcc00-000000000000.css")
        assert (older.text, older.headers["cache-control"]) == (sheet.text, "no-cache")
        shown = await client.get(logo["logo_url"])
        assert (shown.headers["content-type"], shown.headers["cache-control"]) == ("image/png", FOREVER)
        for path in ("/", "/sign-in", f"/events/{OTHER_ID}"):
            page = await client.get(path, headers=BROWSER)
            assert "/brands/" not in page.text, path
            assert logo["logo_url"] not in page.text, path

        room = await client.get(f"/v1/events/{EVENT_ID}/room/", headers=BROWSER)
        assert len(room.content) <= MAX_PAGE_BYTES, len(room.content)
        assert logo["logo_url"] in room.text
        policy, styles = room.headers["content-security-policy"], re.findall("<style>(.*?)</style>", room.text, re.S)
        assert put["light"]["brand"] in styles[1]
        names = re.findall(r"(--\w+):", styles[1])
        assert len(names) == 5
        assert all(f"var({name}" in styles[0] for name in names), "the page's own short names"
        hashes = [base64.b64encode(hashlib.sha256(style.encode()).digest()).decode() for style in styles]
        assert "style-src " + " ".join(f"'sha256-{one}'" for one in hashes) in policy
        assert "img-src 'self'" in policy
        bare = await client.get(f"/v1/events/{OTHER_ID}/room/", headers=BROWSER)
        assert "img-src" not in bare.headers["content-security-policy"]

        removed = await client.delete(f"{BRAND}/logo", headers=key)
        assert removed.json() == put
        cleared = (await client.put(BRAND, json={"colour": ""}, headers=key)).json()
        assert (cleared["colour"], cleared["light"]) == ("", None)
        assert "/brands/" not in (await client.get(f"/events/{EVENT_ID}", headers=BROWSER)).text
        audit = (await client.get("/organiser/audit", headers=BROWSER | owner.bearer)).text
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
    for raw in (a_file(size=(8, 8)), base64.b64decode(a_logo("#00000000"))):
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
        editor, desk, brands = Editor("stf_1", "org_hall"), platform.organiser.organise, platform.brands
        ledger, late = platform.ledger, [0]
        leftovers = PictureLeftovers(ledger.pictures, lambda: platform.clock() + late[0])

        async def kept(*hashes: str) -> list[bool]:
            return [await ledger.pictures.find(one) is not None for one in hashes]

        def encoded(size: tuple[int, int]) -> str:
            return base64.b64encode(a_file(size=size)).decode()

        first = (await desk.put_picture(editor, EVENT_ID, encoded((400, 300)))).event.picture
        copy = await desk.copy(editor, EVENT_ID, "Again")
        second = (await desk.put_picture(editor, EVENT_ID, encoded((500, 300)))).event.picture
        third = (await desk.put_picture(editor, EVENT_ID, encoded((600, 300)))).event.picture
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
        await desk.put_picture(editor, copy.event.id, encoded((700, 300)))
        assert await leftovers.drop() == 1, "the copy showed it"
        assert await kept(first) == [False]
