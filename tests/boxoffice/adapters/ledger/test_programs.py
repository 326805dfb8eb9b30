"""The ledger's decisions without a database: programs are generators, so rare interleavings are played by hand (N4)."""

from collections.abc import Callable
from typing import Any

from frontrow.boxoffice.adapters.ledger.engine.queries import Query, Row
from frontrow.boxoffice.adapters.ledger.engine.statements import NO_CONFLICT
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import MAX_MOVE_ROUNDS, MakeMove, Program, make_moves
from frontrow.boxoffice.adapters.ledger.holds.hold_idempotency import KEY_TRIES
from frontrow.boxoffice.adapters.ledger.holds.hold_transactions import place_holds
from frontrow.boxoffice.holds.model.bookings import BookingState, Move
from frontrow.boxoffice.holds.model.holds import NewHold, PlacedHold
from frontrow.core.errors import Overloaded

WISH = NewHold("bkg_1", "evt", "fan", (1, 2), 10, 20, idempotency_key="k", request_hash="h")


def play(program: Program[Any], store: Callable[[Query], list[Row]]) -> tuple[Any, list[str]]:
    """Run a program against a made-up store; its answer and the statements it asked for."""
    asked: list[str] = []
    query = next(program)
    try:
        while True:
            asked.append(query.name)
            query = program.send(store(query))
    except StopIteration as done:
        return done.value, asked


def free(query: Query) -> list[Row]:
    """A store in which everything is free."""
    match query.name:
        case "take_free_seats":
            return NO_CONFLICT
        case "add_new_bookings" | "add_bookings":
            return [(row[0], 7) for row in query.rows]
        case "take_keys":
            return [(row[0], row[1]) for row in query.rows]
    return []


def test_an_undisturbed_hold_asks_for_four_statements() -> None:
    (placed,), asked = play(place_holds([WISH], []), free)
    assert isinstance(placed, PlacedHold)
    assert placed.fence == 7
    assert asked == ["take_keys", "seats_in_the_way", "take_free_seats", "add_new_bookings"]


def test_a_key_that_is_forgotten_while_we_look_is_taken_again() -> None:
    answers = iter([[], [("fan", "k")]])

    def store(query: Query) -> list[Row]:
        return next(answers) if query.name == "take_keys" else free(query)

    (placed,), asked = play(place_holds([WISH], []), store)
    assert isinstance(placed, PlacedHold)
    assert asked[:3] == ["take_keys", "known_keys", "take_keys"]


def test_a_key_that_is_never_there_when_we_look_ends_in_try_again() -> None:
    (answer,), asked = play(place_holds([WISH], []), lambda query: [])
    assert isinstance(answer, Overloaded)
    assert asked == ["take_keys", "known_keys"] * KEY_TRIES


def test_seats_that_change_hands_in_every_round_end_in_try_again() -> None:
    """Bounded: a wish loses every insert and never sees to whom."""

    def store(query: Query) -> list[Row]:
        return [("bkg_1", 1)] if query.name == "take_free_seats" else free(query)

    (answer,), asked = play(place_holds([WISH], []), store)
    assert isinstance(answer, Overloaded)
    assert asked.count("take_free_seats") == 2
    assert asked.count("drop_seats") == 2, "the half it got is given back every time"
    assert asked[-1] == "forget_keys"


def test_a_booking_others_keep_changing_ends_in_try_again() -> None:
    """Bounded: the update finds another state than the look after it, every time."""
    row = ("bkg_1", "evt", "fan", "paying", 7, "[1]", 0, "EUR", "", 1, 1, 100, None, "", "shop", "", None, "")

    def store(query: Query) -> list[Row]:
        return [row] if query.name == "bookings_by_id" else []

    ask = MakeMove("bkg_1", Move.CONFIRM, 7, 50)
    (answer,), asked = play(make_moves([ask], []), store)
    assert isinstance(answer, Overloaded)
    assert asked.count("move_bookings") == MAX_MOVE_ROUNDS + 1


def test_moves_of_one_booking_in_one_batch_follow_each_other() -> None:
    states = iter(["paying", "confirmed"])

    def store(query: Query) -> list[Row]:
        if query.name != "move_bookings":
            return []
        return [
            ("bkg_1", "evt", "fan", next(states), 7, "[1]", 0, "EUR", "", 1, 1, 100, None, "", "shop", "", None, "")
        ]

    asks = [MakeMove("bkg_1", move, 7, 50) for move in (Move.BEGIN_PAYMENT, Move.CONFIRM, Move.CONFIRM)]
    answers, asked = play(make_moves(asks, []), store)
    assert [answer.state for answer in answers] == [BookingState.PAYING, BookingState.CONFIRMED, BookingState.CONFIRMED]
    assert asked == ["move_bookings", "move_bookings"], "the repeat needs no statement"
