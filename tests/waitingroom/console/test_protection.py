"""Which requests to a shop need a pass: what can be read in two ways always does."""

import pytest

from frontrow.core.errors import InvalidInput
from frontrow.waitingroom.console.model.protection import (
    Crawler,
    ProtectionRules,
    ShopRequest,
    Verdict,
    checked_rules,
    decide,
    key_hash,
    rules_document,
)

RULES = checked_rules(
    ProtectionRules(
        hosts=("Shop.example.org", "*.tickets.example.org"),
        paths=("/checkout*", "/cart"),
        open_paths=("/checkout/help", "/static/*"),
        methods=("get", "POST"),
        networks=("192.0.2.0/24", "2001:db8::/32"),
        key_hashes=(key_hash("frb_secret"),),
        crawlers=(Crawler("Examplebot", ("198.51.100.0/24",)),),
    )
)


def asked(path: str, *, method: str = "GET", host: str = "shop.example.org", **more: str) -> Verdict:
    return decide(RULES, ShopRequest(method, host, path, **more))


@pytest.mark.parametrize(
    "path",
    [
        "/checkout",
        "/checkout/pay?x=1",
        "/CHECKOUT",
        "/%63heckout",
        "/static/../checkout",
        "/static/..%2fcheckout",
        "/static/%2e%2e/checkout",
        "/static//x",
        "/static/x;/checkout",
        "/static/x\\..\\checkout",
        "/static/%252e%252e/checkout",
        "/./checkout",
        "//checkout",
        "/cart/",
        "checkout",
        "",
        "/static/%00",
    ],
)
def test_what_is_protected_is_protected_in_every_spelling(path: str) -> None:
    assert asked(path) is Verdict.PROTECTED


@pytest.mark.parametrize("path", ["/", "/news", "/static/app.css", "/checkout/help", "/cartoons"])
def test_other_paths_are_open(path: str) -> None:
    assert asked(path) is Verdict.OPEN


def test_an_open_path_is_open_as_it_is_written_only() -> None:
    everything = ProtectionRules(open_paths=("/static/*",))
    assert decide(everything, ShopRequest("GET", "", "/static/a")) is Verdict.OPEN
    assert decide(everything, ShopRequest("GET", "", "/STATIC/a")) is Verdict.PROTECTED


def test_hosts_and_methods_narrow_what_is_protected_and_unknown_ones_do_not() -> None:
    assert asked("/checkout", host="blog.example.org") is Verdict.OPEN
    assert asked("/checkout", host="a.tickets.example.org:8443") is Verdict.PROTECTED
    assert asked("/checkout", host="SHOP.example.org.") is Verdict.PROTECTED
    assert asked("/checkout", host="") is Verdict.PROTECTED
    assert asked("/checkout", method="DELETE") is Verdict.OPEN
    assert asked("/checkout", method="post") is Verdict.PROTECTED
    assert asked("/checkout", method="") is Verdict.PROTECTED


def test_staff_monitoring_and_crawlers_come_in_without_a_pass() -> None:
    assert asked("/checkout", address="192.0.2.9") is Verdict.BYPASS_NETWORK
    assert asked("/checkout", address="::ffff:192.0.2.9") is Verdict.BYPASS_NETWORK
    assert asked("/checkout", address="2001:db8:1::/64") is Verdict.BYPASS_NETWORK
    assert asked("/checkout", key="frb_secret") is Verdict.BYPASS_KEY
    bot = "Mozilla/5.0 (compatible; examplebot/2.1)"
    assert asked("/checkout", agent=bot, address="198.51.100.3") is Verdict.BYPASS_CRAWLER


def test_a_claim_alone_lets_nobody_in() -> None:
    bot = "Mozilla/5.0 (compatible; Examplebot/2.1)"
    assert asked("/checkout", agent=bot, address="203.0.113.1") is Verdict.PROTECTED
    assert asked("/checkout", address="198.51.100.3", agent="Safari") is Verdict.PROTECTED
    assert asked("/checkout", key="frb_guess") is Verdict.PROTECTED
    assert asked("/checkout", key=key_hash("frb_secret")) is Verdict.PROTECTED
    assert asked("/checkout", address="not an address") is Verdict.PROTECTED


@pytest.mark.parametrize(
    ("rules", "param"),
    [
        (ProtectionRules(hosts=("a b",)), "hosts"),
        (ProtectionRules(paths=("checkout",)), "paths"),
        (ProtectionRules(paths=("/a*b",)), "paths"),
        (ProtectionRules(open_paths=("/a/../b",)), "open_paths"),
        (ProtectionRules(methods=("FETCH",)), "methods"),
        (ProtectionRules(networks=("0.0.0.0/0",)), "networks"),
        (ProtectionRules(networks=("2001:db8::1/128",)), "networks"),
        (ProtectionRules(crawlers=(Crawler("Examplebot", ()),)), "crawlers"),
        (ProtectionRules(crawlers=(Crawler("x", ("192.0.2.0/24",)),)), "crawlers"),
        (ProtectionRules(paths=("/a",) * 101), "rules"),
    ],
)
def test_a_rule_that_means_nothing_or_too_much_is_refused(rules: ProtectionRules, param: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        checked_rules(rules)
    assert refused.value.param == param


def test_the_document_for_connectors_says_what_it_is_and_has_no_secret() -> None:
    document = rules_document("aurora", RULES, 7)
    assert (document["kind"], document["v"], document["revision"]) == ("frontrow-room-rules", 1, 7)
    assert "frb_secret" not in str(document)
