"""What every limited app must do (L2, L4, L5, L6, L7, L8, L11, L12, L13, L15, L16), as functions that make one.

`test_web.py` runs them over every integration.
"""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from frontrow.core.errors import ConfigError
from frontrow.limits import Quota
from frontrow.limits.rules import RequestRule, RuleBook, Tiers
from frontrow.testing.clock import ManualClock
from tests.limits.limited_apps import Answer, LimitedApp

MakeLimitedApp = Callable[..., LimitedApp]

FIELDS = {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "ratelimit", "ratelimit-policy"}


def rule(name: str, quota: str, *key: str, algorithm: str = "sliding_log", **options: Any) -> RequestRule:
    return RequestRule(name, Quota.parse(quota, algorithm=algorithm), key, **options)


def statuses(answers: list[Answer]) -> list[int]:
    return [answer.status for answer in answers]


def l12_every_answer_carries_the_fields(make: MakeLimitedApp) -> None:
    limited = make(rules=[rule("all", "3/minute", "ip")], clock=ManualClock(), reset="delta")
    answers = [
        limited.ask("GET", "/holds"),
        limited.ask("GET", "/nowhere"),
        limited.ask("DELETE", "/holds"),
        limited.ask(),
    ]
    assert statuses(answers) == [200, 404, 405, 429]
    for answer in answers:
        assert set(answer.headers) >= FIELDS, answer
    assert [answer.headers["x-ratelimit-remaining"] for answer in answers] == ["2", "1", "0", "0"]
    assert answers[0].headers["ratelimit"] == '"all";r=2;t=60'
    assert answers[0].headers["ratelimit-policy"] == '"all";q=3;w=60'


def l12_a_refusal_is_429_problem_json_and_its_retry_after_is_true(make: MakeLimitedApp) -> None:
    clock = ManualClock()
    limited = make(rules=[rule("all", "2/minute", "ip")], clock=clock, reset="delta")
    limited.ask()
    clock.advance(10.5)
    assert statuses([limited.ask(), limited.ask()]) == [200, 429]
    refused = limited.ask("POST", "/holds")
    assert (refused.headers["retry-after"], refused.headers["content-type"]) == ("50", "application/problem+json")
    body = json.loads(refused.body)
    assert (body["status"], body["violated-policies"]) == (429, ["all"])
    assert body["type"].endswith("#quota-exceeded")
    clock.advance(49.4)
    assert limited.ask().status == 429
    clock.advance(0.6)
    assert limited.ask().status == 200


def l13_a_refused_request_never_reaches_the_application(make: MakeLimitedApp) -> None:
    limited = make(rules=[rule("all", "2/minute", "ip")], clock=ManualClock())
    answers = [limited.ask("POST", "/holds") for _ in range(6)]
    assert statuses(answers) == [200, 200, 429, 429, 429, 429]
    assert limited.served == 2


def l13_rules_match_method_and_path_however_it_is_spelt(make: MakeLimitedApp) -> None:
    rules = [rule("holds", "1/minute", "ip", methods=("GET",), paths=("/events/{event}/holds",))]
    limited = make(rules=rules, clock=ManualClock())
    assert limited.ask("GET", "/events/1/holds").status == 200
    for path in ("/events/2/holds", "/events/1%2fholds", "/EVENTS/1/Holds", "//events//1//holds/", "/events/1/holds."):
        assert limited.ask("GET", path).status == 429, path
    assert limited.ask("HEAD", "/events/1/holds").status == 429, "HEAD counts as GET"
    assert limited.ask("POST", "/events/1/holds").status == 200
    free = limited.ask("GET", "/public")
    assert free.status == 200
    assert not FIELDS & set(free.headers), "no rule, no fields"


def l13_the_host_field_changes_nothing(make: MakeLimitedApp) -> None:
    limited = make(rules=[rule("holds", "1/minute", "ip", paths=("/holds",))], clock=ManualClock())
    assert limited.ask("GET", "/holds").status == 200
    for host in ("shop.test/public?", "shop.test:80/x", "[::1]", "a.test", "/public", "shop.test#"):
        assert limited.ask("GET", "/holds", host=host).status in (400, 429), host
    assert limited.served == 1
    for name in ("x_original_url", "x_rewrite_url", "x_forwarded_host", "x_forwarded_prefix"):
        assert limited.ask("GET", "/holds", **{name: "/public"}).status == 429, name


def l2_addresses_cannot_be_forged_or_rotated(make: MakeLimitedApp) -> None:
    limited = make(rules=[rule("all", "1/minute", "ip")], clock=ManualClock())
    assert limited.ask(ip="203.0.113.1").status == 200
    for forged in ("9.9.9.9, 203.0.113.1", "::ffff:203.0.113.1", "203.0.113.1:4444", "127.0.0.1, 203.0.113.1"):
        assert limited.ask(ip=forged).status == 429, forged
    assert limited.ask(ip="2001:db8:0:1::1").status == 200
    assert {limited.ask(ip=f"2001:db8:0:1:{n:x}::{n:x}").status for n in range(1, 30)} == {429}
    assert limited.ask(ip="2001:db8:0:2::1").status == 200


def l4_a_refused_rule_burns_nothing_of_the_others(make: MakeLimitedApp) -> None:
    clock = ManualClock()
    limited = make(rules=[rule("second", "1/second", "ip"), rule("hour", "100/hour", "ip")], clock=clock)
    assert [limited.ask().status for _ in range(60)].count(200) == 1
    clock.advance(1)
    assert limited.ask().status == 200
    policies = limited.ask().headers["ratelimit-policy"]
    assert policies == '"second";q=1;w=1, "hour";q=100;w=3600'
    assert limited.limits._limiter.peek("203.0.113.1").rule == "second"
    for _ in range(98):
        clock.advance(1)
        assert limited.ask().status == 200
    clock.advance(1)
    assert (last := limited.ask()).status == 429
    assert json.loads(last.body)["violated-policies"] == ["hour"]


def l5_a_rule_shared_by_several_paths_counts_once_beside_others(make: MakeLimitedApp) -> None:
    rules = [
        rule("everybody", "5/minute"),
        rule("holds", "2/minute", "ip", paths=("/holds",)),
        rule("reports", "2/minute", "user", "endpoint", paths=("/reports",), on_missing="ip"),
    ]
    limited = make(rules=rules, clock=ManualClock(), identify={"user": "header:x-user"})
    results = [limited.ask("GET", "/holds").status for _ in range(3)]
    results += [limited.ask("GET", "/reports", x_user="7").status for _ in range(3)]
    results += [limited.ask("GET", "/public").status, limited.ask("GET", "/public").status]
    assert results == [200, 200, 429, 200, 200, 429, 200, 429], "2 + 2 + 1 of everybody's 5"


def l15_a_missing_or_empty_client_id_is_an_error_or_counts_by_address_and_is_never_skipped(
    make: MakeLimitedApp,
) -> None:
    limited = make(rules=[rule("fans", "2/minute", "user")], identify={"user": "header:x-user"}, clock=ManualClock())
    for headers in ({}, {"x_user": ""}, {"x_user": "  "}):
        refused = limited.ask(**headers)
        assert refused.status == 400
        assert json.loads(refused.body)["param"] == "user"
    assert limited.served == 0
    by_address = [rule("fans", "2/minute", "user", on_missing="ip")]
    limited = make(rules=by_address, identify={"user": "header:x-user"}, clock=ManualClock())
    assert statuses([limited.ask(), limited.ask(x_user=""), limited.ask()]) == [200, 200, 429]
    assert limited.ask(ip="203.0.113.2").status == 200
    assert limited.ask(x_user="203.0.113.1").status == 200, "a user named like an address is somebody else"
    assert limited.ask(x_user="ip:203.0.113.1").status == 200


def l2_parts_of_a_key_cannot_collide(make: MakeLimitedApp) -> None:
    getters = {"user": "header:x-user", "tenant": "header:x-tenant"}
    limited = make(rules=[rule("both", "1/minute", "tenant", "user")], identify=getters, clock=ManualClock())
    pairs = [
        ("1", "23"),
        ("12", "3"),
        ("1:2", "3"),
        ("1", "2:3"),
        ("a/b", "c"),
        ("a", "b/c"),
        ("{1}", "2"),
        ("1", "{2}"),
    ]
    assert [limited.ask(x_tenant=tenant, x_user=user).status for tenant, user in pairs] == [200] * len(pairs)
    assert [limited.ask(x_tenant=tenant, x_user=user).status for tenant, user in pairs] == [429] * len(pairs)


def l6_tiers_have_their_own_quotas_and_change_while_running(make: MakeLimitedApp) -> None:
    tiers = Tiers({"1": "vip"})
    quotas = {
        "vip": Quota.parse("5/minute", algorithm="sliding_log"),
        "pro": Quota.parse("3/minute", algorithm="sliding_log"),
    }
    rules = [rule("fans", "1/minute", "user", tiers=quotas)]
    limited = make(rules=rules, tier_of=tiers, identify={"user": "header:x-user"}, clock=ManualClock())
    vip = [limited.ask(x_user="1") for _ in range(6)]
    assert statuses(vip) == [200] * 5 + [429]
    assert (vip[0].headers["x-ratelimit-limit"], vip[0].headers["ratelimit-policy"]) == ("5", '"fans";q=5;w=60')
    assert statuses([limited.ask(x_user="2") for _ in range(2)]) == [200, 429]
    tiers["2"] = "pro"
    assert statuses([limited.ask(x_user="2") for _ in range(4)]) == [200, 200, 200, 429]
    assert limited.ask(x_user="2").headers["x-ratelimit-limit"] == "3"
    del tiers["2"]
    assert limited.ask(x_user="2").status == 429


def l7_costs_above_one_are_charged_by_method_and_path(make: MakeLimitedApp) -> None:
    limited = make(rules=[rule("all", "6/minute", "ip")], costs={"POST /reports": 4}, clock=ManualClock())
    results = [
        limited.ask("POST", "/reports"),
        limited.ask("POST", "/reports"),
        limited.ask("GET", "/reports"),
        limited.ask(),
    ]
    assert [(answer.status, answer.headers["x-ratelimit-remaining"]) for answer in results] == [
        (200, "2"),
        (429, "2"),
        (200, "1"),
        (200, "0"),
    ]


def l16_new_rules_take_over_at_once_and_wrong_ones_change_nothing(make: MakeLimitedApp) -> None:
    book = RuleBook([rule("all", "1/minute", "ip")])
    limited = make(rules=book, clock=ManualClock())
    assert statuses([limited.ask(), limited.ask()]) == [200, 429]
    for wrong in ([rule("all", "9/minute", "shoe_size")], [rule("a", "1/minute"), rule("a", "2/minute")]):
        with pytest.raises(ConfigError):
            book.replace(wrong)
        assert limited.ask().status == 429
    book.replace([rule("all", "3/minute", "ip")])
    assert statuses([limited.ask() for _ in range(4)]) == [200, 200, 200, 429]


def l16_shadow_rules_count_and_never_refuse(make: MakeLimitedApp) -> None:
    limited = make(
        rules=[rule("trial", "1/minute", "ip", shadow=True), rule("all", "4/minute", "ip")], clock=ManualClock()
    )
    answers = [limited.ask() for _ in range(5)]
    assert statuses(answers) == [200] * 4 + [429]
    counted = limited.limits.metrics.snapshot()
    assert counted["trial"]["shadow_refused"] == 4
    assert (counted["all"]["allowed"], counted["all"]["refused"]) == (4, 1)
    assert answers[0].headers["ratelimit-policy"] == '"all";q=4;w=60', "a trial is not announced"


def l8_exactly_n_of_60_concurrent_requests_pass(make: MakeLimitedApp) -> None:
    limited = make(rules=[rule("all", "25/minute", "ip")], clock=ManualClock())
    limited.ask(ip="203.0.113.9")
    workers = (
        60 if limited.send.__qualname__.startswith(("Uvicorn", "limited_flask")) else 1
    )  # hand-driven apps have one loop
    with ThreadPoolExecutor(workers) as pool:
        results = list(pool.map(lambda _: limited.ask().status, range(60)))
    assert (results.count(200), results.count(429)) == (25, 35)


def l13_exempt_addresses_users_and_paths_are_not_counted(make: MakeLimitedApp) -> None:
    limited = make(
        rules=[rule("all", "1/minute", "ip")],
        identify={"user": "header:x-user"},
        exempt_addresses=["198.51.100.0/24", "2001:db8::1"],
        exempt_users=["staff"],
        exempt_paths=["/public"],
        exempt_if=lambda request: bool(request.get("frontrow.never")),
        clock=ManualClock(),
    )
    for free in ({"ip": "198.51.100.7"}, {"ip": "2001:db8::1"}, {"x_user": "staff"}, {"path": "/public"}):
        answers = [limited.ask(**free) for _ in range(3)]
        assert statuses(answers) == [200] * 3, free
        assert not FIELDS & set(answers[0].headers)
    assert statuses([limited.ask(), limited.ask(), limited.ask(x_user="fan")]) == [200, 429, 429]
    assert statuses([limited.ask(ip="2001:db8::2"), limited.ask(ip="2001:db8::3")]) == [200, 429], (
        "not the whole network"
    )
    assert statuses([limited.ask(ip="198.51.101.7"), limited.ask(ip="6.6.6.6, 198.51.101.7")]) == [200, 429]


def l13_a_rule_can_count_only_failed_sign_ins(make: MakeLimitedApp) -> None:
    rules = [rule("tries", "2/minute", "ip", statuses=(401, 403)), rule("all", "9/minute", "ip")]
    limited = make(rules=rules, clock=ManualClock(), reset="delta")
    fine = [limited.ask("POST", "/holds") for _ in range(3)]
    assert [(answer.status, answer.headers["x-ratelimit-remaining"]) for answer in fine] == [(200, "2")] * 3
    failed = [limited.ask("POST", "/holds", x_answer=status) for status in ("401", "500", "403", "401")]
    assert [(answer.status, answer.headers["x-ratelimit-remaining"]) for answer in failed] == [
        (401, "1"),
        (500, "1"),
        (403, "0"),
        (429, "0"),
    ]
    assert json.loads(failed[3].body)["violated-policies"] == ["tries"]
    odd = make(rules=[rule("odd", "1/minute", "ip", statuses=lambda status: status >= 500)], clock=ManualClock())
    assert statuses([odd.ask(), odd.ask(x_answer="404"), odd.ask(x_answer="502"), odd.ask()]) == [200, 404, 502, 429]


def l13_a_response_after_the_window_gives_nothing_back(make: MakeLimitedApp) -> None:
    """A slow success must not hand the next window's failures back."""
    clock = ManualClock()
    rules = [rule("tries", "1/minute", "ip", statuses=(401,), algorithm="fixed_window")]
    limited = make(rules=rules, clock=clock)
    limits = limited.limits
    route = limits.add_route("GET", "/")
    slow = limits.decide(route, {"ip": "203.0.113.1"}, "GET")
    clock.advance(60)
    assert statuses([limited.ask(x_answer="401")]) == [401]
    limits.settle(slow, 200)
    assert limited.ask().status == 429


def l2_keys_come_from_the_body_which_the_application_still_gets(make: MakeLimitedApp) -> None:
    rules = [rule("account", "1/minute", "email", methods=("POST",))]
    limited = make(rules=rules, identify={"email": "json:user.email"}, max_body_bytes=100, clock=ManualClock())

    def sign_in(body: bytes) -> Answer:
        return limited.ask("POST", "/holds", body=body)

    first = sign_in(b'{"user": {"email": "ann@example.org"}, "password": "1"}')
    assert (first.status, first.body) == (200, b'{"user": {"email": "ann@example.org"}, "password": "1"}')
    assert sign_in(b'{"user": {"email": " ann@example.org"}, "password": "2"}').status == 429
    assert sign_in(b'{"user": {"email": "bob@example.org"}}').status == 200
    twice = b'{"user": {"email": "eve@example.org", "email": "ann@example.org"}}'
    for wrong in (b"", b"{", b"[" * 99, b'{"user": 5}', b'{"user": {"email": ["x"]}}', twice, b'{"x": "' + b"x" * 99):
        assert sign_in(wrong).status == 400, wrong
    assert limited.ask("GET", "/holds").status == 200, "no rule, no body read"
    by_form = [rule("account", "1/minute", "email", on_missing="ip")]
    limited = make(rules=by_form, identify={"email": "form:email"}, max_body_bytes=50, clock=ManualClock())
    form = {"content_type": "application/x-www-form-urlencoded"}
    results = [limited.ask("POST", "/holds", body=b"email=ann%40example.org&n=" + n, **form) for n in (b"1", b"2")]
    assert statuses(results) == [200, 429]
    long = limited.ask("POST", "/holds", body=b"n=1&email=ann&" + b"x" * 100, **form)
    assert (long.status, len(long.body)) == (200, 114), "counted by address, and the body is whole"


def l13_a_preflight_is_not_counted(make: MakeLimitedApp) -> None:
    preflight = {"origin": "https://fans.example", "access_control_request_method": "POST"}
    limited = make(rules=[rule("all", "1/minute", "ip")], clock=ManualClock())
    assert [limited.ask("OPTIONS", "/holds", **preflight).status for _ in range(3)].count(429) == 0
    assert limited.ask("POST", "/holds", origin="https://fans.example").status == 200
    assert limited.ask("OPTIONS", "/holds", origin="https://fans.example").status == 429, "not a preflight"
    limited = make(rules=[rule("all", "1/minute", "ip")], count_preflights=True, clock=ManualClock())
    assert [limited.ask("OPTIONS", "/holds", **preflight).status for _ in range(3)][1:] == [429, 429]


def l12_a_refusal_has_the_applications_own_body_and_the_fields(make: MakeLimitedApp) -> None:
    bodies: dict[str, Any] = {
        "GET": lambda decision: {"error": "slow down", "rule": decision.rule},
        "POST": lambda decision: ("text/html; charset=utf-8", f"<b>{decision.limit}</b>"),
        "PUT": lambda decision: "später",
        "DELETE": lambda decision: None,
    }

    def refuse(request: Any, decision: Any) -> Any:
        return bodies[request.get("method") or request["REQUEST_METHOD"]](decision)

    limited = make(rules=[rule("all", "1/minute", "ip")], on_refused=refuse, clock=ManualClock())
    limited.ask()
    answers = [limited.ask(method) for method in bodies]
    assert statuses(answers) == [429] * 4
    for answer in answers:
        assert set(answer.headers) >= {*FIELDS, "retry-after"}
        assert answer.headers["content-length"] == str(len(answer.body))
    assert json.loads(answers[0].body) == {"error": "slow down", "rule": "all"}
    assert [answer.headers["content-type"].partition(";")[0] for answer in answers] == [
        "application/json",
        "text/html",
        "text/plain",
        "application/problem+json",
    ]
    assert [answer.body for answer in answers[1:3]] == [b"<b>1</b>", "später".encode()]


def l12_nested_limits_send_the_fields_of_the_one_with_least_left(make: MakeLimitedApp) -> None:
    limited = make(rules=[rule("outer", "5/minute", "ip")], clock=ManualClock())
    inner = type(limited.wrapped)(limited.wrapped.app, [rule("inner", "2/minute", "ip")], clock=ManualClock())
    limited.wrapped.app = inner
    answers = [limited.ask() for _ in range(3)]
    assert [(answer.status, answer.headers["ratelimit-policy"]) for answer in answers] == [
        (200, '"inner";q=2;w=60'),
        (200, '"inner";q=2;w=60'),
        (429, '"inner";q=2;w=60'),
    ]
    assert [answer.headers["x-ratelimit-remaining"] for answer in answers] == ["1", "0", "0"]


CONTRACT = [check for name, check in sorted(globals().items()) if name[0] == "l" and name[1].isdigit()]
