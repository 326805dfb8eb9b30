"""The seller's details of an organiser, which receipts and invoices show."""

from frontrow.boxoffice.checkout.model.receipts import Seller, checked_seller
from frontrow.boxoffice.checkout.ports import SellerBook
from frontrow.boxoffice.events.model.event_changes import Change, Editor
from frontrow.core.clock import Clock


class Sellers:
    """Changes the seller's details. Receipts of earlier sales keep the old ones."""

    def __init__(self, book: SellerBook, clock: Clock) -> None:
        self._book, self._clock = book, clock

    async def change(self, editor: Editor, given: Seller) -> None:
        """Check and store the details, and note who changed them. `InvalidInput` names a wrong field."""
        await self._book.put_seller(checked_seller(given), Change(editor, "change_seller", "", self._clock()))
