"""Prefixed ids."""

import pytest

from frontrow.core.errors import InvalidInput
from frontrow.shared.ids import Ids, check_id, encode32, made_at_us
from frontrow.testing.clock import ManualClock


def test_ids_say_what_they_are_sort_by_time_and_repeat_with_the_same_randomness() -> None:
    clock = ManualClock()
    ids = Ids(clock, lambda bits: 7)
    first = ids.new("bkg")
    clock.advance(0.001)
    second = ids.new("bkg")
    assert first < second
    assert first == check_id(first, "bkg")
    assert len({Ids().new("evt") for _ in range(1000)}) == 1000
    assert made_at_us(ids.new("evt")) == clock() // 1000 * 1000
    assert [made_at_us(text) for text in ("", "evt", "evt_short", "evt_not-one-of-ours-at-all")] == [0] * 4
    for wrong in ("bkg_", "evt_" + first[4:], first + "0", first.lower(), "bkg", "x" * 9999):
        with pytest.raises(InvalidInput, match="is not a bkg id such as bkg_0000"):
            check_id(wrong, "bkg")
    with pytest.raises(ValueError):
        encode32(32, 1)
