"""N4, F8: the checker of recorded seats: what it accepts, what it must reject, and that a real history passes it."""

import random

import pytest

from tests.faults.linearizability import NEVER_US, Act, Call, check, explain

SEAT = 7


def call(act: Act, booking: str, began: int, ended: int = NEVER_US) -> Call:
    return Call(act, SEAT, booking, began, ended)


def sold_to(booking: str, from_us: int) -> list[Call]:
    return [call(Act.TAKE, booking, from_us, from_us + 2), call(Act.SELL, booking, from_us + 3, from_us + 5)]


ACCEPTED = {
    "one after the other": [*sold_to("a", 0), call(Act.REFUND, "a", 10, 12), *sold_to("b", 20)],
    "two at once, in one order": [call(Act.TAKE, "a", 0, 9), call(Act.TAKE, "b", 1, 10), call(Act.DROP, "a", 2, 8)],
    "a release that nobody heard of": [call(Act.TAKE, "a", 0, 1), call(Act.DROP, "a", 2), call(Act.TAKE, "b", 5, 6)],
    "a hold that nobody heard of": [call(Act.TAKE, "a", 0), call(Act.EXPIRE, "a", 9), call(Act.TAKE, "b", 10, 11)],
    "a sale that was heard of later": [
        call(Act.TAKE, "a", 0, 1),
        call(Act.SELL, "a", 2),
        call(Act.SEE, "a", 5, 6),
        call(Act.SEE, "a", 7, 8),
    ],
    "a hold that ran out": [call(Act.TAKE, "a", 0, 1), call(Act.EXPIRE, "a", 5), call(Act.TAKE, "b", 6, 7)],
}
REJECTED = {
    "sold twice": [*sold_to("a", 0), *sold_to("b", 10)],
    "held by two": [call(Act.TAKE, "a", 0, 1), call(Act.TAKE, "b", 2, 3)],
    "held again before the hold ran out": [
        call(Act.TAKE, "a", 0, 1),
        call(Act.EXPIRE, "a", 100),
        call(Act.TAKE, "b", 50, 60),
    ],
    "sold after it ran out and was taken": [
        call(Act.TAKE, "a", 0, 1),
        call(Act.EXPIRE, "a", 5),
        call(Act.TAKE, "b", 6, 7),
        call(Act.SELL, "a", 8, 9),
    ],
    "an acknowledged sale is lost": [*sold_to("a", 0), call(Act.TAKE, "b", 10, 11)],
    "seen sold and never bought": [call(Act.SEE, "a", 0, 1)],
    "released and sold": [call(Act.TAKE, "a", 0, 1), call(Act.DROP, "a", 2, 3), call(Act.SELL, "a", 4, 5)],
    "an effect before its call": [call(Act.TAKE, "b", 0, 1), call(Act.TAKE, "a", 2, 3), call(Act.DROP, "b", 4, 5)],
}


@pytest.mark.parametrize("calls", ACCEPTED.values(), ids=ACCEPTED)
def test_a_history_that_some_order_explains_is_accepted(calls: list[Call]) -> None:
    assert explain(calls) is True


@pytest.mark.parametrize("calls", REJECTED.values(), ids=REJECTED)
def test_the_canaries_are_rejected(calls: list[Call]) -> None:
    assert explain(calls) is False
    assert check(calls).broken == (SEAT,)


def play(seed: int, length: int = 24) -> list[Call]:
    """A real object in random overlapping calls: each takes effect somewhere inside its time. Some answers are lost."""
    dice, now, state, calls = random.Random(seed), 0, "", []
    sold = False
    for number in range(length):
        now += dice.randrange(1, 5)
        began, ended = now - dice.randrange(0, 20), now + dice.randrange(0, 20)
        if dice.random() < 0.1:
            ended = NEVER_US
        if not state:
            state, sold = f"b{number}", False
            calls.append(call(Act.TAKE, state, began, ended))
        elif sold:
            calls.append(call(dice.choice((Act.SEE, Act.REFUND)), state, began, ended))
            state = state if calls[-1].act is Act.SEE else ""
        else:
            calls.append(call(dice.choice((Act.DROP, Act.SELL)), state, began, ended))
            sold = calls[-1].act is Act.SELL
            state = state if sold else ""
    dice.shuffle(calls)
    return calls


@pytest.mark.parametrize("seed", range(40))
def test_histories_of_a_correct_seat_are_accepted_and_one_more_owner_is_not(seed: int) -> None:
    calls = play(seed)
    assert explain(calls) is True
    last = max(one.began_us for one in calls) + 100
    both = [*calls, call(Act.TAKE, "x", last, last + 1), call(Act.TAKE, "y", last + 2, last + 3)]
    assert explain(both) is False


def test_a_search_that_is_cut_off_proves_nothing() -> None:
    verdict = check(play(3), most_steps=2)
    assert verdict.undecided == (SEAT,)
    assert not verdict.holds
