"""A message to buyers belongs to its event, whoever names it (SQLite and PostgreSQL)."""

import pytest
from msgspec.structs import replace

from frontrow.boxoffice.adapters.ledger.sql_ledger import SqlLedger
from frontrow.boxoffice.events.model.event_changes import Change, Editor
from frontrow.boxoffice.messages.model.buyer_messages import (
    Audience,
    BuyerMessage,
    BuyerMessageNotFound,
    BuyerMessageState,
)
from tests.boxoffice.shop import shop_event

NOW_US = 1_800_000_000_000_000


@pytest.mark.parametrize("state", [BuyerMessageState.DRAFT, BuyerMessageState.SENDING])
async def test_nobody_sends_the_message_of_another_event(ledger: SqlLedger, state: BuyerMessageState) -> None:
    for event_id in ("evt_mine", "evt_other"):
        await ledger.catalogue.put_event(shop_event(id=event_id), NOW_US)
    message = BuyerMessage("msg_1", "evt_other", "stf_1", Audience(), "Doors", "Open at 7.", state, NOW_US)
    change = Change(Editor("stf_1", "org_1"), "write_to_buyers", "evt_other", NOW_US)
    if state is BuyerMessageState.DRAFT:
        await ledger.buyer_messages.save_draft(message)
    else:
        await ledger.buyer_messages.send(message, change)
    mine = replace(message, event_id="evt_mine", text="Buy here", state=BuyerMessageState.SENDING)
    with pytest.raises(BuyerMessageNotFound):
        await ledger.buyer_messages.send(mine, change)
    assert await ledger.buyer_messages.message("msg_1") == message
