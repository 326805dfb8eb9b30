"""Sales by staff: what is sold at the desk, given to guests, and moved to other seats."""

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "reseated onto a withheld seat",
        "a withheld seat is nobody's",
        "boxoffice/organiser/reseating.py",
        "withheld = sorted(seat for seat in come if seat in event.withheld)",
        "withheld: list[int] = []",
        ("tests/boxoffice/organiser/test_reseating.py::test_nobody_is_moved_to_a_seat_that_is_withheld",),
    ),
    Mutant(
        "reseated onto a dearer seat",
        "a seat costs what it costs",
        "boxoffice/organiser/reseating.py",
        "        if price(old)[0] != price(new)[0]:",
        "        if price(old)[0] > price(new)[0]:",
        ("tests/boxoffice/organiser/test_reseating.py::test_nobody_is_moved_to_a_seat_of_another_price[dearer]",),
    ),
    Mutant(
        "a sale by staff of an event that is over",
        "only events on sale are sold",
        "boxoffice/organiser/box_office_sales.py",
        "        if event.status not in SELLS:",
        "        if event.status is EventStatus.DRAFT:",
        (
            "tests/boxoffice/organiser/test_box_office_sales.py::test_nothing_is_sold_of_an_event_that_is_over_and_no_more_than_a_sale_may_have",
        ),
    ),
    Mutant(
        "any number of seats at once",
        "a sale by staff is bounded",
        "boxoffice/organiser/box_office_sales.py",
        "if not 1 <= len(seat_ids) <= MAX_SEATS_PER_SALE:",
        "if not seat_ids:",
        (
            "tests/boxoffice/organiser/test_box_office_sales.py::test_nothing_is_sold_of_an_event_that_is_over_and_no_more_than_a_sale_may_have",
        ),
    ),
    Mutant(
        "the same sale twice sells again for another price",
        "a repeated sale is the same sale",
        "boxoffice/organiser/box_office_sales.py",
        "        if seats != earlier.seats or not same_options:\n",
        "        if seats != earlier.seats:\n",
        (
            "tests/boxoffice/organiser/test_box_office_sales.py::test_a_repeated_sale_with_something_else_to_sell_is_refused",
        ),
    ),
    Mutant(
        "a repeated sale for cash of tickets that were given away",
        "a repeated sale is the same sale",
        "boxoffice/organiser/box_office_sales.py",
        ("            if price.quote.total_minor:\n                raise IdempotencyMismatch(earlier.id)\n"),
        "            del price\n",
        (
            "tests/boxoffice/organiser/test_box_office_sales.py::test_a_repeated_sale_with_something_else_to_sell_is_refused",
        ),
    ),
    Mutant(
        "a repeated sale paid another way",
        "a repeated sale is the same sale",
        "boxoffice/organiser/box_office_sales.py",
        "if earlier.event_id != event.id or (payments and payments[0].method != paid_by.value):",
        "if earlier.event_id != event.id:",
        (
            "tests/boxoffice/organiser/test_box_office_sales.py::test_a_repeated_sale_with_something_else_to_sell_is_refused",
        ),
    ),
    Mutant(
        "free tickets without a name",
        "a guest has a name and an address",
        "boxoffice/organiser/box_office_sales.py",
        "if paid_by is PaidBy.FREE and not (name and email):",
        "if paid_by is PaidBy.FREE and not email:",
        (
            "tests/boxoffice/organiser/test_box_office_sales.py::test_a_sale_at_the_box_office_that_makes_no_sense_is_refused[wrong1]",
        ),
    ),
    Mutant(
        "free tickets that cost something",
        "a gift costs nothing",
        "boxoffice/organiser/box_office_sales.py",
        "return seats, ChosenPrice(free_of_charge(chosen.quote), chosen.uses)",
        "return seats, chosen",
        ("tests/boxoffice/organiser/test_box_office_sales.py::test_a_guest_gets_a_withheld_seat_without_a_payment",),
    ),
    Mutant(
        "a gift that is not counted",
        "stocks and limits count gifts too",
        "boxoffice/organiser/box_office_sales.py",
        "return seats, ChosenPrice(free_of_charge(chosen.quote), chosen.uses)",
        "return seats, ChosenPrice(free_of_charge(chosen.quote), ())",
        (
            "tests/boxoffice/organiser/test_box_office_sales.py::test_a_limit_holds_at_the_box_office_and_a_refused_sale_frees_its_seats_at_once",
        ),
    ),
    Mutant(
        "sold out extras keep the seats of the sale",
        "a refused sale holds no seats",
        "boxoffice/organiser/box_office_sales.py",
        "            await self._ledger.release_hold(hold.booking_id, fence, now_us)\n",
        "",
        (
            "tests/boxoffice/organiser/test_box_office_sales.py::test_a_limit_holds_at_the_box_office_and_a_refused_sale_frees_its_seats_at_once",
        ),
    ),
    Mutant(
        "a refused sale keeps its claim",
        "a refused sale holds no seats",
        "boxoffice/organiser/box_office_sales.py",
        "if made is None or made.state not in ACTIVE_STATES:",
        "if made is not None and made.state not in ACTIVE_STATES:",
        ("tests/boxoffice/organiser/test_box_office_sales.py::test_a_sale_that_the_ledger_refuses_leaves_no_claim",),
    ),
    Mutant(
        "a sale for cash that the provider refunds",
        "money goes back the way it came",
        "boxoffice/refunds/model/refund_rules.py",
        "if any(one.provider == EXTERNAL for one in payments):",
        "if not payments:",
        (
            "tests/boxoffice/organiser/test_box_office_sales.py::test_what_was_paid_at_the_box_office_is_not_refunded_by_the_buyers_click",
        ),
    ),
    Mutant(
        "a sale that nobody made",
        "the audit says who sold",
        "boxoffice/organiser/box_office_sales.py",
        "            sold_by=editor.id,\n",
        "",
        (
            "tests/boxoffice/organiser/test_box_office_sales.py::test_the_totals_of_the_day_are_by_member_and_way_of_paying",
        ),
    ),
    Mutant(
        "totals without refunds",
        "the till's totals are the money in it",
        "boxoffice/adapters/ledger/organiser/organiser_statements.sql",
        ("AND f.refund_state = 'done')), 0)\nFROM bookings AS b"),
        ("AND f.refund_state = 'failed')), 0)\nFROM bookings AS b"),
        (
            "tests/boxoffice/organiser/test_box_office_sales.py::test_the_totals_of_the_day_are_by_member_and_way_of_paying",
        ),
    ),
    Mutant(
        "totals of other days",
        "the till's totals are those of the time asked for",
        "boxoffice/adapters/ledger/organiser/organiser_statements.sql",
        ("AND b.confirmed_at_us >= :from_us AND b.confirmed_at_us < :before_us\nGROUP BY 1, 2 ORDER BY 1, 2"),
        ("AND b.confirmed_at_us < :before_us\nGROUP BY 1, 2 ORDER BY 1, 2"),
        (
            "tests/boxoffice/organiser/test_box_office_sales.py::test_of_fifty_who_sell_one_seat_at_once_one_does_and_a_form_sent_twice_sells_once",
        ),
    ),
)
