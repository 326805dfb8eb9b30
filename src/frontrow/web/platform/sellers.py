"""The organiser as a seller: its details are stored, and who changed them is recorded."""

from frontrow.boxoffice.checkout.model.receipts import Seller, checked_seller
from frontrow.boxoffice.events.model.event_changes import Change
from frontrow.web.http.access import Caller, editor_of
from frontrow.web.platform.platform import Platform


async def keep_seller(platform: Platform, caller: Caller, given: Seller) -> None:
    """Store the details and record who changed them."""
    change = Change(editor_of(caller), "change_seller", "", platform.clock())
    await platform.ledger.organiser.put_seller(checked_seller(given), change)
