"""The dates of a show: rules, the venue's clock, and what a further date takes over."""

from datetime import UTC, date, datetime, time

import pytest

from frontrow.boxoffice.events.model.events import Event, EventStatus
from frontrow.boxoffice.events.model.show_dates import (
    MAX_DATES,
    DateRule,
    SaleOpening,
    dates_by_rule,
    further_dates,
    moments_of,
)
from frontrow.core.clock import US_PER_S
from frontrow.core.errors import InvalidInput

VIENNA = "Europe/Vienna"


def utc_us(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * US_PER_S


def test_a_rule_means_its_days_and_times_in_order() -> None:
    rule = DateRule(frozenset({4, 5}), (time(19, 30), time(15)), date(2027, 3, 26), date(2027, 4, 3))
    assert [str(at) for at in dates_by_rule(rule)] == [
        "2027-03-26 15:00:00",
        "2027-03-26 19:30:00",
        "2027-03-27 15:00:00",
        "2027-03-27 19:30:00",
        "2027-04-02 15:00:00",
        "2027-04-02 19:30:00",
        "2027-04-03 15:00:00",
        "2027-04-03 19:30:00",
    ]


@pytest.mark.parametrize(
    ("rule", "param"),
    [
        (DateRule(frozenset(), (time(20),), date(2027, 1, 1), date(2027, 1, 8)), "weekdays"),
        (DateRule(frozenset({7}), (time(20),), date(2027, 1, 1), date(2027, 1, 8)), "weekdays"),
        (DateRule(frozenset({0}), (), date(2027, 1, 1), date(2027, 1, 8)), "times"),
        (DateRule(frozenset({0}), (time(20),), date(2027, 1, 8), date(2027, 1, 1)), "last_day"),
        (DateRule(frozenset({0}), (time(20),), date(2027, 1, 1), date(2031, 1, 1)), "last_day"),
        (DateRule(frozenset({0}), (time(20),), date(2027, 1, 1), date(2027, 1, 2)), "weekdays"),
    ],
)
def test_a_rule_that_means_nothing_says_what_is_wrong(rule: DateRule, param: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        dates_by_rule(rule)
    assert refused.value.param == param


def test_half_past_seven_is_half_past_seven_after_the_clocks_change() -> None:
    friday, next_friday = datetime(2027, 3, 26, 19, 30), datetime(2027, 4, 2, 19, 30)  # they change on 28 March
    assert moments_of([next_friday, friday, friday], VIENNA) == [
        utc_us("2027-03-26T18:30"),
        utc_us("2027-04-02T17:30"),
    ]


def test_a_time_that_the_clocks_skip_is_refused_and_of_one_that_comes_twice_the_first_is_meant() -> None:
    with pytest.raises(InvalidInput, match="2027-03-28 02:30 does not exist in Europe/Vienna"):
        moments_of([datetime(2027, 3, 28, 2, 30)], VIENNA)
    assert moments_of([datetime(2027, 10, 31, 2, 30)], VIENNA) == [utc_us("2027-10-31T00:30")]


@pytest.mark.parametrize("count", [0, MAX_DATES + 1])
def test_the_number_of_dates_is_bounded(count: int) -> None:
    with pytest.raises(InvalidInput, match="1 to 100 dates"):
        moments_of([datetime(2027, 1, 1 + n // 24, n % 24) for n in range(count)], VIENNA)


def test_a_further_date_keeps_length_and_end_of_sale_and_opens_with_the_first_or_so_many_days_before() -> None:
    first = Event(
        id="evt_1",
        name="Aurora",
        venue_id="ven_1",
        plan_hash="p",
        currency="EUR",
        starts_at_us=utc_us("2027-03-26T18:30"),
        ends_at_us=utc_us("2027-03-26T20:30"),
        sale_starts_at_us=utc_us("2027-03-16T09:00"),  # ten days before, at 10:00 in Vienna
        sale_ends_at_us=utc_us("2027-03-26T17:30"),
        presale_starts_at_us=utc_us("2027-03-15T09:00"),
        tiers=(),
        status=EventStatus.ON_SALE,
        paused=True,
    )
    start_us = utc_us("2027-04-09T13:00")  # a matinée, in summer time
    (same,) = further_dates(first, ["evt_2"], [start_us], VIENNA, SaleOpening.SAME)
    assert (same.id, same.status, same.paused) == ("evt_2", EventStatus.DRAFT, False)
    assert same.ends_at_us == utc_us("2027-04-09T15:00")
    assert same.sale_ends_at_us == utc_us("2027-04-09T12:00")
    assert (same.sale_starts_at_us, same.presale_starts_at_us) == (first.sale_starts_at_us, first.presale_starts_at_us)
    (relative,) = further_dates(first, ["evt_2"], [start_us], VIENNA, SaleOpening.RELATIVE)
    assert relative.sale_starts_at_us == utc_us("2027-03-30T08:00")  # ten days before, at 10:00 in summer time
    assert relative.presale_starts_at_us == utc_us("2027-03-29T08:00")
