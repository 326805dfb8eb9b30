"""Money: splitting never loses a cent (B20)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frontrow.core.errors import InvalidInput
from frontrow.shared.money import Money, share_out

amounts = st.integers(-(10**12), 10**12)


@given(amounts, st.integers(1, 200))
def test_split_parts_add_up_and_differ_by_at_most_one_cent(minor: int, parts: int) -> None:
    pieces = share_out(minor, [1] * parts)
    assert sum(pieces) == minor
    assert max(pieces) - min(pieces) <= 1
    assert [abs(piece) for piece in pieces] == sorted((abs(piece) for piece in pieces), reverse=True)


@given(amounts, st.lists(st.integers(0, 10**6), min_size=1, max_size=40).filter(any))
def test_allocated_parts_add_up_and_are_less_than_a_cent_off_their_share(minor: int, weights: list[int]) -> None:
    pieces = share_out(minor, weights)
    total = sum(weights)
    assert sum(pieces) == minor
    assert all(abs(piece * total - minor * weight) < total for piece, weight in zip(pieces, weights, strict=True))


def test_arithmetic_stays_in_one_currency() -> None:
    assert Money(150, "EUR") + Money(50, "EUR") - Money(20, "EUR") == Money(180, "EUR")
    assert Money(3, "EUR") * 4 == Money(12, "EUR")
    assert Money(3, "EUR") < Money(4, "EUR")
    assert not Money(3, "EUR") < Money(3, "EUR")
    assert not Money(4, "EUR") <= Money(3, "EUR")
    assert Money(3, "EUR") <= Money(3, "EUR")
    assert -Money(3, "EUR") == Money(-3, "EUR")
    assert not Money.zero("EUR")
    for mixed in (lambda: Money(1, "EUR") + Money(1, "USD"), lambda: Money(1, "EUR") < Money(1, "USD")):
        with pytest.raises(InvalidInput, match="different currencies"):
            mixed()


@pytest.mark.parametrize("currency", ["eur", "EURO", "", "€€€", "E1R2"])
def test_a_currency_is_three_capital_letters(currency: str) -> None:
    with pytest.raises(InvalidInput, match="currency code"):
        Money(1, currency)


@pytest.mark.parametrize("minor", [1.0, "1", True, None])
def test_an_amount_is_a_whole_number(minor: object) -> None:
    with pytest.raises(InvalidInput, match="whole number"):
        Money(minor, "EUR")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("money", "shown"),
    [
        (Money(1250, "EUR"), "12.50 EUR"),
        (Money(-5, "EUR"), "-0.05 EUR"),
        (Money(0, "EUR"), "0.00 EUR"),
        (Money(-1250, "JPY"), "-1250 JPY"),
        (Money(0, "JPY"), "0 JPY"),
        (Money(1250, "JPY"), "1250 JPY"),
        (Money(1250, "KWD"), "1.250 KWD"),
    ],
)
def test_money_is_shown_with_its_currencys_digits(money: Money, shown: str) -> None:
    assert str(money) == shown


@pytest.mark.parametrize(
    ("minor", "basis_points", "share"), [(1000, 250, 25), (10, 500, 1), (9, 500, 0), (-10, 500, -1), (1000, 0, 0)]
)
def test_percent_rounds_half_up(minor: int, basis_points: int, share: int) -> None:
    assert Money(minor, "EUR").percent(basis_points) == Money(share, "EUR")


@pytest.mark.parametrize("weights", [[], [0, 0], [-1, 2]])
def test_weights_that_cannot_share_are_refused(weights: list[int]) -> None:
    with pytest.raises(InvalidInput):
        share_out(10, weights)


def test_a_total_is_the_sum_in_the_currency_that_was_asked_for() -> None:
    assert Money.total([Money(150, "EUR"), Money(-20, "EUR"), Money(7, "EUR")], "EUR") == Money(137, "EUR")
    assert Money.total([], "JPY") == Money(0, "JPY")
    with pytest.raises(InvalidInput, match="different currencies"):
        Money.total([Money(1, "USD")], "EUR")


def test_the_cents_that_rounding_down_loses_go_to_the_largest_remainders_and_then_to_the_earlier_part() -> None:
    assert share_out(10, [1, 1, 1]) == [4, 3, 3]
    assert share_out(100, [1, 2, 4]) == [14, 29, 57], "2/7 of 100 loses most"
    assert share_out(-100, [1, 2, 4]) == [-14, -29, -57]
    assert share_out(0, [3, 1]) == [0, 0]
    assert share_out(5, [1]) == [5]
    assert share_out(1, [0, 1]) == [0, 1]
