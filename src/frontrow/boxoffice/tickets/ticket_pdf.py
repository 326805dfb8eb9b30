"""The PDF of a booking's tickets: one page per ticket. The same tickets give the same file.

A page has the event's picture, what the ticket is for, and below a perforated line the stub: the code and the seat in
large type."""

import io
from collections.abc import Sequence
from typing import Final, TypeAlias, cast

from fpdf import FPDF
from fpdf.enums import Align, MethodReturnValue, XPos, YPos

from frontrow.boxoffice.holds.model.bookings import booking_number
from frontrow.boxoffice.organiser.model.brands import OUR_LOOK, TicketLook
from frontrow.boxoffice.texts.locale_formats import Moment, formats_of, language_of
from frontrow.boxoffice.texts.message_texts import MessageWriter, words_of
from frontrow.boxoffice.tickets import qr_code as qr
from frontrow.boxoffice.tickets.model.tickets import Sheet
from frontrow.boxoffice.tickets.print_fonts import CORE_FAMILY, PrintFonts, printable
from frontrow.shared.colours import parts_of
from frontrow.shared.local_time import local_time

_WIDTH_MM, _HEIGHT_MM = 148.0, 210.0  # A5: two fit on a sheet of A4
_MARGIN_MM: Final = 12.0
_QR_MM: Final = 66.0
_PICTURE_MM, _LEAST_PICTURE_MM = 56.0, 20.0
_BAND_MM: Final = 3.0
_TEAR_MM: Final = 131.0  # where the stub begins
_NOTCH_MM: Final = 4.0
_BRAND, _SOFT, _INK, _LINE = (154, 23, 80), (90, 80, 97), (27, 19, 32), (190, 180, 186)
MAX_NAME_CHARS: Final = 120
_SEAT_SIZES_PT: Final = (26, 19, 15, 12, 10)
_DOTS: Final = "..."
_LOGO_WIDTH_MM, _LOGO_HEIGHT_MM = 42.0, 10.0
Facts: TypeAlias = Sequence[tuple[str, str]]  # label and value


def tickets_pdf(sheets: Sequence[Sheet], *, locale: str = "en", look: TicketLook = OUR_LOOK) -> bytes:
    """One page per sheet, in the reader's language, with a band in the colour of who sells and their logo."""
    language = language_of(locale)
    pages = [_texts(sheet, language, look.seller) for sheet in sheets]
    pdf = FPDF(unit="mm", format=(_WIDTH_MM, _HEIGHT_MM))
    pdf.set_auto_page_break(False)
    pdf.set_margin(_MARGIN_MM)
    pdf.set_creator("Frontrow")
    pdf.set_lang(language)
    pdf.set_title(sheets[0].event_name)
    pdf.set_creation_date(local_time(sheets[0].issued_at_us, "UTC"))
    fonts = PrintFonts()
    for page in pages:
        page.choose_fonts(fonts)
    with fonts.embedded(pdf):
        drawing = _Drawing(pdf, fonts, right_to_left=formats_of(language).right_to_left)
        drawing.band, drawing.look = parts_of(look.fill) if look.fill else _BRAND, look
        for sheet, page in zip(sheets, pages, strict=True):
            drawing.draw_ticket(page, sheet)
        return bytes(pdf.output())


class _Texts:
    """The texts of a page, reduced to characters that can be printed."""

    def __init__(self, title: str, facts: Sequence[Facts], seat: Facts, foot: str) -> None:
        self.title = printable(title[:MAX_NAME_CHARS])
        rows = [[(printable(label), printable(value[:160])) for label, value in row if value] for row in facts]
        self.facts = [row for row in rows if row]
        self.seat = [(printable(label), printable(value)) for label, value in seat]
        self.foot = printable(foot)

    def choose_fonts(self, fonts: PrintFonts) -> None:
        for text in (self.title, *(value for _, value in self.seat)):
            fonts.family_of(text, "B")
        pairs = [pair for row in self.facts for pair in row]
        for text in (self.foot, *(label for label, _ in self.seat), *(text for pair in pairs for text in pair)):
            fonts.family_of(text)


def _texts(sheet: Sheet, language: str, seller: str) -> _Texts:
    words, writer = words_of(language), MessageWriter(language)
    when = writer.moment(Moment(sheet.starts_at_us, sheet.time_zone))
    price = writer.formats.money(sheet.price) if sheet.price is not None else ""
    facts = [
        [(words["when"], when.strip("\u2068\u2069"))],
        [(words["where"], sheet.place), (words["seller"], seller)],
        [(words["name"], sheet.name), (words["booking"], booking_number(sheet.booking_id))],
        [(words["ticket_type"], sheet.type_name), (words["price"], price), (words["ticket"], sheet.ticket_id)],
        [(words["add_ons"], ", ".join(sheet.add_ons))],
    ]
    foot = words["code_in_browser"] if sheet.rotating else words["valid_once"]
    return _Texts(sheet.event_name, facts, sheet.seat_words(words), foot)


class _Drawing:
    """Draws pages in one reading direction."""

    def __init__(self, pdf: FPDF, fonts: PrintFonts, *, right_to_left: bool) -> None:
        self._pdf, self._fonts = pdf, fonts
        self._align, self._right_to_left = Align.R if right_to_left else Align.L, right_to_left
        self.band, self.look = _BRAND, OUR_LOOK

    def draw_ticket(self, texts: _Texts, sheet: Sheet) -> None:
        pdf = self._pdf
        pdf.add_page()
        self._draw_head(self._room_for_picture(texts))
        self._set_font(texts.title, "B", 21, _INK)
        pdf.multi_cell(0, 8.5, texts.title, align=self._align, new_x=XPos.LMARGIN, new_y=YPos.NEXT, max_line_height=8.5)
        pdf.ln(1.5)
        for row in texts.facts:
            self._draw_facts(row)
        self._draw_tear()
        top = _TEAR_MM + 6
        left = _WIDTH_MM - _MARGIN_MM - _QR_MM if self._right_to_left else _MARGIN_MM
        pdf.image(io.BytesIO(qr.png(sheet.code, scale=4)), x=left, y=top, w=_QR_MM, h=_QR_MM)
        self._draw_seat(texts.seat, top + 3)
        pdf.set_xy(_MARGIN_MM, _HEIGHT_MM - 6.5)
        self._set_font(texts.foot, "", 8.5, _SOFT)
        pdf.cell(0, 4, texts.foot, align=Align.C)

    def _room_for_picture(self, texts: _Texts) -> float:
        """How much of the picture fits above the texts, so that they never reach the code; 0: none."""
        if not self.look.picture:
            return 0.0
        self._set_font(texts.title, "B", 21, _INK)
        needed = self._height(_WIDTH_MM - 2 * _MARGIN_MM, 8.5, texts.title) + 1.5
        for row in texts.facts:
            self._set_font(row[0][1], "", 11, _INK)
            width = (_WIDTH_MM - 2 * _MARGIN_MM) / len(row)
            needed += 5.4 + max(self._height(width, 5.2, value) for _, value in row)
        left = _TEAR_MM - needed - _BAND_MM - 6
        return min(_PICTURE_MM, left) if left >= _LEAST_PICTURE_MM else 0.0

    def _height(self, width: float, line_mm: float, text: str) -> float:
        found = self._pdf.multi_cell(width, line_mm, text, dry_run=True, output=MethodReturnValue.HEIGHT)
        return cast(float, found)

    def _draw_head(self, picture_mm: float) -> None:
        """The event's picture across the page with a line in the colour of the ticket, and the seller's logo."""
        pdf, look, below = self._pdf, self.look, _BAND_MM + picture_mm
        if picture_mm:
            height = _WIDTH_MM * 630 / 1200
            with pdf.rect_clip(0, 0, _WIDTH_MM, picture_mm):
                pdf.image(io.BytesIO(look.picture), x=0, y=picture_mm - height, w=_WIDTH_MM, h=height)
        pdf.set_fill_color(*self.band)
        pdf.rect(0, below - _BAND_MM, _WIDTH_MM, _BAND_MM, style="F")
        if look.logo:
            left = _WIDTH_MM - _MARGIN_MM - _LOGO_WIDTH_MM if self._right_to_left else _MARGIN_MM
            width, height = _LOGO_WIDTH_MM, _LOGO_HEIGHT_MM
            top = below - _LOGO_HEIGHT_MM - 6 if picture_mm else below + 4
            pdf.image(io.BytesIO(look.logo), x=left, y=top, w=width, h=height, keep_aspect_ratio=True)
        pdf.set_y(below + (4 + _LOGO_HEIGHT_MM + 3 if look.logo and not picture_mm else 5))

    def _draw_tear(self) -> None:
        """The perforated line above the stub, with a half circle punched into each edge."""
        pdf = self._pdf
        pdf.set_draw_color(*_LINE)
        pdf.set_line_width(0.4)
        pdf.set_dash_pattern(dash=1.6, gap=1.6)
        pdf.line(_NOTCH_MM + 2, _TEAR_MM, _WIDTH_MM - _NOTCH_MM - 2, _TEAR_MM)
        pdf.set_dash_pattern()
        for middle in (0.0, _WIDTH_MM):
            pdf.circle(x=middle, y=_TEAR_MM, radius=_NOTCH_MM, style="D")

    def _draw_facts(self, row: Facts) -> None:
        """Facts side by side, each below its label, in reading direction."""
        pdf = self._pdf
        width, top, below = (_WIDTH_MM - 2 * _MARGIN_MM) / len(row), pdf.get_y(), 0.0
        for column, (label, value) in enumerate(reversed(row) if self._right_to_left else row):
            left = _MARGIN_MM + column * width
            pdf.set_xy(left, top)
            self._set_font(label, "", 8.5, _SOFT)
            pdf.cell(width, 4, label, align=self._align)
            pdf.set_xy(left, top + 4)
            self._set_font(value, "", 11, _INK)
            pdf.multi_cell(width, 5.2, value, align=self._align, new_x=XPos.LMARGIN, new_y=YPos.NEXT)
            below = max(below, pdf.get_y())
        pdf.set_xy(_MARGIN_MM, below + 1.4)

    def _draw_seat(self, seat: Facts, top: float) -> None:
        """Section, row and seat beside the code, one below the other, in large type."""
        pdf = self._pdf
        width = _WIDTH_MM - 2 * _MARGIN_MM - _QR_MM - 7
        left = _MARGIN_MM if self._right_to_left else _WIDTH_MM - _MARGIN_MM - width
        for number, (label, value) in enumerate(seat):
            self._set_font(label, "", 9, _SOFT)
            pdf.set_xy(left, top + number * 20)
            pdf.cell(width, 4, label, align=self._align)
            pdf.set_xy(left, top + number * 20 + 4.5)
            pdf.cell(width, 11, self._fit(value, width - 2), align=self._align)

    def _fit(self, value: str, width_mm: float) -> str:
        """Set the largest type in which the value fits; what is too long even for the smallest is cut off."""
        for size_pt in _SEAT_SIZES_PT:
            self._set_font(value, "B", size_pt, _INK)
            if self._pdf.get_string_width(value) <= width_mm:
                return value
        while len(value) > 1 and self._pdf.get_string_width(value + _DOTS) > width_mm:
            value = value[:-1]
        return value.rstrip() + _DOTS

    def _set_font(self, text: str, style: str, size_pt: float, colour: tuple[int, int, int]) -> None:
        family = self._fonts.family_of(text, style)
        has_style = f"{family}{style}" in self._pdf.fonts or family == CORE_FAMILY
        self._pdf.set_font(family, style if has_style else "", size_pt)
        self._pdf.set_text_color(*colour)
