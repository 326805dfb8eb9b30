"""The PDF of an invoice or a credit note: seller, buyer, number, lines, net, tax and total. A4, one page or more."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from fpdf import FPDF
from fpdf.enums import Align, XPos, YPos

from frontrow.boxoffice.checkout.model.invoices import Invoice
from frontrow.boxoffice.checkout.model.receipts import ReceiptLine
from frontrow.boxoffice.holds.model.bookings import booking_number
from frontrow.boxoffice.texts.locale_formats import Moment, formats_of
from frontrow.boxoffice.texts.message_texts import words_of
from frontrow.boxoffice.tickets.print_fonts import CORE_FAMILY, PrintFonts, printable
from frontrow.shared.local_time import local_time

_WIDTH_MM, _MARGIN_MM = 210.0, 20.0
_AMOUNT_MM: Final = 42.0
_SOFT, _INK, _RULE = (96, 96, 110), (20, 20, 28), (210, 210, 220)
MAX_TEXT_CHARS: Final = 400


@dataclass(frozen=True, slots=True)
class _Row:
    """A text at the start of the line and an amount at its end; `below` is smaller and beneath the text."""

    text: str
    amount: str
    below: str = ""
    bold: bool = False
    soft: bool = False
    rule: bool = False  # a line above it


def invoice_pdf(invoice: Invoice, language: str) -> bytes:
    """The document in one of our languages. The same document gives the same file."""
    words = words_of(language)
    title = words["credit_note"] if invoice.is_credit_note else words["invoice"]
    head = _head(invoice, language)
    parties = [
        (words["seller"], [invoice.document.seller.name, *invoice.document.seller.address.splitlines()]),
        (words["buyer"], invoice.document.billed_to.splitlines()),
    ]
    rows = _rows(invoice, language)
    pdf, fonts = FPDF(unit="mm", format="A4"), PrintFonts()
    pdf.set_margin(_MARGIN_MM)
    pdf.set_auto_page_break(True, _MARGIN_MM)
    pdf.set_creator("Frontrow")
    pdf.set_lang(language)
    pdf.set_title(f"{title} {invoice.label}")
    pdf.set_creation_date(local_time(invoice.issued_at_us, "UTC"))
    texts = [title, *(text for pair in head for text in pair), *(label for label, _ in parties)]
    texts += [line for _, lines in parties for line in lines]
    texts += [text for row in rows for text in (row.text, row.amount, row.below)]
    for text in texts:
        for style in ("", "B"):
            fonts.family_of(_clean(text), style)
    with fonts.embedded(pdf):
        drawing = _Drawing(pdf, fonts, right_to_left=formats_of(language).right_to_left)
        pdf.add_page()
        drawing.write(title, 20, bold=True, height_mm=11)
        pdf.ln(2)
        for label, value in head:
            drawing.draw_row(_Row(label, value, soft=True))
        for label, lines in parties:
            if lines:
                pdf.ln(5)
                drawing.write(label, 9, soft=True)
                for line in lines:
                    drawing.write(line, 11)
        pdf.ln(8)
        for row in rows:
            drawing.draw_row(row)
        return bytes(pdf.output())


def _head(invoice: Invoice, language: str) -> list[tuple[str, str]]:
    words, formats, document = words_of(language), formats_of(language), invoice.document
    day = Moment(invoice.issued_at_us, document.time_zone)
    found = [
        (words["number"], invoice.label),
        (words["issued_on"], formats.day(day)),
        (words["paid_on"], formats.day(Moment(document.paid_at_us, document.time_zone))),
        (words["booking"], booking_number(document.booking_id)),
        (words["tax_id"], document.seller.tax_id),
        (words["corrects"], document.corrects),
        (words["item"], document.event_name),
        (words["when"], formats.day(Moment(document.starts_at_us, document.time_zone))),
    ]
    return [(label, value) for label, value in found if value]


def _rows(invoice: Invoice, language: str) -> list[_Row]:
    words, formats, document = words_of(language), formats_of(language), invoice.document
    money, rows = formats.money, []
    for line in document.lines:
        if not line.included:
            many = f"{line.quantity} × {money(line.unit)}" if line.unit is not None and line.quantity > 1 else ""
            below = [many, line.seats_in(language) if line.name else ""]
            title = line.title_in(language)
            if not line.name and invoice.is_credit_note:
                title = _credited(line, words, title)
            rows.append(_Row(title, money(line.amount), " · ".join(part for part in below if part), rule=True))
    rows.append(_Row(words["net"], money(document.net), rule=True))
    rows.append(_Row(f"{words['tax']} {formats.percent(document.tax_basis_points)}", money(document.tax)))
    rows.append(_Row(words["total"], money(document.total), bold=True, rule=True))
    rows += [
        _Row(f"{words['included']} {line.name}", money(line.amount), soft=True)
        for line in document.lines
        if line.included
    ]
    return rows


def _clean(text: str) -> str:
    return printable(text[:MAX_TEXT_CHARS])


def _credited(line: ReceiptLine, words: Mapping[str, str], title: str) -> str:
    """The title of a credit note's line without a name: seats, or what was withheld or withheld earlier."""
    if line.seats:
        return f"{words['refunded']}: {title}"
    return words["not_refunded"] if line.amount.minor > 0 else words["refunded"]


class _Drawing:
    """Writes lines and rows in one reading direction."""

    def __init__(self, pdf: FPDF, fonts: PrintFonts, *, right_to_left: bool) -> None:
        self._pdf, self._fonts, self._right_to_left = pdf, fonts, right_to_left
        self._start, self._end = (Align.R, Align.L) if right_to_left else (Align.L, Align.R)

    def write(
        self, text: str, size_pt: float, *, bold: bool = False, soft: bool = False, height_mm: float = 5.5
    ) -> None:
        """One line of text, or more if it is long."""
        text = _clean(text)
        self._set_font(text, "B" if bold else "", size_pt, soft)
        self._pdf.multi_cell(0, height_mm, text, align=self._start, new_x=XPos.LMARGIN, new_y=YPos.NEXT)

    def draw_row(self, row: _Row) -> None:
        """A row; it never breaks over two pages."""
        pdf, inner = self._pdf, _WIDTH_MM - 2 * _MARGIN_MM
        text, amount, below = _clean(row.text), _clean(row.amount), _clean(row.below)
        style, size = ("B" if row.bold else ""), (9.5 if row.soft else 11)
        wide = inner - _AMOUNT_MM if not row.soft else inner / 2
        self._set_font(text, style, size, row.soft)
        height = 6.0 * _count_lines(pdf, wide, text)
        if below:
            self._set_font(below, "", 8.5, True)
            height += 5 * _count_lines(pdf, wide, below)
        if pdf.will_page_break(height + 2):
            pdf.add_page()
        top = pdf.get_y()
        if row.rule:
            pdf.set_draw_color(*_RULE)
            pdf.line(_MARGIN_MM, top, _WIDTH_MM - _MARGIN_MM, top)
            top += 1
        self._cells(top, wide, text, amount, style, size, row.soft)
        if below:
            self._set_font(below, "", 8.5, True)
            pdf.set_x(_WIDTH_MM - _MARGIN_MM - wide if self._right_to_left else _MARGIN_MM)
            pdf.multi_cell(wide, 5, below, align=self._start, new_x=XPos.LMARGIN, new_y=YPos.NEXT)

    def _cells(self, top: float, wide: float, text: str, amount: str, style: str, size: float, soft: bool) -> None:
        pdf, inner = self._pdf, _WIDTH_MM - 2 * _MARGIN_MM
        text_x, amount_x = _MARGIN_MM, _MARGIN_MM + wide
        if self._right_to_left:
            text_x, amount_x = _WIDTH_MM - _MARGIN_MM - wide, _MARGIN_MM
        self._set_font(amount, style, size, soft)
        pdf.set_xy(amount_x, top)
        pdf.cell(inner - wide, 6, amount, align=self._end)
        self._set_font(text, style, size, soft)
        pdf.set_xy(text_x, top)
        pdf.multi_cell(wide, 6, text, align=self._start, new_x=XPos.LMARGIN, new_y=YPos.NEXT)

    def _set_font(self, text: str, style: str, size_pt: float, soft: bool) -> None:
        family = self._fonts.family_of(text, style)
        has_style = f"{family}{style}" in self._pdf.fonts or family == CORE_FAMILY
        self._pdf.set_font(family, style if has_style else "", size_pt)
        self._pdf.set_text_color(*(_SOFT if soft else _INK))


def _count_lines(pdf: FPDF, wide: float, text: str) -> int:
    lines = pdf.multi_cell(wide, 5, text, dry_run=True, output="LINES")
    return max(1, len(cast("list[str]", lines)))
