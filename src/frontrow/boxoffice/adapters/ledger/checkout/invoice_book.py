"""The ledger's invoices. The contract is in `checkout/ports.py`.

The row of the organiser's counter is locked until the transaction ends, so numbers are given one after the other. A
transaction that fails takes its number back with it: there is no gap and no number twice.
"""

from typing import Final, cast

import msgspec

from frontrow.boxoffice.adapters.ledger.engine.group_commit import CommitLine, LedgerStore, RunProgram
from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import Program
from frontrow.boxoffice.checkout.model.invoices import Invoice, InvoiceDocument

NEWEST: Final = 2**62


class SqlInvoiceBook:
    """Invoices and credit notes (`checkout.ports.InvoiceBook`)."""

    def __init__(self, store: LedgerStore, line: CommitLine) -> None:
        self._store, self._line = store, line

    async def issue(
        self, organiser_id: str, booking_id: str, refund_id: str, document: InvoiceDocument, now_us: int
    ) -> Invoice:
        body = msgspec.json.encode(document).decode()
        row = (organiser_id, booking_id, refund_id, now_us, body)
        note = f"invoice {booking_id} {refund_id}".rstrip()
        return cast(Invoice, await self._line.submit(RunProgram(lambda _: issue_program(row), now_us, note=note)))

    async def invoices_of(self, booking_id: str) -> list[Invoice]:
        return [_invoice(row) for row in await self._store.read(Query("invoices_of", params=(booking_id,)))]

    async def invoice(self, organiser_id: str, number: int) -> Invoice | None:
        rows = await self._store.read(Query("invoice_by_number", params=(organiser_id, number)))
        return _invoice(rows[0]) if rows else None

    async def page(self, organiser_id: str, before: int, limit: int) -> list[Invoice]:
        rows = await self._store.read(Query("invoices_page", params=(organiser_id, before or NEWEST, limit)))
        return [_invoice(row) for row in rows]


def issue_program(row: Row) -> Program[Invoice]:
    organiser_id, booking_id, refund_id, now_us, body = row
    yield Query("begin_invoice_numbers", [(organiser_id,)])
    ((last,),) = yield Query("lock_invoice_numbers", params=(organiser_id,))
    there = yield Query("invoices_of", params=(booking_id,))
    for one in map(_invoice, there):
        if one.refund_id == refund_id:
            return one
    number = last + 1
    yield Query("add_invoices", [(organiser_id, number, booking_id, refund_id, now_us, body)])
    yield Query("set_invoice_numbers", [(organiser_id, number)])
    return _invoice((organiser_id, number, booking_id, refund_id, now_us, body))


def _invoice(row: Row) -> Invoice:
    organiser_id, number, booking_id, refund_id, issued_at_us, body = row
    document = msgspec.json.decode(body, type=InvoiceDocument)
    return Invoice(organiser_id, number, booking_id, refund_id, issued_at_us, document)
