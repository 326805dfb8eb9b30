"""O3: decisions that no purchase passes through are logged where they are saved, each once."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.payments.simulated import SimulatedProvider
from frontrow.boxoffice.checkout.reconciliation import Reconciler, ReconciliationReport
from frontrow.boxoffice.facts.fact_consumers import TRIES, FactConsumer
from frontrow.boxoffice.facts.model import BusFact, Fact, HoldPlaced, OutboxFact, on_the_bus
from frontrow.boxoffice.holds.expiry import Sweeper
from frontrow.boxoffice.refunds.model.refund_policy import RefundPolicy
from frontrow.boxoffice.refunds.model.refund_rules import RefundRefused
from frontrow.core.breaker import Breaker
from frontrow.core.clock import US_PER_S
from frontrow.limits.stats import Stats
from frontrow.limits.stores.store_health import MAX_REASONS, StoreHealth
from frontrow.testing.clock import ManualClock
from frontrow.waitingroom.model.config import RoomConfig
from frontrow.waitingroom.model.room_state import LaneState, Phase, RoomState
from frontrow.waitingroom.ports import Recovered
from frontrow.waitingroom.service.leader import Leader
from frontrow.waitingroom.stores.memory import MemoryRoomStore
from tests.support.log_lines import Lines, log_lines, story_of
from tests.waitingroom.simulation import NoAudit
from tests.web.api.script import a_buyer
from tests.web.api.support import EVENT_ID, a_server, put_event


def actions(lines: Lines) -> list[str]:
    return [line["action"] for line in lines() if "action" in line]


async def test_o3_a_hold_that_expires_while_it_is_paid_is_logged(tmp_path: Path) -> None:
    with log_lines() as lines:
        async with a_server(tmp_path, jobs_inside=False) as (platform, address):
            async with httpx.AsyncClient(base_url=address) as client:
                buyer = await a_buyer(client)
                await buyer.enter(EVENT_ID)
                paying = await buyer.hold(EVENT_ID, seats=["S-B-3"])
                await buyer.call("pay", booking_id=paying["booking"], json={"method": "pm_card_3ds"})
                other = await a_buyer(client)
                await other.enter(EVENT_ID)
                held = await other.hold(EVENT_ID, seats=["S-B-4"])
            clock = ManualClock(platform.clock() + 3600 * US_PER_S)
            assert await Sweeper(platform.ledger, clock).sweep() == 2
        (line,) = [one for one in lines() if one.get("action") == "hold_expired_while_paying"]
        assert (line["booking_id"], line["event_id"], line["seats"]) == (paying["booking"], EVENT_ID, 1)
        assert story_of(held["booking"], lines()) == [], "nobody loses money by a hold that just ends"


async def test_o3_b12_a_refund_that_the_rules_refuse_is_logged(tmp_path: Path) -> None:
    with log_lines() as lines:
        async with a_server(tmp_path) as (platform, address), httpx.AsyncClient(base_url=address) as client:
            await put_event(platform, None, refunds=RefundPolicy(allowed=False))
            buyer = await a_buyer(client)
            await buyer.enter(EVENT_ID)
            held = await buyer.hold(EVENT_ID, seats=["S-B-3"])
            await buyer.pay(held["booking"])
            booking = await platform.ledger.booking(held["booking"])
            assert booking is not None
            with pytest.raises(RefundRefused):
                await platform.box_office.refunds.refund(booking.id, booking.fence)
        assert "refund_refused" in story_of(held["booking"], lines())


async def test_o3_f1_a_claim_store_that_was_filled_again_is_logged(tmp_path: Path) -> None:
    with log_lines() as lines:
        async with a_server(tmp_path) as (platform, _):
            claims: Any = platform.stores.claims
            before = actions(lines).count("claims_rebuilt")
            claims._event(EVENT_ID).filled = False
            assert await platform.box_office.recovery.check(EVENT_ID)
        assert actions(lines).count("claims_rebuilt") == before + 1


async def test_o3_a_dead_letter_is_logged_and_counted(tmp_path: Path) -> None:
    async def plan(number: int, fact: Fact) -> Sequence[Query]:
        raise KeyError("ada@example.org")

    with log_lines() as lines:
        async with a_server(tmp_path, jobs_inside=False) as (platform, _):
            fact = HoldPlaced("bkg_1", EVENT_ID, "fan_1", 1, (1,), platform.clock(), expires_at_us=1)
            consumer = FactConsumer("notify", Any, platform.ledger.messages, platform.clock, plan)  # type: ignore[arg-type]
            carried: BusFact = on_the_bus(OutboxFact(7, fact))
            await consumer._handle([carried])
        (line,) = [one for one in lines() if one.get("action") == "dead_letter"]
        assert (line["consumer"], line["fact"], line["error"]) == ("notify", 7, "KeyError")
        assert consumer.dead_letters == 1
        assert TRIES > 1


async def test_o3_w11_who_leads_a_room_is_logged() -> None:
    clock = ManualClock()
    store = MemoryRoomStore(clock)
    state = RoomState(1, Phase.OPEN, RoomConfig(), (LaneState(),))
    await store.create("evt_1", Recovered(state))
    first, second = (Leader(store, NoAudit(), owner=name) for name in ("one", "two"))  # type: ignore[arg-type]

    async def turn(leader: Leader) -> None:
        now = await store.snapshot("evt_1")
        assert now is not None
        await leader.take_turn("evt_1", now)

    with log_lines() as lines:
        for leader in (first, second, first):
            await turn(leader)
        assert actions(lines) == ["lead_won"]
        clock.advance(us=first.leadership_ttl_us)  # the first one was stopped for too long
        for leader in (second, first, second):
            await turn(leader)
        assert actions(lines) == ["lead_won", "lead_won", "lead_lost"]
        await second.resign("evt_1")
        assert actions(lines)[3:] == ["lead_lost"]


def test_o3_a_difference_is_logged_when_two_passes_saw_it_and_only_once() -> None:
    reconciler = Reconciler(Any, SimulatedProvider(ManualClock()), Any, Any)  # type: ignore[arg-type]
    off = ReconciliationReport(problems=["pay_1: lost"], ledger_minor={"EUR": 100}, provider_minor={"EUR": 90})
    with log_lines() as lines:
        reconciler._tell(None, off)
        assert actions(lines) == ["reconciliation_problem"], "a payment may be on its way"
        for _ in range(3):
            reconciler._tell(off, off)
        assert actions(lines) == ["reconciliation_problem", "reconciliation_difference"]
        assert (lines()[-1]["ledger_minor"], lines()[-1]["provider_minor"]) == (100, 90)


def test_o3_l14_limits_that_count_alone_are_logged() -> None:
    clock = ManualClock()
    health = StoreHealth("redis://store", Breaker(clock), Stats(["a"]))
    with log_lines() as lines:
        for _ in range(5):
            health.record_failure("refused")
        health.record_success(0.001)
        health.record_success(0.001)
    assert actions(lines) == ["limits_without_store", "limits_shared_again"]


def test_o3_l14_each_reason_of_an_outage_is_logged_once_per_minute_although_they_take_turns() -> None:
    clock, now_s = ManualClock(), [0.0]
    health = StoreHealth("redis://store", Breaker(clock), Stats(["a"]), monotonic_s=lambda: now_s[0])
    with log_lines() as lines:
        for _ in range(20):
            health.record_failure("Connection refused.")
            health.record_failure("no answer within the deadline")
        assert [line["problem"] for line in lines()] == ["Connection refused", "no answer within the deadline"]
        for number in range(MAX_REASONS):
            health.record_failure(f"reason {number}")
        assert len(health._logged) == MAX_REASONS
        now_s[0] = 60.0
        health.record_failure("reason 0")
    assert lines()[-1]["problem"] == "reason 0"
