"""The pure rules whose mutation score is measured, with the tests that describe them, and what no test can notice."""

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.sources import ROOT

LEAST: Final = 95  # percent of the changes to each module that its tests must notice


@dataclass(frozen=True, slots=True)
class Subject:
    """Modules under `src/frontrow/` that one group of tests describes."""

    name: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]


SUBJECTS: Final = (
    Subject("money", ("shared/money.py",), ("tests/shared/test_money.py",)),
    Subject(
        "window",
        ("waitingroom/model/window.py", "waitingroom/model/poll_interval.py"),
        ("tests/waitingroom/model/test_window.py",),
    ),
    Subject(
        "admission",
        ("waitingroom/model/admission.py",),
        (
            "tests/waitingroom/model/test_admission.py",
            "tests/waitingroom/model/test_slide_plans.py",
            "tests/waitingroom/model/test_inflow.py",
        ),
    ),
    Subject(
        "saga",
        (
            "boxoffice/payments/model/payment_saga.py",
            "boxoffice/payments/model/retry_schedule.py",
            "boxoffice/payments/model/card_declines.py",
        ),
        ("tests/boxoffice/payments/test_payment_saga.py",),
    ),
    Subject(
        "paying",
        tuple(
            f"boxoffice/payments/model/{name}.py"
            for name in ("payment_methods", "payment_rules", "payment_accounts", "disputes")
        ),
        ("tests/boxoffice/payments/test_payment_values.py",),
    ),
    Subject(
        "refunds",
        (
            "boxoffice/refunds/model/refund_rules.py",
            "boxoffice/refunds/model/refund_policy.py",
            "boxoffice/refunds/model/ticket_returns.py",
            "boxoffice/refunds/model/refund_lines.py",
        ),
        ("tests/boxoffice/refunds/test_refund_rules.py", "tests/boxoffice/refunds/test_refund_lines.py"),
    ),
    Subject(
        "room",
        tuple(
            f"waitingroom/model/{name}.py"
            for name in ("draw", "lanes", "no_shows", "room_state", "wait_estimate", "phases", "place_status")
        ),
        ("tests/waitingroom/model", "tests/waitingroom/service/test_status_json.py"),
    ),
    Subject(
        "holds",
        tuple(f"boxoffice/holds/model/{name}.py" for name in ("bookings", "holds", "claims", "requested_seats")),
        (
            "tests/boxoffice/holds/test_bookings.py",
            "tests/boxoffice/holds/test_hold_rules.py",
            "tests/boxoffice/seats/test_best_seats.py",
            "tests/boxoffice/events/test_model.py",
        ),
    ),
    Subject(
        "pricing",
        tuple(
            f"boxoffice/pricing/model/{name}.py"
            for name in ("prices", "booking_choices", "discounts", "sale_options", "taxes")
        ),
        ("tests/boxoffice/pricing",),
    ),
    Subject(
        "seats",
        tuple(
            f"boxoffice/seats/model/{name}.py"
            for name in ("best_seats", "venues", "plan_shapes", "seat_labels", "seat_names", "map_format")
        ),
        (
            "tests/boxoffice/seats/test_best_seats.py",
            "tests/boxoffice/seats/test_seat_names.py",
            "tests/boxoffice/seats/test_map_format.py",
            "tests/boxoffice/seats/test_plans.py",
            "tests/boxoffice/seats/test_plan_arrangement.py",
            "tests/boxoffice/events/test_model.py",
        ),
    ),
    Subject(
        "invoices",
        tuple(f"boxoffice/checkout/model/{name}.py" for name in ("invoices", "receipts", "outage_priority")),
        (
            "tests/boxoffice/checkout/test_checkout_values.py",
            "tests/boxoffice/checkout/test_invoices.py",
            "tests/boxoffice/checkout/test_receipts.py",
        ),
    ),
    Subject(
        "gate",
        ("boxoffice/gate/model/redemptions.py", "boxoffice/gate/model/scans.py"),
        ("tests/boxoffice/gate/test_scans.py", "tests/boxoffice/gate/test_redemptions.py"),
    ),
    Subject(
        "waitlist",
        tuple(f"boxoffice/waitlist/model/{name}.py" for name in ("offers", "waitlist", "waitlist_matching")),
        ("tests/boxoffice/waitlist/test_waitlist.py",),
    ),
    Subject(
        "tickets",
        ("boxoffice/tickets/model/ticket_transfers.py", "boxoffice/tickets/model/tickets.py"),
        ("tests/boxoffice/tickets/test_ticket_values.py",),
    ),
    Subject(
        "events",
        tuple(f"boxoffice/events/model/{name}.py" for name in ("events", "event_status", "show_dates", "room_rules")),
        (
            "tests/boxoffice/events/test_event_bounds.py",
            "tests/boxoffice/events/test_model.py",
            "tests/boxoffice/events/test_show_dates.py",
        ),
    ),
    Subject(
        "people",
        tuple(
            f"boxoffice/people/model/{name}.py"
            for name in ("email_addresses", "password_rules", "person_names", "people", "roles")
        ),
        ("tests/boxoffice/people/test_people_values.py", "tests/boxoffice/people/test_people_services.py"),
    ),
)

# Models that no subject measures yet: they are covered by tests of services, which are too slow to run once per change.
NOT_MEASURED: Final = frozenset(
    {
        "boxoffice/events/model/event_changes.py",
        "boxoffice/events/model/event_search.py",
        "boxoffice/events/model/pictures.py",
        "boxoffice/events/model/published_changes.py",
        "boxoffice/facts/model.py",
        "boxoffice/messages/model/buyer_messages.py",
        "boxoffice/messages/model/channel_reports.py",
        "boxoffice/messages/model/messages.py",
        "boxoffice/messages/model/phone_numbers.py",
        "boxoffice/organiser/model/booking_search.py",
        "boxoffice/organiser/model/box_office_sales.py",
        "boxoffice/organiser/model/brands.py",
        "boxoffice/organiser/model/csv_cells.py",
        "boxoffice/organiser/model/report_mails.py",
        "boxoffice/organiser/model/reports.py",
        "boxoffice/organiser/model/reseating.py",
        "boxoffice/organiser/model/sales_figures.py",
        "boxoffice/payments/model/payments.py",
        "boxoffice/payments/model/provider_intents.py",
        "boxoffice/presale/model.py",
        "boxoffice/refunds/model/refunds.py",
        "boxoffice/tickets/model/wallets.py",
        "waitingroom/model/admission_rate.py",
        "waitingroom/model/config.py",
        "waitingroom/model/errors.py",
        "waitingroom/model/idle_visits.py",
        "waitingroom/model/inflow.py",
        "waitingroom/model/measurements.py",
        "waitingroom/model/results.py",
        "waitingroom/model/room_record.py",
    }
)

# module, the line from which a branch is never taken: why
NOT_COVERED: Final[dict[tuple[str, str], str]] = {}

# module, the line as it is, the line as it was changed: why nobody can tell the two apart
SAME: Final[dict[tuple[str, str, str], str]] = {
    **{
        ("shared/money.py", "sign = -1 if self.minor * basis_points < 0 else 1", f"sign = -1 if {changed} else 1"): why
        for changed, why in (
            ("self.minor * basis_points <= 0", "the sign of nothing"),
            ("self.minor * basis_points < 1", "the sign of nothing"),
        )
    },
    ("shared/money.py", "sign = -1 if amount_minor < 0 else 1", "sign = -1 if amount_minor <= 0 else 1"): "as above",
    ("shared/money.py", "sign = -1 if amount_minor < 0 else 1", "sign = -1 if amount_minor < 1 else 1"): "as above",
    **{
        (
            "waitingroom/model/poll_interval.py",
            "return LEAST_S if poll_s < LEAST_S else MOST_S if poll_s > MOST_S else poll_s",
            changed,
        ): "at a bound both answer the bound"
        for changed in (
            "return LEAST_S if poll_s <= LEAST_S else MOST_S if poll_s > MOST_S else poll_s",
            "return LEAST_S if poll_s < LEAST_S else MOST_S if poll_s >= MOST_S else poll_s",
        )
    },
    (
        "waitingroom/model/admission.py",
        "ring = push(ring, slide, grace_us=0 if config.active_windows else grace_us)",
        "ring = push(ring, slide, grace_us=1 if config.active_windows else grace_us)",
    ): "a 32nd of a microsecond is nothing",
    **{
        ("boxoffice/checkout/model/receipts.py", 'allowed = "\\n" if param == "address" else ""', changed): (
            "only characters that cannot be printed are looked up in it"
        )
        for changed in (
            'allowed = "XX\\nXX" if param == "address" else ""',
            'allowed = "\\n" if param == "address" else "XXXX"',
        )
    },
    (
        "boxoffice/checkout/model/receipts.py",
        "Money(0, seller.fees_currency)  # raises for a wrong currency",
        "Money(1, seller.fees_currency)  # raises for a wrong currency",
    ): "the amount is of no use",
    **{
        (
            "boxoffice/waitlist/model/waitlist.py",
            before,
            before.replace(word, ""),
        ): "`big` is the default since Python 3.11"
        for before, word in (
            ('return int.from_bytes(digest, "big") >> (64 - _RANK_BITS)', '"big"'),
            ("return f\"{prefix}_{encode32(int.from_bytes(digest, 'big') & ((1 << 130) - 1), ID_CHARS)}\"", "'big'"),
        )
    },
    ("boxoffice/waitlist/model/offers.py", "case _: return None", ""): "so does the end of the function",
    (
        "boxoffice/refunds/model/ticket_returns.py",
        "return f\"rtn_{encode32(int.from_bytes(digest, 'big') & ((1 << 130) - 1), ID_CHARS)}\"",
        'return f"rtn_{encode32(int.from_bytes(digest, ) & ((1 << 130) - 1), ID_CHARS)}"',
    ): "`big` is the default since Python 3.11",
}


def source(module: str) -> Path:
    """Where a module of a subject is."""
    base = "packages/limits/src/frontrow" if module.startswith(("limits/", "core/")) else "src/frontrow"
    return ROOT / base / module


class _Rules(ast.NodeTransformer):
    """Leaves out what is no rule: the words and details of an error (that it is raised is one), also those that its
    class gives to `super().__init__`, and `strict` of `zip`, which holds for lengths that the types promise."""

    def visit_Raise(self, node: ast.Raise) -> ast.Raise:
        raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        return ast.Raise(raised, node.cause)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "zip":
            node.keywords = [one for one in node.keywords if one.arg != "strict"]
        if ast.unparse(node.func) == "super().__init__":
            node.args = []
        return node


def is_a_rule(before: ast.FunctionDef, after: ast.FunctionDef) -> bool:
    """Whether the two functions differ in more than the words of their errors."""
    return _body(before) != _body(after)


def _body(function: ast.FunctionDef) -> str:
    copied = ast.parse(ast.unparse(function)).body[0]
    assert isinstance(copied, ast.FunctionDef)
    return "".join(ast.dump(_Rules().visit(statement)) for statement in copied.body)
