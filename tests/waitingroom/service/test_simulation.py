"""W6, W14: a whole sale in virtual time. Capacity is never exceeded and hardly ever unused, whatever people do."""

import pytest

from frontrow.waitingroom.model.config import RoomConfig
from tests.waitingroom.simulation import Behaviour, Sale


@pytest.mark.parametrize("seed", [1, 2])
async def test_w6_capacity_is_never_exceeded_and_used_to_98_percent_with_40_percent_no_shows(seed: int) -> None:
    """40 % never come, 10 % come minutes late, 10 % of visitors vanish without giving their pass back."""
    config = RoomConfig(capacity=500, window_size=10_000, pass_ttl_s=900, grace_us=300_000_000)
    told = await Sale(config, Behaviour(), seed, people=20_000).run(seconds=1200, warm_up_s=300)
    assert told.peak <= 500, "checked after every single claim"
    assert told.peak == 500, "and the bound was reached, so it was tested"
    assert told.utilisation >= 0.98
    assert told.claims > 2_000
    assert told.expired == 0, "nobody who came inside the grace was turned away"


@pytest.mark.parametrize(
    "behaviour",
    [
        Behaviour(no_show=0.0, late=0.0, abandon=0.0),
        Behaviour(no_show=0.9, late=0.02, abandon=0.0),
        Behaviour(no_show=0.4, late=0.5, abandon=0.3),
        Behaviour(no_show=0.4, late=0.1, abandon=1.0, visit_s=10_000),
    ],
)
async def test_w6_extreme_crowds_neither_overshoot_nor_freeze_the_line(behaviour: Behaviour) -> None:
    """All come; nearly none come; half come late; everybody vanishes: capacity holds, admissions go on."""
    config = RoomConfig(capacity=100, window_size=10_000, pass_ttl_s=300, grace_us=300_000_000)
    told = await Sale(config, behaviour, 7, people=20_000).run(seconds=1000, warm_up_s=400)
    assert told.peak <= 100
    assert told.utilisation >= 0.95
    assert told.expired == 0


async def test_w6_a_cut_of_capacity_drains_and_is_never_exceeded_again() -> None:
    config = RoomConfig(capacity=300, window_size=10_000, pass_ttl_s=300, grace_us=300_000_000)
    sale = Sale(config, Behaviour(), 3, people=20_000)
    sale.cut = {600: 100}
    told = await sale.run(seconds=1200, warm_up_s=300)
    assert max(told.series[:600]) <= 300
    below = next(second for second, active in enumerate(told.series) if second > 600 and active <= 100)
    assert max(told.series[below:]) <= 100
    assert sum(told.series[below:]) / len(told.series[below:]) >= 90


async def test_a_sale_is_the_same_every_time() -> None:
    config = RoomConfig(capacity=50, window_size=100, pass_ttl_s=300)
    runs = [await Sale(config, Behaviour(), 11, people=2_000).run(seconds=200, warm_up_s=0) for _ in range(2)]
    assert runs[0] == runs[1]
