"""The PDF of a booking's tickets: a page each, with the QR. The same tickets make the same file, byte for byte."""

import io
from collections.abc import Sequence
from typing import Final

from fpdf import FPDF
from fpdf.enums import XPos, YPos

from frontrow.boxoffice.tickets import qr
from frontrow.boxoffice.tickets.sheets import Sheet, at, printable

_WIDTH_MM, _HEIGHT_MM = 148.0, 210.0  # A5: two fit a sheet of A4
_MARGIN_MM: Final = 12.0
_QR_MM: Final = 84.0
TEXTS: Final = {
    "en": {
        "name": "Name",
        "seat": "Seat",
        "when": "When",
        "where": "Where",
        "ticket": "Ticket",
        "once": "Valid once. Keep it to you.",
    },
    "de": {
        "name": "Name",
        "seat": "Platz",
        "when": "Wann",
        "where": "Wo",
        "ticket": "Ticket",
        "once": "Gilt einmal. Bitte nicht weitergeben.",
    },
}


def tickets_pdf(sheets: Sequence[Sheet], *, locale: str = "en") -> bytes:
    """One page per sheet."""
    pdf = FPDF(unit="mm", format=(_WIDTH_MM, _HEIGHT_MM))
    pdf.set_auto_page_break(False)
    pdf.set_margin(_MARGIN_MM)
    pdf.set_creator("Frontrow")
    pdf.set_title(printable(sheets[0].event_name))
    pdf.set_creation_date(at(sheets[0].issued_at_us, "UTC"))
    words = TEXTS.get(locale, TEXTS["en"])
    for sheet in sheets:
        _page(pdf, sheet, words)
    return bytes(pdf.output())


def _page(pdf: FPDF, sheet: Sheet, words: dict[str, str]) -> None:
    pdf.add_page()
    pdf.set_font("helvetica", "B", 20)
    pdf.multi_cell(0, 9, printable(sheet.event_name[:120]), new_x=XPos.LMARGIN, new_y=YPos.NEXT)
    pdf.ln(3)
    for name, value in (
        (words["when"], f"{sheet.starts_at:%Y-%m-%d %H:%M} ({sheet.time_zone})"),
        (words["where"], sheet.place),
        (words["seat"], sheet.seat),
        (words["name"], sheet.name),
        (words["ticket"], sheet.ticket_id),
    ):
        if value:
            _line(pdf, name, value)
    left, top = (_WIDTH_MM - _QR_MM) / 2, _HEIGHT_MM - _QR_MM - 24
    pdf.image(io.BytesIO(qr.png(sheet.code, scale=4)), x=left, y=top, w=_QR_MM, h=_QR_MM)
    pdf.set_xy(_MARGIN_MM, _HEIGHT_MM - 20)
    pdf.set_font("helvetica", "", 9)
    pdf.cell(0, 5, printable(words["once"]), align="C")


def _line(pdf: FPDF, name: str, value: str) -> None:
    pdf.set_font("helvetica", "", 10)
    pdf.cell(22, 7, printable(name))
    pdf.set_font("helvetica", "B", 12)
    pdf.multi_cell(0, 7, printable(value[:160]), new_x=XPos.LMARGIN, new_y=YPos.NEXT)
