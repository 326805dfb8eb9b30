"""The mail with the tickets and its PDF have the event's picture, its colour and the name of who sells."""

import base64
import email
import email.policy
import io
import re
import struct
import zlib
from collections.abc import Iterator
from email.message import EmailMessage
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Page

from frontrow.app.wiring import Platform
from frontrow.boxoffice.events.event_art import poster_colour
from frontrow.boxoffice.events.model.event_changes import Editor
from frontrow.boxoffice.holds.model.holds import ShopPass
from frontrow.boxoffice.messages.model.messages import Contact
from frontrow.core.clock import US_PER_S
from frontrow.shared.colours import parts_of
from tests.browser.mails import mail_with, mails_of
from tests.browser.served import Site, put_hall
from tests.support.pdf_letters import core_texts
from tests.support.pictures import a_poster

PICTURED, DRAWN, HALL = "evt_pictured", "evt_drawn", "org_hall"
RED = "#c01818"
Pixel = tuple[int, int, int]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A show with an uploaded picture, and one that has none."""

    async def put(platform: Platform) -> None:
        await platform.people.team.create_organiser("Opera House", HALL)
        for event_id in (PICTURED, DRAWN):
            await put_hall(platform, id=event_id, name=f"The {event_id[4:]} show", organiser_id=HALL)
        await platform.organiser.organise.put_picture(Editor("stf_1", HALL), PICTURED, a_poster(RED))

    with Site(tmp_path_factory.mktemp("shop"), put) as running:
        yield running


def mail_of_tickets(site: Site, event_id: str) -> EmailMessage:
    """The mail that somebody gets who buys a seat."""

    async def bought(platform: Platform) -> None:
        fan = platform.ids.new("fan")
        await platform.ledger.messages.put_contact(Contact(fan, f"{fan}@example.org"), platform.clock())
        visit = ShopPass(event_id, fan, platform.clock() + 900 * US_PER_S, fan)
        hold = await platform.box_office.holds.place(event_id, visit, ["104-A-5"])
        await platform.box_office.checkout.pay(hold.booking_id, hold.fence, "pm_card_visa")

    before = mails_of(site)
    site.call(bought)
    mail_with(site, event_id[4:], before)
    (path,) = mails_of(site) - before
    return email.message_from_bytes(path.read_bytes(), policy=email.policy.default)


def shown(page: Page, mail: EmailMessage) -> Image.Image:
    """The mail's HTML as a mail program shows it, with the pictures that came with it."""
    html = str(mail.get_body(("html",)).get_content())  # type: ignore[union-attr]
    for part in mail.walk():
        if cid := str(part["content-id"] or "").strip("<>"):
            body = base64.b64encode(part.get_payload(decode=True)).decode()  # type: ignore[arg-type]
            html = html.replace(f"cid:{cid}", f"data:{part.get_content_type()};base64,{body}")
    assert "cid:" not in html, "every picture came along"
    page.set_content(html)
    assert page.evaluate("[...document.images].every((one) => one.complete && one.naturalWidth > 0)")
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


def pdf_of(mail: EmailMessage) -> bytes:
    (pdf,) = (part for part in mail.iter_attachments() if part.get_content_type() == "application/pdf")
    return bytes(pdf.get_payload(decode=True))  # type: ignore[arg-type]


IMAGE = rb"\n\d+ 0 obj\n<<((?:(?!endobj).)*?/Subtype /Image.*?)>>\nstream\n(.*?)\nendstream"


def pictures_of(pdf: bytes) -> list[Image.Image]:
    """The pictures in colour that the PDF draws: JPEG as it is, the others are PNG without its frame."""
    found = []
    for head, body in re.findall(IMAGE, pdf, re.DOTALL):
        if b"/DCTDecode" in head:
            found.append(Image.open(io.BytesIO(body)).convert("RGB"))
        elif b"/FlateDecode" in head:
            found.append(_framed(pdf, head, body))
    return found


def _framed(pdf: bytes, head: bytes, body: bytes) -> Image.Image:
    """A PNG file from the rows that the PDF has, and from its palette if it has one."""
    width, height = (int(re.findall(rb"/%s (\d+)" % name, head)[-1]) for name in (b"Width", b"Height"))
    palette = re.search(rb"/Indexed /DeviceRGB \d+ (\d+) 0 R", head)
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3 if palette else 2, 0, 0, 0))]
    if palette:
        kept = re.search(rb"\n%s 0 obj\n.*?stream\n(.*?)\nendstream" % palette[1], pdf, re.DOTALL)
        assert kept is not None
        raw = kept[1] if len(kept[1]) % 3 == 0 and not kept[1].startswith(b"x") else zlib.decompress(kept[1])
        chunks.append((b"PLTE", raw))
    chunks += [(b"IDAT", body), (b"IEND", b"")]
    file = b"".join(
        struct.pack(">I", len(part)) + kind + part + struct.pack(">I", zlib.crc32(kind + part)) for kind, part in chunks
    )
    return Image.open(io.BytesIO(b"\x89PNG\r\n\x1a\n" + file)).convert("RGB")


def fills_of(pdf: bytes) -> set[Pixel]:
    """The colours that areas of the PDF are filled with."""
    found = set()
    for raw in re.findall(rb"stream\n(.*?)\nendstream", pdf, re.DOTALL):
        try:
            page = zlib.decompress(raw)
        except zlib.error:
            continue
        for parts in re.findall(rb"([\d.]+) ([\d.]+) ([\d.]+) rg", page):
            red, green, blue = (round(float(part) * 255) for part in parts)
            found.add((red, green, blue))
    return found


def is_close(one: Any, other: Any) -> bool:
    return all(abs(a - b) <= 12 for a, b in zip(one, other, strict=True))


def has_colour(image: Image.Image, colour: Pixel, least: int) -> bool:
    """Whether so many pixels of an image have this colour."""
    counts = image.getcolors(image.width * image.height) or []
    return sum(count for count, pixel in counts if is_close(pixel, colour)) >= least


@pytest.mark.parametrize("event_id", [PICTURED, DRAWN])
def test_the_mail_and_the_pdf_show_the_picture_the_colour_and_who_sells(fan: Page, shop: Site, event_id: str) -> None:
    mail = mail_of_tickets(shop, event_id)
    seen, pdf = shown(fan, mail), pdf_of(mail)
    picture = fan.locator("img").first.bounding_box()
    assert picture is not None
    assert picture["width"] / picture["height"] == pytest.approx(1200 / 630, abs=0.02)
    assert "Opera House" in fan.locator("body").inner_text()
    assert "Opera House" in core_texts(pdf), core_texts(pdf)
    (drawn,) = pictures_of(pdf)
    assert drawn.width / drawn.height == pytest.approx(1200 / 630, abs=0.02)
    if event_id == PICTURED:
        middle = (int(picture["x"] + picture["width"] / 2), int(picture["y"] + picture["height"] / 2))
        assert is_close(seen.getpixel(middle), parts_of(RED)), "the disc of the uploaded picture"
        assert is_close(drawn.getpixel((drawn.width // 2, drawn.height // 2)), parts_of(RED))
        colour = next(one for one in fills_of(pdf) if one[0] > 2 * one[2] and one[0] > 2 * one[1])
    else:
        colour = next(one for one in fills_of(pdf) if is_close(one, parts_of(poster_colour(DRAWN))))
    assert has_colour(seen, colour, 400), "the mail has the colour of the ticket"
