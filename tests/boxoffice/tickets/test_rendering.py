"""QR, PDF and calendar entry (B10): readable by others' software, and the same bytes each time."""

import asyncio
import io
import re
import struct
from dataclasses import replace
from pathlib import Path

import icalendar
import pytest
import zxingcpp
from PIL import Image

from frontrow.boxoffice.adapters.ledger.from_url import open_ledger
from frontrow.boxoffice.gate.gate_service import GateService
from frontrow.boxoffice.holds.model.bookings import BookingNotFound
from frontrow.boxoffice.organiser.model.brands import Brand, Logo, TicketLook, ticket_look
from frontrow.boxoffice.seats.formats.plan_document import digest, plan_bytes
from frontrow.boxoffice.seats.model.venues import Venue
from frontrow.boxoffice.texts.message_texts import languages
from frontrow.boxoffice.tickets import qr_code as qr
from frontrow.boxoffice.tickets import ticket_codes as codes
from frontrow.boxoffice.tickets.calendar_entry import calendar_entry
from frontrow.boxoffice.tickets.model.tickets import TicketNotFound
from frontrow.boxoffice.tickets.print_fonts import printable
from frontrow.boxoffice.tickets.ticket_pdf import tickets_pdf
from frontrow.boxoffice.tickets.ticket_renderer import TicketRenderer
from frontrow.shared.money import Money
from tests.boxoffice.shop import shop_event, shop_plan, sqlite_url
from tests.boxoffice.tickets.samples import EVENT, KEYS, NOW, issued, sheet
from tests.contracts.ledger_contract import Bench
from tests.support.booking_moves import refund_booking
from tests.support.pdf_letters import core_texts, letters_of


def decoded(image: Image.Image) -> str:
    found = zxingcpp.read_barcodes(image)
    assert len(found) == 1
    return found[0].text


def test_the_qr_is_read_back_by_zxing() -> None:
    """B10: as PNG at several sizes, and turned and shrunk as a camera sees it."""
    code = issued(1)[0].code
    for scale in (2, 4, 8):
        assert decoded(Image.open(io.BytesIO(qr.png(code, scale=scale)))) == code
    photo = Image.open(io.BytesIO(qr.png(code))).convert("L").rotate(11, expand=True, fillcolor=255).resize((320, 320))
    assert decoded(photo) == code
    shown = codes.shown_code(issued(1, rotating=True)[0].code, KEYS.rotating_secret(EVENT), NOW)
    assert decoded(Image.open(io.BytesIO(qr.png(shown)))) == shown


def test_the_svg_draws_the_same_modules_as_the_png() -> None:
    code = issued(1)[0].code
    drawn = qr.svg(code, label='a"<b')
    assert 'aria-label="a&quot;&lt;b"' in drawn
    side = len(qr.modules(code)) + 2 * qr.QUIET
    picture = Image.new("L", (side, side), 255)
    for x, y, width in re.findall(r"M(\d+) (\d+)h(\d+)v1h-\d+z", drawn):
        for at in range(int(x), int(x) + int(width)):
            picture.putpixel((at, int(y)), 0)
    assert decoded(picture.resize((side * 6, side * 6), Image.Resampling.NEAREST)) == code


def images_of(pdf: bytes) -> list[Image.Image]:
    """The pictures inside a PDF (fax group 4), opened by Pillow as the TIFF files they nearly are."""
    found = []
    for head, body in re.findall(rb"<<(\n/BitsPerComponent 1\n.*?)>>\nstream\n(.*?)\nendstream", pdf, re.DOTALL):
        assert b"/CCITTFaxDecode" in head
        width, height = (int(re.findall(rb"/%s (\d+)" % name, head)[-1]) for name in (b"Width", b"Height"))
        tags = [(256, width), (257, height), (258, 1), (259, 4), (262, 0), (273, 8), (278, height), (279, len(body))]
        entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
        directory = struct.pack("<H", len(tags)) + entries + b"\0\0\0\0"
        found.append(Image.open(io.BytesIO(b"II*\0" + struct.pack("<I", 8 + len(body)) + body + directory)))
    return found


def test_the_pdf_has_a_page_a_ticket_with_its_qr_and_is_the_same_each_time() -> None:
    tickets = issued(1, 2)
    sheets = [sheet(one) for one in tickets]
    pdf = tickets_pdf(sheets)
    assert pdf.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type /Page\b", pdf)) == 2
    assert [decoded(image.convert("L")) for image in images_of(pdf)] == [one.code for one in tickets]
    assert tickets_pdf(sheets) == pdf
    assert tickets_pdf(sheets, locale="de") != pdf
    assert tickets_pdf(sheets, locale="xx") == pdf


def test_a_ticket_has_the_colour_and_the_logo_of_who_sells() -> None:
    picture = io.BytesIO()
    Image.new("RGBA", (480, 120), (200, 30, 60, 255)).save(picture, "PNG")
    look = ticket_look(Brand("org_hall", "Hall", "#c81e3c", Logo("h", 480, 120)), picture.getvalue())
    plain, branded = tickets_pdf([sheet(issued(1)[0])]), tickets_pdf([sheet(issued(1)[0])], look=look)
    assert branded.count(b"/Subtype /Image") > plain.count(b"/Subtype /Image") == 1
    assert decoded(images_of(branded)[0].convert("L")) == issued(1)[0].code
    assert tickets_pdf([sheet(issued(1)[0])], look=TicketLook()) == plain


@pytest.mark.parametrize(
    ("locale", "name", "fonts"),
    [
        ("en", "Ada Lovelace", ""),
        ("fr", "Zoë “d’Œuvre” – 5 €", ""),
        ("en", "Ζωή Παπαδοπούλου", "NotoSans"),
        ("de", "Алексей Ёлкин", "NotoSans"),
        ("en", "髙橋 﨑太郎", "NotoSansJP"),
        ("ja", "山田 太郎", "NotoSansJP"),
        ("ar", "محمد بن علي", "NotoSansArabic"),
        ("fr", "Nguyễn 山田 Zoë Żuławski", "NotoSans NotoSansJP"),
    ],
)
def test_a_ticket_prints_the_buyers_name_in_its_own_letters(
    locale: str, name: str, fonts: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Issue 11: names that are not Latin-1 were printed as question marks."""
    buyer = replace(sheet(issued(1)[0]), name=name, event_name="Aurora")
    pdf = tickets_pdf([buyer], locale=locale)
    embedded = {found.decode() for found in re.findall(rb"/BaseFont /[A-Z]+\+([A-Za-z]+)", pdf)}
    assert set(fonts.split()) <= embedded
    assert bool(embedded) == bool(fonts)
    if fonts:
        missing = set(name) - set(letters_of(pdf)) - {" "}
        assert not missing or locale == "ar"  # Arabic letters are joined: their shapes stand for several of them
    assert not [record for record in caplog.records if "missing" in record.getMessage()]  # no .notdef was printed
    assert tickets_pdf([buyer], locale=locale) == pdf


def test_a_ticket_prints_its_type_and_price_without_embedding_a_font() -> None:
    """Issue 15: the price on the ticket. The sign of the euro is no Latin-1."""
    one = replace(sheet(issued(1)[0]), event_name="Aurora", type_name="Child", price=Money(14_250, "EUR"))
    pdf = tickets_pdf([one])
    said = [text.encode("latin-1").decode("windows-1252") for text in core_texts(pdf)]
    assert (said[said.index("Ticket type") + 1], said[said.index("Price") + 1]) == ("Child", "€142.50")
    assert b"/FontFile2" not in pdf
    assert b"/WinAnsiEncoding" in pdf


def test_the_add_ons_of_the_booking_are_printed() -> None:
    one = replace(sheet(issued(1)[0]), event_name="Aurora", add_ons=("2 × Dinner", "1 × Parking"))
    said = [text.encode("latin-1").decode("windows-1252") for text in core_texts(tickets_pdf([one]))]
    assert said[said.index("Add-ons of the booking") + 1] == "2 × Dinner, 1 × Parking"


def test_every_letter_is_printed_or_replaced_and_the_shipped_fonts_have_the_languages_letters() -> None:
    assert printable("Zoë Żuławski") == "Zoë Żuławski"
    assert printable("e\u0301") == "é"
    assert printable("a\x00\u200bb") == "ab"
    assert printable("👩 한 ๏") == "? ? ?"
    for name, language in languages().items():
        words = "".join(language.words.values()) + "".join(str(kind) for kind in language.kinds.values())
        assert "?" not in printable("".join(set(words) - {"?"})), name


def test_the_calendar_entry_is_read_back() -> None:
    sheets = [sheet(one) for one in issued(1, 2)]
    body = calendar_entry(sheets)
    assert body == calendar_entry(sheets)
    entry = icalendar.Calendar.from_ical(body).walk("VEVENT")[0]
    assert entry["SUMMARY"] == "Aurora – Zażółć & <Björk>"
    assert entry["LOCATION"] == "Waldbühne, Berlin"
    assert entry.decoded("DTSTART").timestamp() == NOW // 1_000_000
    assert (entry.decoded("DTEND") - entry.decoded("DTSTART")).total_seconds() == 3 * 3600
    assert entry["STATUS"] == "CONFIRMED"
    assert entry["UID"] == "bkg_1@frontrow"


async def test_the_renderer_shows_what_the_ledger_has_and_nothing_of_dead_tickets(tmp_path: Path) -> None:
    """B10, B12: rendered lazily from stored codes; after a refund there is no ticket to show."""
    ledger = await open_ledger(sqlite_url(tmp_path))
    try:
        plan = shop_plan()
        document = plan_bytes(plan)
        bench = Bench(ledger, ledger)
        event = shop_event(id=bench.event, plan_hash=digest(document))
        await ledger.catalogue.put_plan(digest(document), plan, document.decode(), NOW)
        await ledger.catalogue.put_venue(
            Venue("ven_1", "Waldbühne", digest(document), "Berlin", "DE", "Europe/Berlin"), NOW
        )
        await ledger.catalogue.put_event(event, NOW)
        hold = await bench.paid(3, 4)
        booking = await ledger.booking(hold.booking_id)
        assert booking is not None
        tickets = codes.Issuer(KEYS).issue(booking)
        await ledger.confirm(hold.booking_id, hold.fence, bench.now_us, tickets)
        renderer = TicketRenderer(ledger, KEYS)
        sheets = await renderer.sheets(hold.booking_id)
        assert [(one.seat, one.code, one.place) for one in sheets] == [
            (plan.seat_ids[one.seat_index], one.code, "Waldbühne, Berlin") for one in tickets
        ]
        assert await renderer.pdf(hold.booking_id) == await TicketRenderer(ledger, KEYS).pdf(hold.booking_id)
        at_once = await asyncio.gather(*(renderer.pdf(hold.booking_id, locale="de") for _ in range(50)))
        assert len({id(drawn) for drawn in at_once}) == 1, "fifty who want the same file wait for one drawing"
        assert await renderer.pdf_for_mail(sheets, "de-AT") is at_once[0]
        assert b"VEVENT" in await renderer.calendar(hold.booking_id)
        assert decoded(Image.open(io.BytesIO(await renderer.qr_png(tickets[0].id, NOW)))) == tickets[0].code
        assert qr.svg(await renderer.shown_code(tickets[0].id, NOW)).startswith("<svg")
        await refund_booking(ledger, hold.booking_id, hold.fence, bench.now_us + 1)
        with pytest.raises(BookingNotFound):
            await renderer.pdf(hold.booking_id)
        with pytest.raises(TicketNotFound):
            await renderer.qr_png(tickets[0].id, NOW)
        bundle = await GateService(ledger, KEYS, renderer).bundle(bench.event, NOW)
        assert bundle.revocations.ids == tuple(sorted(one.id for one in tickets))
    finally:
        await ledger.aclose()
