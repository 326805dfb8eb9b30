"""O3: the vocabulary of the log is one table; docs/operations.md shows it, and the code writes nothing else."""

import ast
import logging
from pathlib import Path

import pytest

from frontrow.core.log_line import LogLine
from frontrow.shared import log_lines
from frontrow.shared.log_lines import LOG_LINES, PAGE, renewed

CONSTANTS = {name: line for name, line in vars(log_lines).items() if isinstance(line, LogLine)}
PERSONAL = ("fan", "name", "email", "phone", "method", "card", "contact", "subject", "text", "address", "ip", "ref")
ISSUE = {  # what the issue lists -> the line
    "authorised": "payment_authorised",
    "captured": "payment_captured",
    "voided": "payment_voided",
    "given up": "payment_given_up",
    "refunded": "refund_paid",
    "declined by policy": "payment_declined",
    "refund declined by policy": "refund_refused",
    "seats freed by expiry with payment under way": "hold_expired_while_paying",
    "claim store rebuilt": "claims_rebuilt",
    "leader lost": "lead_lost",
    "leader won": "lead_won",
    "delivery given up": "delivery_given_up",
    "dead letter": "dead_letter",
    "reconciliation difference": "reconciliation_difference",
    "limit policy switched to local": "limits_without_store",
}


def test_o3_the_page_shows_the_lines_of_today():
    assert PAGE.read_text() == renewed(PAGE.read_text()), "run: python -m frontrow.shared.log_lines"
    assert set(ISSUE.values()) <= set(LOG_LINES)


def test_every_line_is_written_somewhere_with_the_fields_it_promises():
    used: set[str] = set()
    for path in sorted([*Path("src").rglob("*.py"), *Path("packages").rglob("*.py")]):
        if path.name in ("log_line.py", "log_lines.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Name) and node.id in CONSTANTS:
                used.add(node.id)
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CONSTANTS):
                continue
            line, given = CONSTANTS[node.func.id], {one.arg for one in node.keywords if one.arg}
            assert given <= set(line.fields), f"{path}: {line.action} has no such field"
            if all(one.arg for one in node.keywords):
                assert given == set(line.fields), f"{path}: {line.action}"
    assert used == set(CONSTANTS)


def test_no_line_has_a_field_for_something_personal():
    for line in LOG_LINES.values():
        assert not [field for field in line.fields if field in PERSONAL], line.action
        assert not set(line.fields) & set(vars(logging.makeLogRecord({}))), "the logging module has these already"


def test_a_line_tells_those_who_do_not_log_as_json_too(caplog: pytest.LogCaptureFixture):
    log_lines.LIMITS_WITHOUT_STORE(store="redis://x", problem="refused")
    assert "redis://x is down: refused" in caplog.text
    assert caplog.records[-1].action == "limits_without_store"  # type: ignore[attr-defined]
