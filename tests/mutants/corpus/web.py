"""The web: what a request proves, and what it may do."""

from tests.mutants.mutant import Mutant

MUTANTS = (
    Mutant(
        "a token of another booking",
        "a token opens one booking",
        "web/http/access.py",
        '    return booking_id if hmac.compare_digest(genuine.encode(), token.encode("utf-8", "surrogatepass")) else None',
        "    return booking_id if genuine and token else None",
        ("tests/security/test_tokens.py::test_booking_tokens_are_of_one_booking_and_of_one_secret_key",),
    ),
    Mutant(
        "a request of another site",
        "another site's page changes nothing",
        "web/http/csrf.py",
        "        if any(site not in OWN_SITES for site in sites):",
        "        if all(site not in OWN_SITES for site in sites) and len(sites) > 1:",
        ("tests/security/test_csrf.py::test_cross_site_requests_with_a_session_cookie",),
    ),
    Mutant(
        "a session cookie without its token",
        "another site's page changes nothing",
        "web/endpoints/callers.py",
        ("        if not bearers:\n            check_token(method, headers, secret)\n"),
        "",
        ("tests/security/test_csrf.py::test_cross_site_requests_with_a_session_cookie",),
    ),
    Mutant(
        "a member without the permission",
        "staff do what their role allows",
        "web/http/access.py",
        "    if permission not in caller.permissions:\n",
        "    if not caller.permissions:\n",
        ("tests/security/test_authorisation_matrix.py::test_every_route_admits_exactly_the_callers_of_its_row",),
    ),
    Mutant(
        "an unfinished session has rights",
        "staff prove two factors",
        "web/http/access.py",
        ("    if session.stage is not Stage.FULL:\n        return Caller(session_id=session.id, session=session)\n"),
        "",
        ("tests/web/http/test_access.py::test_staff_without_the_second_factor_are_nobody_yet[totp]",),
    ),
    Mutant(
        "anybody's booking",
        "a booking is its owner's",
        "web/http/access.py",
        "            return visit.event_id == booking.event_id and visit.fan == booking.fan\n",
        "            return visit.event_id == booking.event_id\n",
        ("tests/security/test_tokens.py::test_a_pass_cannot_be_had_in_somebody_elses_name",),
    ),
    Mutant(
        "an old pass opens a sold booking",
        "a pass that ended is good for its hold alone",
        "web/http/access.py",
        "return past is not None and past.id == booking.visit_id and booking.state in HOLD_STATES",
        "return past is not None and past.id == booking.visit_id",
        (
            "tests/web/http/test_access.py::test_a_pass_that_ended_is_good_for_the_hold_it_was_used_for_and_for_nothing_else[queued]",
        ),
    ),
    Mutant(
        "a key for another request",
        "a key belongs to one request",
        "web/api/idempotency.py",
        "    if kept.asked != asked:\n",
        "    if not kept.asked:\n",
        ("tests/web/api/test_idempotency.py::test_50_refunds_with_one_key_are_one_refund",),
    ),
    Mutant(
        "a request that still runs is run again",
        "a key is carried out once",
        "web/api/idempotency.py",
        ("    if not kept.status:\n        raise StillRunning"),
        ("    if kept.status < 0:\n        raise StillRunning"),
        ("tests/security/test_every_post.py::test_a_response_that_cannot_be_stored_is_503_and_is_stored_later",),
    ),
    Mutant(
        "a refusal that is kept",
        "a refused request may be sent again",
        "web/api/idempotency.py",
        'if 200 <= self._start["status"] < 300 and len(body) <= MAX_KEPT_BYTES:',
        'if 200 <= self._start["status"] < 500 and len(body) <= MAX_KEPT_BYTES:',
        ("tests/web/api/test_idempotency.py::test_a_refused_request_does_not_keep_its_key",),
    ),
)
