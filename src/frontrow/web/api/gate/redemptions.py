"""Add-ons at the gate over HTTP: hand one out, take that back, and upload what was handed out offline.

Of several gates that redeem the same add-on at the same moment, as many get `ok` as the booking has left. A gate that
was offline has handed it out already: what was not possible is recorded as refused and told to the gate as a conflict.
"""

from typing import Annotated

import msgspec
from litestar import post
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath, JSONBody

from frontrow.boxoffice.gate.model.redemptions import MAX_TOGETHER, RedeemAnswer, Redeemed, Redemption
from frontrow.boxoffice.gate.model.scans import correct_clock
from frontrow.boxoffice.holds.model.bookings import BookingNotFound
from frontrow.shared.local_time import time_text
from frontrow.web.api.gate.revocations import UndoView
from frontrow.web.api.gate.scans import MAX_SCANS, PATH, SCANS, AddOnUseView, FirstScan, Gate, ScanId, add_on_views
from frontrow.web.api.organiser.parameters import Moment, moment_us
from frontrow.web.http.access import editor_of
from frontrow.web.platform.event_access import own_event
from frontrow.web.platform.injected import FromCaller, FromPlatform

BookingId = Annotated[str, msgspec.Meta(min_length=1, max_length=60, examples=["bkg_01JCQ3W2N4X7Z8Y9A0B1C2D3E4"])]
AddOnKey = Annotated[str, msgspec.Meta(min_length=1, max_length=60, examples=["parking"])]
Quantity = Annotated[int, msgspec.Meta(ge=1, le=MAX_TOGETHER)]
SAYS = {
    RedeemAnswer.OK: "redeemed",
    RedeemAnswer.USED_UP: "already used",
    RedeemAnswer.NOT_BOUGHT: "not bought, or refunded",
    RedeemAnswer.UNDONE: "this redemption was undone; choose a new one",
}


class RedeemAsked(msgspec.Struct, forbid_unknown_fields=True):
    """Some of one add-on of a booking. The gate chooses `redemption`; repeating it changes nothing."""

    booking: BookingId
    add_on: AddOnKey
    gate: Gate
    redemption: ScanId
    quantity: Quantity = 1


class RedeemView(msgspec.Struct):
    """`answer`: ok, used_up (with `last`, who had it before), not_bought (none, or refunded) or undone. `add_ons`: all
    of the booking, as they are now."""

    answer: RedeemAnswer
    says: str
    add_ons: list[AddOnUseView]
    last: FirstScan | None = None


class UndoRedemptionAsked(msgspec.Struct, forbid_unknown_fields=True):
    redemption: ScanId


class OfflineRedemption(msgspec.Struct, forbid_unknown_fields=True):
    """One redemption that a gate made offline."""

    redemption: ScanId
    booking: BookingId
    add_on: AddOnKey
    gate: Gate
    at: Moment
    quantity: Quantity = 1


class SyncRedemptionsAsked(msgspec.Struct, forbid_unknown_fields=True):
    """In any order. Repeating them changes nothing."""

    redemptions: Annotated[list[OfflineRedemption], msgspec.Meta(max_length=MAX_SCANS)]


class RedemptionConflict(msgspec.Struct):
    """Handed out offline, although it had been used (`used_up`, by `last`), or was not bought or refunded."""

    redemption: str
    booking: str
    add_on: str
    answer: RedeemAnswer
    last: FirstScan | None = None


class SyncRedemptionsView(msgspec.Struct):
    """`unknown`: redemptions whose booking this event never had."""

    taken: int
    conflicts: list[RedemptionConflict]
    unknown: list[str]


@post(f"{PATH}/redeem", operation_id="redeem_add_on", summary="Hand out an add-on", status_code=200, opt=SCANS)
async def redeem_add_on(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], data: JSONBody[RedeemAsked]
) -> RedeemView:
    event = await own_event(platform, caller, event_id)
    asked = Redemption(
        data.redemption, event.id, data.booking, data.add_on, data.quantity, data.gate, caller.id, platform.clock()
    )
    told = await platform.box_office.gates.redeem(asked)
    return RedeemView(told.answer, SAYS[told.answer], add_on_views(told.add_ons), _last(told))


@post(
    f"{PATH}/redeem/undo",
    operation_id="undo_redemption",
    summary="Take back an add-on that was handed out by mistake",
    status_code=200,
    opt=SCANS,
)
async def undo_redemption(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], data: JSONBody[UndoRedemptionAsked]
) -> UndoView:
    event = await own_event(platform, caller, event_id)
    gates, now_us = platform.box_office.gates, platform.clock()
    return UndoView(await gates.undo_redemption(editor_of(caller), event, data.redemption, now_us))


@post(
    f"{PATH}/redeem/sync",
    operation_id="sync_redemptions",
    summary="Upload add-ons that were handed out offline",
    status_code=200,
    opt=SCANS,
)
async def sync_redemptions(
    platform: FromPlatform, caller: FromCaller, event_id: FromPath[str], data: JSONBody[SyncRedemptionsAsked]
) -> SyncRedemptionsView:
    event = await own_event(platform, caller, event_id)
    now_us, taken, conflicts, unknown = platform.clock(), 0, list[RedemptionConflict](), list[str]()
    for one in data.redemptions:
        at_us = correct_clock(moment_us(one.at, "at") or 0, now_us)
        asked = Redemption(one.redemption, event.id, one.booking, one.add_on, one.quantity, one.gate, caller.id, at_us)
        try:
            told = await platform.box_office.gates.redeem(asked, offline=True)
        except BookingNotFound:
            unknown.append(one.redemption)
            continue
        taken += 1
        if told.answer in (RedeemAnswer.USED_UP, RedeemAnswer.NOT_BOUGHT):
            conflicts.append(RedemptionConflict(one.redemption, one.booking, one.add_on, told.answer, _last(told)))
    return SyncRedemptionsView(taken, conflicts, unknown)


def _last(told: Redeemed) -> FirstScan | None:
    return FirstScan(told.last.gate, time_text(told.last.at_us)) if told.last is not None else None


ROUTES: list[HTTPRouteHandler] = [redeem_add_on, undo_redemption, sync_redemptions]
