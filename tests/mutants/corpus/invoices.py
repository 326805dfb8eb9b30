"""Invoices and credit notes: numbers without gaps, documents that never change."""

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "an invoice before the money is taken",
        "an invoice says that the money is taken",
        "boxoffice/checkout/invoices.py",
        "        await self._check_taken(booking)\n",
        "",
        ("tests/boxoffice/checkout/test_invoice_service.py::test_an_invoice_waits_until_the_money_is_taken",),
    ),
    Mutant(
        "a credit note for a refund that was not paid",
        "a credit note is for money that went back",
        "boxoffice/checkout/invoices.py",
        "if refund.state is RefundState.DONE and refund.amount_minor:",
        "if refund.amount_minor:",
        ("tests/boxoffice/checkout/test_invoice_service.py::test_a_credit_note_waits_until_the_money_went_back",),
    ),
    Mutant(
        "a second invoice with another address",
        "an invoice never changes",
        "boxoffice/adapters/ledger/checkout/invoice_book.py",
        ("        if one.refund_id == refund_id:\n            return one"),
        ("        if one.refund_id == refund_id and one.document == body:\n            return one"),
        (
            "tests/boxoffice/checkout/test_invoices.py::test_concurrent_invoices_have_no_gap_and_no_number_twice[sqlite]",
        ),
    ),
    Mutant(
        "numbers that skip",
        "invoice numbers have no gap",
        "boxoffice/adapters/ledger/checkout/invoice_book.py",
        "    number = last + 1\n",
        "    number = last + 1 + (not there)\n",
        (
            "tests/boxoffice/checkout/test_invoices.py::test_concurrent_invoices_have_no_gap_and_no_number_twice[sqlite]",
        ),
    ),
    Mutant(
        "a credit note without its sign",
        "a credit note has negative amounts",
        "boxoffice/checkout/model/invoices.py",
        "lines=tuple(lines), total=-amount, paid_at_us",
        "lines=tuple(lines), total=amount, paid_at_us",
        (
            "tests/boxoffice/checkout/test_invoices.py::test_a_document_never_changes_and_a_refund_gets_a_credit_note[sqlite]",
        ),
    ),
    Mutant(
        "a credit note that names no invoice",
        "a credit note names what it corrects",
        "boxoffice/checkout/model/invoices.py",
        ", corrects=invoice.label\n",
        "\n",
        (
            "tests/boxoffice/checkout/test_invoices.py::test_a_document_never_changes_and_a_refund_gets_a_credit_note[sqlite]",
        ),
    ),
    Mutant(
        "a credit note whose lines do not add up",
        "the lines of a credit note add up",
        "boxoffice/checkout/model/invoices.py",
        '([ReceiptLine(LineKind.FEE, "", Money(-rest, refund.currency))] if rest else [])',
        "([] if rest else [])",
        ("tests/boxoffice/checkout/test_invoices.py::test_a_credit_note_has_the_lines_of_its_refund",),
    ),
    Mutant(
        "tax rounded the wrong way on credit notes",
        "net and tax are the total",
        "boxoffice/checkout/model/invoices.py",
        ("        if self.total.minor < 0:\n            return -tax_inside(-self.total, self.tax_basis_points)\n"),
        "",
        (
            "tests/boxoffice/checkout/test_invoice_service.py::test_a_credit_note_takes_back_the_tax_that_its_invoice_had[-3--1]",
        ),
    ),
    Mutant(
        "an invoice that can be changed",
        "an invoice never changes",
        "boxoffice/adapters/ledger/migrations/versions/v0030_invoices.py",
        '    ddl.append_only("invoices")\n',
        "",
        (
            "tests/boxoffice/checkout/test_invoices.py::test_a_document_never_changes_and_a_refund_gets_a_credit_note[sqlite]",
        ),
    ),
    Mutant(
        "another organiser's invoice by its number",
        "an invoice is its organiser's",
        "boxoffice/adapters/ledger/checkout/invoice_statements.sql",
        "WHERE i.organiser_id = :organiser_id AND i.number = :number",
        "WHERE i.number = :number AND :organiser_id <> ''",
        (
            "tests/boxoffice/checkout/test_invoices.py::test_concurrent_invoices_have_no_gap_and_no_number_twice[sqlite]",
        ),
    ),
)
