"""The limit that holds a shop's p95: simulated shops, reporters that die or lie, bounds set by hand, state kept."""

from dataclasses import replace

import msgspec
import pytest

from frontrow.rehearsal.shop_inflow import SHOPS, Shop, run_shop
from frontrow.waitingroom.model.admission import plan_slide
from frontrow.waitingroom.model.config import Phase, RoomConfig
from frontrow.waitingroom.model.inflow import FRESH_US, Inflow, ShopReport, judge_reports, next_inflow
from frontrow.waitingroom.model.measurements import Measured, read_note, write_note
from frontrow.waitingroom.model.room_state import LaneState, RoomState

S = 1_000_000
CONFIG = RoomConfig(capacity=1000, max_p95_ms=400)
BOUND_MS = 400


def report(p95_ms: int, *, name: str = "shop-1", at_s: int = 100, requests: int = 500, errors: int = 0) -> ShopReport:
    return ShopReport(name, at_s, p95_ms, requests, errors, at_s * S)


def follow(
    reports: list[ShopReport],
    *,
    old: Inflow | None = None,
    active: int = 500,
    config: RoomConfig = CONFIG,
    now_s: int = 100,
    waiting: int = 50,
) -> Inflow:
    after = next_inflow(old, reports, config, active=active, waiting=waiting, now_us=now_s * S)
    assert after is not None
    return after


@pytest.mark.parametrize("seed", range(1, 6))
def test_a_shop_that_doubles_at_60_percent_stays_under_its_bound_and_loses_little(seed: int) -> None:
    run = run_shop(Shop(), bound_ms=BOUND_MS, seed=seed)
    assert max(run.p95_ms) < BOUND_MS
    assert run.share_of_best >= 0.95


@pytest.mark.parametrize("seed", range(1, 6))
def test_once_settled_the_limit_does_not_swing(seed: int) -> None:
    settled = run_shop(Shop(), bound_ms=BOUND_MS, seed=seed).limits[1200:]
    assert max(settled) - min(settled) < 0.1 * max(settled)


@pytest.mark.parametrize("shop", [shop for shop in SHOPS if not shop.by_arrivals], ids=lambda shop: shop.name)
def test_shops_of_other_shapes_stay_within_their_bound_too(shop: Shop) -> None:
    run = run_shop(shop, bound_ms=BOUND_MS)
    assert max(run.p95_ms) < 1.02 * BOUND_MS
    assert run.share_of_best >= 0.89


def test_without_the_controller_the_same_shop_breaks_its_bound() -> None:
    run = run_shop(Shop(), bound_ms=BOUND_MS, reporters=0)
    assert max(run.p95_ms) > 2 * BOUND_MS, "the canary: the set rate is too much for this shop"


def test_reporters_that_die_in_the_middle_change_nothing() -> None:
    run = run_shop(Shop(), bound_ms=BOUND_MS, silent_from_s=1800)
    assert len(set(run.limits[1800:])) == 1
    assert max(run.p95_ms) < 1.02 * BOUND_MS


@pytest.mark.parametrize("lie_ms", [0, 600_000])
def test_one_liar_among_three_reporters_changes_nothing(lie_ms: int) -> None:
    honest, fooled = run_shop(Shop(), reporters=3), run_shop(Shop(), reporters=2, liars=(lie_ms,))
    assert max(fooled.p95_ms) < 1.02 * BOUND_MS
    assert fooled.share_of_best == pytest.approx(honest.share_of_best, abs=0.05)


def test_the_capacity_set_by_hand_is_never_exceeded_and_wins_at_once() -> None:
    fast = Inflow(limit_milli=990_000, heard_us=95 * S, log_load=-3.0)
    assert follow([report(10)], old=fast, active=990).limit == 1000
    assert follow([report(10)], old=fast, config=CONFIG.changed(capacity=300)).limit == 300


def test_the_fewest_people_set_by_hand_win_over_any_report() -> None:
    slow = Inflow(limit_milli=50_000, heard_us=95 * S)
    config = CONFIG.changed(min_capacity=40)
    for second in range(100, 400, 5):
        slow = follow([report(60_000, at_s=second)], old=slow, active=45, config=config, now_s=second)
    assert slow.limit == 40
    assert follow([report(60_000)], active=5, config=config.changed(capacity=20, min_capacity=40)).limit == 20


def test_without_a_bound_or_before_the_first_report_the_settings_alone_decide() -> None:
    assert next_inflow(None, [report(900)], RoomConfig(), active=1, waiting=1, now_us=100 * S) is None
    assert next_inflow(None, [], CONFIG, active=1, waiting=1, now_us=100 * S) is None
    stale = Inflow(limit_milli=5_000)
    assert next_inflow(stale, [report(900)], RoomConfig(), active=1, waiting=1, now_us=100 * S) is None, "switched off"


def test_a_report_counts_for_half_a_minute_on_both_sides_of_the_boundary() -> None:
    one = report(800)
    assert judge_reports([one], CONFIG, one.at_us + FRESH_US - 1) is not None
    assert judge_reports([one], CONFIG, one.at_us + FRESH_US) is None


def test_the_same_report_counts_once() -> None:
    once = follow([report(2000)], old=Inflow(limit_milli=500_000, heard_us=95 * S))
    assert follow([report(2000)], old=once, now_s=101) == once


def test_errors_above_the_set_share_shrink_the_limit_like_latency() -> None:
    old = Inflow(limit_milli=500_000, heard_us=95 * S)
    assert follow([report(10, errors=200)], old=old).limit < 500
    assert follow([report(10, errors=5)], old=old).limit > 500


def test_a_limit_that_nobody_fills_does_not_grow() -> None:
    old = Inflow(limit_milli=500_000, heard_us=95 * S, log_load=-1.0)
    assert follow([report(10)], old=old, waiting=0).limit == 500
    assert follow([report(10)], old=old, active=100).limit == 500
    assert follow([report(10)], old=old, active=480).limit > 500


def test_reports_without_requests_are_a_sign_of_life_and_no_measure() -> None:
    first = follow([report(0, requests=0)], active=0)
    assert (first.limit, first.reporters) == (250, 1), "a quarter of the capacity to begin with"
    assert follow([report(0, requests=0, at_s=105)], old=first, active=0, now_s=105).limit == 250


def test_of_an_even_number_of_reporters_the_slower_middle_one_counts() -> None:
    health = judge_reports([report(100), report(700, name="shop-2")], CONFIG, 100 * S)
    assert health is not None
    assert (health.p95_ms, health.reporters) == (700, 2)


# -- kept in the store ---------------------------------------------------------------------------------------------


def test_the_state_has_its_kind_and_version_and_another_version_begins_anew() -> None:
    note = write_note(Measured(inflow=Inflow(limit_milli=5_000)))
    kept = msgspec.json.decode(note)["inflow"]
    assert kept["limit_milli"] == 5_000
    newer = note.replace('"limit_milli"', '"version":2,"limit_milli"')
    read = read_note(newer).inflow
    assert read is not None
    assert not read.is_ours
    assert follow([report(100)], old=read, active=300).limit >= 300, "not the 5 of a version it cannot read"


def test_an_older_leader_that_drops_the_state_only_lets_the_controller_begin_anew() -> None:
    assert read_note('{"at_us":5,"margin":0.1}').inflow is None


def room(reports: int = 0, **changes: object) -> RoomState:
    config = CONFIG.changed(rate_per_s=1000, burst=1000, window_size=1000)
    base = RoomState(
        1, Phase.OPEN, config, (LaneState(issued=5000),), bucket_milli=10**6, bucket_at_us=99 * S, slid_at_us=99 * S
    )
    return replace(base, now_us=100 * S, **changes)  # type: ignore[arg-type]


def test_a_slide_admits_no_more_than_the_limit_leaves_and_the_pace_allows() -> None:
    before = write_note(Measured(at_us=99 * S, margin=0.0, inflow=Inflow(limit_milli=400_000, heard_us=95 * S)))
    full = plan_slide(room(note=before, active=400), [report(300)])
    assert full is not None
    assert full.admitted <= 10, "a capacity of 1000 would have admitted 600"
    gap = plan_slide(room(note=before, active=300), [report(300)])
    assert gap is not None
    assert 0 < gap.admitted <= 20, "about a thirtieth of the limit per second, not the whole gap at once"
    free = plan_slide(room(active=300))
    assert free is not None
    assert free.admitted >= 600, "without reports the settings alone decide"


def test_the_next_leader_goes_on_with_the_limit_of_the_last() -> None:
    first = plan_slide(room(active=500), [report(300)])
    assert first is not None
    left = read_note(first.note).inflow
    state = replace(room(active=500, note=first.note), now_us=101 * S, slid_at_us=100 * S)
    second = plan_slide(state, [report(300)])
    assert second is not None
    assert read_note(second.note).inflow == left
