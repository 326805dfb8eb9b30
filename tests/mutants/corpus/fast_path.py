"""The fast path: it answers as the framework does, and obeys the same rules."""

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "an Expect header is ignored",
        "the fast path reads as the framework does",
        "web/fastpath/protocol.py",
        ('            if len(name) == 6 and name.lower() == b"expect":\n                return False\n'),
        "            del name\n",
        ("tests/web/fastpath/test_protocol.py::test_expect_continue_is_honoured_by_uvicorn[compiled]",),
    ),
    Mutant(
        "a body of any length",
        "a body has a bound",
        "web/fastpath/protocol.py",
        ("        if self._body_bytes > MAX_BODY_BYTES:\n            body = OVERLONG"),
        ("        if self._body_bytes < 0:\n            body = OVERLONG"),
        (
            "tests/web/api/test_fast_path_and_framework.py::test_b5_b17_fast_path_and_framework_answer_every_question_about_a_booking_alike",
        ),
    ),
    Mutant(
        "a foreign host",
        "both ways refuse the same hosts",
        "web/fastpath/protocol.py",
        ("            if not is_host(value):\n                return False"),
        ("            if not value:\n                return False"),
        ("tests/web/fastpath/test_route_table.py::test_a_host_that_the_framework_would_not_take_is_left_to_it[a b]",),
    ),
    Mutant(
        "HTTP/1.0 answered as 1.1",
        "the fast path answers HTTP/1.1 only",
        "web/fastpath/protocol.py",
        'if self._gone or parser.get_http_version() != "1.1" or parser.should_upgrade():',
        "if self._gone or parser.should_upgrade():",
        ("tests/web/fastpath/test_protocol.py::test_an_unusual_request_is_passed_on",),
    ),
    Mutant(
        "pipelined answers out of order",
        "answers come in the order of the questions",
        "web/fastpath/protocol.py",
        (
            "        cycle = self.cycle\n"
            "        if cycle is not None and not cycle.response_complete:\n"
            "            return False\n"
            "        if self._gone"
        ),
        ("        cycle = self.cycle\n        if self._gone"),
        ("tests/web/fastpath/test_protocol.py::test_no_connection_is_given_away_to_another_protocol[compiled]",),
    ),
    Mutant(
        "an odd id reaches a handler",
        "only plain ids match",
        "web/fastpath/route_table.py",
        "if shape is None or not PLAIN_ID.fullmatch(url, begin, end):",
        "if shape is None:",
        (
            "tests/web/api/test_fast_path_and_framework.py::test_b5_b17_fast_path_and_framework_answer_every_question_about_a_booking_alike",
        ),
    ),
    Mutant(
        "a rule of the limits that the fast path goes round",
        "every way in obeys the rules",
        "web/fastpath/route_table.py",
        '            if is_ruled(method.decode(), f"{before.decode()}x{behind.decode()}"):',
        "            if is_ruled(method.decode(), before.decode()):",
        ("tests/web/api/test_api_rules.py::test_rules_by_path_hold_on_fast_path_and_framework[hot]",),
    ),
    Mutant(
        "a closed event is still answered",
        "an event that is closed is not sold",
        "web/fastpath/route_table.py",
        ("        for key in self._own.pop(event_id, ()):\n            self.routes.pop(key, None)"),
        ("        for key in self._own.get(event_id, ()):\n            self.routes.get(key, None)"),
        ("tests/web/fastpath/test_route_table.py::test_an_event_that_is_closed_is_left_to_the_framework",),
    ),
    Mutant(
        "a hold without counting its person",
        "every hold is counted",
        "web/endpoints/holds.py",
        "            self._entry.count_person(shop_pass.fan)\n",
        "",
        ("tests/web/endpoints/test_hold_limits.py::test_a_hold_is_counted_by_address_then_by_person",),
    ),
    Mutant(
        "a pass in a cookie from another site",
        "another site's page buys nothing",
        "web/endpoints/callers.py",
        ("        if in_cookie:\n            check_own_page(request)\n"),
        "",
        ("tests/security/test_csrf.py::test_a_pass_or_session_in_a_cookie_on_the_hot_routes",),
    ),
    Mutant(
        "the late answer after the deadline",
        "a request has one answer",
        "web/fastpath/pending_replies.py",
        ("        if self._line is None or self._end_wait():\n            self.arrived(reply)"),
        ("        if self._line is not None:\n            self._end_wait()\n        self.arrived(reply)"),
        ("tests/web/fastpath/test_pending_replies.py::test_a_reply_that_is_made_after_its_deadline_is_not_written",),
    ),
)
