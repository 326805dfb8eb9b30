"""Makes `connectors/rules_vectors.json`: what a connector that reads the room's rules decides (docs/connector.md).

    python -m connectors.make_rules_vectors

Each case says what must come out; the reference must agree before anything is written. A vector has the fields of
`vectors.json`, and the rules that were read (`rules`), when (`rules_read_s`) and from which `address` the client comes.
"""

import json
from collections.abc import Iterator
from typing import Any

from connectors.make_vectors import FRESH, HERE, NOW_S, ROOMS, SETUPS, TOKEN, VERIFIER, Case, ask, cookie, shows, signed
from frontrow.waitingroom.console.model.protection import (
    Crawler,
    ProtectionRules,
    checked_rules,
    key_hash,
    rules_document,
)
from frontrow.waitingroom.protect.connector import Known, Setup, decide, learn
from frontrow.waitingroom.protect.connector_rules import RULES_LIFE_S, read_rules

STAFF, KEY = "192.0.2.7", "frb_of-the-staff"
BOT = {"user-agent": "Mozilla/5.0 (compatible; Examplebot/2.1)"}


def document(event: str = "aurora", **rules: Any) -> dict[str, Any]:
    """The document as the room sends it."""
    sent: dict[str, Any] = json.loads(json.dumps(rules_document(event, checked_rules(ProtectionRules(**rules)), 3)))
    return sent


RULES = {
    "none": document(),
    "paths": document(paths=("/checkout*", "/cart", "/sale/*"), open_paths=("/checkout/help", "/checkout/static/*")),
    "methods": document(methods=("POST", "PUT")),
    "our host": document(hosts=("shop.example",)),
    "our host among others": document(hosts=("*.example", "other.example.org")),
    "another host": document(hosts=("other.example.org", "*.shop.example")),
    "staff": document(networks=("192.0.2.0/24", "2001:db8:7::/48"), key_hashes=(key_hash(KEY), key_hash("frb_old"))),
    "crawlers": document(crawlers=(Crawler("Examplebot", ("198.51.100.0/24", "2001:db8:1::/64")),)),
    "all": document(
        paths=("/checkout*",),
        networks=("192.0.2.0/24",),
        key_hashes=(key_hash(KEY),),
        crawlers=(Crawler("Examplebot", ("198.51.100.0/24",)),),
    ),
}
OPEN = {"action": "open", "code": ""}
ROOM = {"action": "room", "code": "pass_required"}


def paths() -> Iterator[Case]:
    for target in ("/", "/news", "/checkou", "/cartoons", "/a%20b", "/caf%C3%A9", "/sal", "/news?x=/checkout", "/x%ff"):
        yield f"open: {target}", ask(target, rules="paths"), OPEN
    for target in ("/checkout/help", "/checkout/help/", "/checkout/static", "/checkout/static/a.css?v=1"):
        yield f"named open: {target}", ask(target, rules="paths"), OPEN
    tricks = (
        "/checkout", "/checkout/", "/checkout-now", "/CHECKOUT", "/Cart", "/cart/", "/%63heckout", "/%43art", "/sale",
        "/sale/x", "/SALE/", "/news/../checkout", "/news/%2e%2e/checkout", "/news/..%2fcheckout", "//checkout",
        "/news//checkout", "/./news", "/news;x", "/news%3b/checkout", "/news\\..\\checkout", "/news%5ccheckout",
        "/%2563heckout", "/news%00", "/news%", "/news%zz", "/checkout/static/../pay", "/checkout/static/%2e%2e/pay",
        "/checkout/Help", "/checkout%2fhelp", "/checkout/%68elp", "news", "", "*", "http://shop.example/news",
    )  # fmt: skip
    for target in tricks:
        yield f"protected: {target}", ask(target, rules="paths"), ROOM
    yield "protected for a program", ask("/checkout", headers={"accept": "*/*"}, rules="paths"), {"action": "refuse"}
    yield "a pass at a protected path", shows(signed(), "/checkout", rules="paths"), {"action": "pass"}
    yield "a forged pass at an open path", shows("x", "/news", rules="paths"), OPEN
    yield "with POST too", ask("/news", "POST", rules="paths"), OPEN
    yield "without rules everything is protected", ask("/news", rules="none"), ROOM
    yield "the open paths of the setup stay open", ask("/static/x", rules="none"), OPEN
    yield "before any rules were read", ask("/news"), ROOM
    kept = {"cookie": cookie(VERIFIER, kind="bind")}
    handed = {"action": "exchange", "page": "/cart"}
    yield "a hand-over", ask(f"/cart?frontrow={TOKEN}", headers=kept, rules="paths"), handed
    end = {"origin": "https://shop.example", "accept": "*/*"}
    yield (
        "a visit ends where everything is open",
        shows(signed(), "/.frontrow/end", "POST", headers=end, rules="paths"),
        {"action": "end"},
    )


def methods() -> Iterator[Case]:
    for method, wanted in (
        ("GET", OPEN),
        ("HEAD", OPEN),
        ("post", None),
        ("POST", None),
        ("PUT", None),
        ("PATCH", OPEN),
    ):
        refused = {"action": "refuse", "code": "pass_required"}
        yield f"{method}", ask(method=method, rules="methods"), wanted or refused


def hosts() -> Iterator[Case]:
    yield "our host", ask(rules="our host"), ROOM
    yield "our host by a pattern", ask(rules="our host among others"), ROOM
    yield "another host", ask(rules="another host"), OPEN
    for name in ("other.example.org", "evil.example", "", "SHOP.EXAMPLE"):
        yield f"a client's word for our host: {name}", ask(headers={"host": name}, rules="our host"), ROOM
    yield "a client's word for another host", ask(headers={"host": "shop.example"}, rules="another host"), OPEN
    yield "our host over http", ask(setup="http", rules="another host"), OPEN


def staff() -> Iterator[Case]:
    by_key, by_network = {"action": "open", "code": "bypass_key"}, {"action": "open", "code": "bypass_network"}
    for key in (KEY, "frb_old"):
        yield f"a key: {key}", ask(headers={"frontrow-bypass": key}, rules="staff"), by_key
    for key in ("", "frb_", KEY.upper(), f"{KEY} ", key_hash(KEY), "é"):
        yield f"no key: {key!r}", ask(headers={"frontrow-bypass": key}, rules="staff"), ROOM
    yield "a key with POST", ask("/pay", "POST", headers={"frontrow-bypass": KEY}, rules="staff"), by_key
    yield "a key at an odd path", ask("/a/../b", headers={"frontrow-bypass": KEY}, rules="staff"), by_key
    for address in (
        "192.0.2.0",
        STAFF,
        "192.0.2.255",
        "::ffff:192.0.2.7",
        "2001:db8:7::1",
        "2001:DB8:7:ffff::",
        "::ffff:c000:207",
    ):
        yield f"an address: {address}", ask(address=address, rules="staff"), by_network
    for address in (
        "192.0.3.0", "192.0.1.255", "2001:db8:8::1", "2001:db8::7", "", "unknown", "192.0.2", "192.0.2.7.8",
        "192.0.2.007", "192.0.2.256", "::192.0.2.7", ":::1", "1:2:3:4:5:6:7:8:9", "2001:db8:7", "2001:db8:7::1::2",
        " 192.0.2.7", "192.0.2.7:80",
        "0xc0000207", "3221225991", "-1", "::ffff:192.0.2.7.1", "g::1", "00000::1",
    ):  # fmt: skip
        yield f"no address of ours: {address!r}", ask(address=address, rules="staff"), ROOM
    yield "an address that a client claims", ask(headers={"x-forwarded-for": STAFF}, rules="staff"), ROOM


def crawlers() -> Iterator[Case]:
    in_ = {"action": "open", "code": "bypass_crawler"}
    for address in ("198.51.100.9", "2001:db8:1::9", "::ffff:198.51.100.9"):
        yield f"a crawler at {address}", ask(headers=BOT, address=address, rules="crawlers"), in_
    loud = {"user-agent": "EXAMPLEBOT"}
    yield "a crawler in capitals", ask(headers=loud, address="198.51.100.9", rules="crawlers"), in_
    yield "a crawler's name alone", ask(headers=BOT, address="203.0.113.9", rules="crawlers"), ROOM
    yield "a crawler's name without an address", ask(headers=BOT, rules="crawlers"), ROOM
    yield "a crawler's address alone", ask(address="198.51.100.9", rules="crawlers"), ROOM


def ages() -> Iterator[Case]:
    """What is left of rules while the room is away."""
    for age_s, fresh in ((0, True), (RULES_LIFE_S - 1, True), (RULES_LIFE_S, False), (10 * RULES_LIFE_S, False)):
        old = {"rules": "all", "rules_read_s": NOW_S - age_s}
        bot = {"headers": BOT, "address": "198.51.100.9"}
        yield f"{age_s} s: an open path", ask("/news", **old), OPEN if fresh else ROOM
        yield f"{age_s} s: a protected path", ask("/checkout", **old), ROOM
        yield f"{age_s} s: a crawler", ask("/checkout", **bot, **old), {"action": "open" if fresh else "room"}
        yield (
            f"{age_s} s: a bypass key",
            ask("/checkout", headers={"frontrow-bypass": KEY}, **old),
            {"code": "bypass_key"},
        )
        yield f"{age_s} s: staff", ask("/checkout", address=STAFF, **old), {"code": "bypass_network"}
        yield f"{age_s} s: a pass", shows(signed(), "/checkout", **old), {"action": "pass"}


GROUPS = (paths, methods, hosts, staff, crawlers, ages)


def decision_of(vector: dict[str, Any]) -> dict[str, Any]:
    """The reference's whole decision: every field that is not empty."""
    setup, known = Setup(**SETUPS[vector["setup"]]), learn(Known(), ROOMS[vector["room"]])
    name = vector["rules"]
    rules = read_rules(RULES[name], setup.event, vector["rules_read_s"]) if name else None
    known = Known(known.keys, known.events, known.ended, known.mark, rules)
    method, target, headers, now_s = (vector[part] for part in ("method", "target", "headers", "now_s"))
    done = decide(setup, known, method, target, headers, now_s, FRESH, vector["address"])
    found = {part: getattr(done, part) for part in done.__slots__}
    return {part: list(value) if part == "cookies" else value for part, value in found.items() if value}


def vectors() -> list[dict[str, Any]]:
    """All cases with the whole decision. Raises AssertionError where the reference does not agree."""
    usual = {"setup": "https", "room": "usual", "now_s": NOW_S, "rules": "", "rules_read_s": NOW_S, "address": ""}
    made = []
    for group in GROUPS:
        for name, request, wanted in group():
            vector = {"name": f"rules, {group.__name__}: {name}"} | usual | request
            found = decision_of(vector)
            for part, value in wanted.items():
                assert found.get(part, "") == value, (vector["name"], part, found.get(part), value)
            made.append(vector | {"expect": found})
    names = [vector["name"] for vector in made]
    assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)
    return made


def text() -> str:
    """The file."""
    about = "Made by `python -m connectors.make_rules_vectors`. docs/connector.md says what each part means."
    return json.dumps({"about": about, "rules": RULES, "vectors": vectors()}, indent=1, ensure_ascii=True) + "\n"


if __name__ == "__main__":
    (HERE / "rules_vectors.json").write_text(text())
    print(f"{len(vectors())} vectors in {HERE / 'rules_vectors.json'}")
