"""The contract of the RedemptionBook port: an add-on is handed out at most as often as it was bought, or paid back."""

from collections.abc import Callable, Coroutine
from typing import Any

from frontrow.boxoffice.events.model.event_changes import Change, Editor
from frontrow.boxoffice.gate.model.redemptions import AddOnUse, RedeemAnswer, Redemption
from frontrow.boxoffice.holds.model.bookings import BookingNotFound
from frontrow.boxoffice.pricing.model.booking_choices import Reprice
from frontrow.boxoffice.pricing.model.prices import LineKind, PriceLine, encode_lines
from frontrow.boxoffice.refunds.model.refund_lines import RefundLine, RefundLineKind, encode_refund_lines
from frontrow.boxoffice.refunds.model.refunds import BookingSeen, Refund
from frontrow.core.errors import InvalidInput
from tests.contracts.ledger_contract import CALLERS, Bench, outcomes, refusal

Check = Callable[[Bench], Coroutine[Any, Any, None]]
EDITOR = Editor("stf_1", "org_1")


async def with_parking(bench: Bench, count: int, seat: int = 1) -> tuple[str, int]:
    """A paid booking with a seat and so many parking places."""
    hold = await bench.hold(seat)
    lines = (
        PriceLine(LineKind.SEAT, "Stalls", 1, 5000, 5000, (seat,)),
        PriceLine(LineKind.ADD_ON, "Parking", count, 800, 800 * count, key="parking"),
    )
    total = 5000 + 800 * count
    reprice = Reprice(hold.booking_id, hold.fence, bench.now_us, (seat,), (5000,), total, encode_lines(lines), ())
    await bench.one.reprice(reprice)
    await bench.one.begin_payment(hold.booking_id, hold.fence, bench.now_us)
    await bench.one.confirm(hold.booking_id, hold.fence, bench.now_us, [])
    return hold.booking_id, hold.fence


def handed_out(bench: Bench, booking_id: str, name: str = "r1", quantity: int = 1, **more: Any) -> Redemption:
    about = {"add_on": "parking", "gate": "north", "made_by": "stf_1", "at_us": bench.now_us} | more
    return Redemption(f"{booking_id}:{name}", bench.event, booking_id, quantity=quantity, **about)


async def of_many_gates_as_many_hand_out_as_were_bought(bench: Bench) -> None:
    booking_id, _ = await with_parking(bench, 2)
    asks = [handed_out(bench, booking_id, str(n), gate=f"gate {n}") for n in range(CALLERS)]
    given, none = await outcomes([bench.either(n).redemptions.redeem(ask) for n, ask in enumerate(asks)])
    assert not none
    assert sum(one.answer is RedeemAnswer.OK for one in given) == 2
    refused = [one for one in given if one.answer is RedeemAnswer.USED_UP]
    assert len(refused) == CALLERS - 2
    assert all(one.last is not None and one.add_ons == (AddOnUse("parking", "Parking", 2, 2),) for one in refused)


async def a_repeated_redemption_counts_once(bench: Bench) -> None:
    booking_id, _ = await with_parking(bench, 2)
    ask = handed_out(bench, booking_id)
    given, none = await outcomes([bench.either(n).redemptions.redeem(ask) for n in range(CALLERS)])
    assert not none
    assert {one.answer for one in given} == {RedeemAnswer.OK}
    assert [one.used for one in given[-1].add_ons] == [1]
    await refusal(bench.one.redemptions.redeem(handed_out(bench, booking_id, quantity=2)), InvalidInput)


async def what_the_booking_does_not_have_is_not_handed_out(bench: Bench) -> None:
    booking_id, _ = await with_parking(bench, 2)
    redeem = bench.one.redemptions.redeem
    assert (await redeem(handed_out(bench, booking_id, quantity=3))).answer is RedeemAnswer.NOT_BOUGHT
    assert (await redeem(handed_out(bench, booking_id, add_on="dinner"))).answer is RedeemAnswer.NOT_BOUGHT
    await refusal(redeem(handed_out(bench, "bkg_none")), BookingNotFound)
    elsewhere = Redemption("r9", "evt_other", booking_id, "parking", 1, "north", "stf_1", bench.now_us)
    await refusal(redeem(elsewhere), BookingNotFound)
    assert await bench.one.redemptions.redemptions_of(booking_id) == []


async def an_undone_redemption_may_be_made_again_under_a_new_id(bench: Bench) -> None:
    booking_id, _ = await with_parking(bench, 1)
    book, ask = bench.one.redemptions, handed_out(bench, booking_id)
    await book.redeem(ask)
    before = await book.redemption_mark(bench.event)
    change = Change(EDITOR, "undo_redemption", bench.event, bench.now_us + 1, {"redemption": ask.id})
    assert await book.undo(ask.id, change)
    assert not await bench.two.redemptions.undo(ask.id, change)
    assert await book.redemption_mark(bench.event) != before
    assert (await book.redeem(ask)).answer is RedeemAnswer.UNDONE
    assert (await book.redeem(handed_out(bench, booking_id, "r2"))).answer is RedeemAnswer.OK
    assert [one.counts for one in await book.redemptions_of(booking_id)] == [False, True]
    assert len(await book.redemptions_of_event(bench.event, "", 10)) == 2


async def what_an_offline_gate_handed_out_too_often_is_kept_as_a_conflict(bench: Bench) -> None:
    booking_id, _ = await with_parking(bench, 1)
    book = bench.one.redemptions
    await book.redeem(handed_out(bench, booking_id))
    late = handed_out(bench, booking_id, "offline", gate="south")
    for _ in range(2):
        told = await book.redeem(late, offline=True)
        assert told.answer is RedeemAnswer.USED_UP
    kept = {one.gate: one.refused for one in await book.redemptions_of(booking_id)}
    assert kept == {"north": "", "south": "used_up"}
    assert [one.used for one in told.add_ons] == [1]


async def an_add_on_is_handed_out_or_paid_back_and_never_both(bench: Bench) -> None:
    """The booking has one: redemptions and refunds that were worked out before them race."""
    booking_id, fence = await with_parking(bench, 1)
    line = RefundLine(RefundLineKind.ADD_ON, "Parking", 1, 800, (), "parking")
    refund = Refund(f"rfd_{booking_id}", booking_id, "", 1, 800, "EUR", (), lines=encode_refund_lines([line]))
    seen = BookingSeen(5800)

    async def ask(number: int) -> str:
        ledger = bench.either(number)
        if number % 3:
            told = await ledger.redemptions.redeem(handed_out(bench, booking_id, str(number)))
            return "redeemed" if told.answer is RedeemAnswer.OK else ""
        await ledger.payments.ask_refund(refund, fence=fence, now_us=bench.now_us, seen=seen)
        return "refunded"

    done, _ = await outcomes([ask(number) for number in range(CALLERS)])
    won = {one for one in done if one}
    assert won in ({"redeemed"}, {"refunded"})
    assert done.count("redeemed") <= 1


CHECKS: list[Check] = [
    of_many_gates_as_many_hand_out_as_were_bought,
    a_repeated_redemption_counts_once,
    what_the_booking_does_not_have_is_not_handed_out,
    an_undone_redemption_may_be_made_again_under_a_new_id,
    what_an_offline_gate_handed_out_too_often_is_kept_as_a_conflict,
    an_add_on_is_handed_out_or_paid_back_and_never_both,
]
