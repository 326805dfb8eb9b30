"""Which requests to the shop need a pass, and who comes in without one.

The shop's connector asks (`GET /pass`), or reads the rules and decides itself by the same function. Everything that
could be read in two ways needs a pass: a path with `..`, `//`, `%2f` or a backslash is protected wherever rules say
that something is open.
"""

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from frontrow.core.errors import InvalidInput

MAX_LINES: Final = 100
MAX_CHARS: Final = 300
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
DOCUMENT_VERSION: Final = 1
_HOST: Final = re.compile(r"(\*\.)?[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_AMBIGUOUS: Final = re.compile(r"//|\\|%2f|%5c|%2e|%00|;|(^|/)\.\.?(/|$)", re.IGNORECASE)


class Crawler(msgspec.Struct, frozen=True):
    """A search engine's robot: what its user agent contains, and the networks that it publishes. A user agent alone is
    a claim that anybody can make, so both are needed."""

    agent: str
    networks: tuple[str, ...]


class ProtectionRules(msgspec.Struct, frozen=True):
    """Empty lists mean everything: all hosts, all paths, all methods. `open_paths` need no pass. A pattern ends in `*`
    for everything below it."""

    hosts: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    open_paths: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()  # staff and monitoring, by address
    key_hashes: tuple[str, ...] = ()  # staff and monitoring, by the header Frontrow-Bypass: SHA-256 of each key
    crawlers: tuple[Crawler, ...] = ()


class Verdict(StrEnum):
    """What the rules say about a request."""

    PROTECTED = "protected"
    OPEN = "open"
    BYPASS_NETWORK = "bypass_network"
    BYPASS_KEY = "bypass_key"
    BYPASS_CRAWLER = "bypass_crawler"


class ShopRequest(msgspec.Struct, frozen=True):
    """What the rules look at. What is empty is unknown, and never lets anybody in."""

    method: str = ""
    host: str = ""
    path: str = ""
    address: str = ""
    agent: str = ""
    key: str = ""


def decide(rules: ProtectionRules, request: ShopRequest) -> Verdict:
    """Whether this request needs a pass."""
    if any(hmac.compare_digest(key_hash(request.key), known) for known in rules.key_hashes if request.key):
        return Verdict.BYPASS_KEY
    if _in_networks(request.address, rules.networks):
        return Verdict.BYPASS_NETWORK
    agent = request.agent.lower()
    for crawler in rules.crawlers:
        if crawler.agent.lower() in agent and _in_networks(request.address, crawler.networks):
            return Verdict.BYPASS_CRAWLER
    if rules.hosts and request.host and not any(_host_fits(one, request.host) for one in rules.hosts):
        return Verdict.OPEN
    if rules.methods and request.method and request.method.upper() not in rules.methods:
        return Verdict.OPEN
    raw = request.path.partition("?")[0]
    path = unquote(raw, errors="replace")
    if not path.startswith("/") or _AMBIGUOUS.search(raw) or _AMBIGUOUS.search(path) or "%" in path:
        return Verdict.PROTECTED
    if any(_path_fits(one, raw) for one in rules.open_paths):
        return Verdict.OPEN
    # a shop may serve /Checkout as /checkout: a protected path is protected in every spelling
    if rules.paths and not any(_path_fits(one.lower(), path.lower()) for one in rules.paths):
        return Verdict.OPEN
    return Verdict.PROTECTED


def key_hash(key: str) -> str:
    """How a bypass key is stored and published."""
    return hashlib.sha256(f"frontrow bypass:{key}".encode("utf-8", "surrogatepass")).hexdigest()


def _path_fits(pattern: str, path: str) -> bool:
    if pattern.endswith("*"):
        start = pattern[:-1]
        return path.startswith(start) or (start.endswith("/") and path == start[:-1])
    return path == pattern or path == f"{pattern}/"


def _host_fits(pattern: str, host: str) -> bool:
    name = host.lower().rpartition("@")[2]
    name = name if name.startswith("[") else name.partition(":")[0]
    name = name.rstrip(".")
    if pattern.startswith("*."):
        return name.endswith(pattern[1:])
    return name == pattern


def _in_networks(address: str, networks: Sequence[str]) -> bool:
    if not networks or not address:
        return False
    try:
        found: Any = ipaddress.ip_address(address.partition("/")[0])
    except ValueError:
        return False
    found = getattr(found, "ipv4_mapped", None) or found
    return any(found in ipaddress.ip_network(one) for one in networks)


def checked_rules(rules: ProtectionRules) -> ProtectionRules:
    """The rules in their plain form. Raises InvalidInput with the line that is wrong."""
    lists = (rules.hosts, rules.paths, rules.open_paths, rules.networks, rules.key_hashes, rules.crawlers)
    if any(len(one) > MAX_LINES for one in lists):
        raise InvalidInput(f"a list of rules has at most {MAX_LINES} lines", param="rules")
    methods = tuple(dict.fromkeys(one.upper() for one in rules.methods))
    for method in methods:
        if method not in METHODS:
            raise InvalidInput(f"{method!r} is not one of {', '.join(METHODS)}", param="methods")
    return ProtectionRules(
        tuple(_checked_host(one) for one in rules.hosts),
        tuple(_checked_path(one, "paths") for one in rules.paths),
        tuple(_checked_path(one, "open_paths") for one in rules.open_paths),
        methods,
        tuple(_checked_network(one, "networks") for one in rules.networks),
        rules.key_hashes,
        tuple(_checked_crawler(one) for one in rules.crawlers),
    )


def _checked_host(text: str) -> str:
    host = text.strip().lower().rstrip(".")
    if not _HOST.fullmatch(host):
        raise InvalidInput(f"{text[:60]!r} is not a host name like shop.example.org or *.example.org", param="hosts")
    return host


def _checked_path(text: str, param: str) -> str:
    path = text.strip()
    if not path.startswith("/") or len(path) > MAX_CHARS or "*" in path[:-1] or _AMBIGUOUS.search(path) or "?" in path:
        raise InvalidInput(f"{text[:60]!r} is not a path like /checkout or /static/*", param=param)
    return path


def _checked_network(text: str, param: str) -> str:
    try:
        network = ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        raise InvalidInput(f"{text[:60]!r} is not an address or a network like 192.0.2.0/24", param=param) from None
    if network.version == 6 and network.prefixlen > 64:
        raise InvalidInput(f"{text[:60]!r}: a network of IPv6 is a /64 or larger", param=param)
    if network.prefixlen < (8 if network.version == 4 else 16):
        raise InvalidInput(f"{text[:60]!r} is too large a network to let in without a place", param=param)
    return str(network)


def _checked_crawler(crawler: Crawler) -> Crawler:
    agent = crawler.agent.strip()
    if not 3 <= len(agent) <= 100 or not agent.isprintable():
        raise InvalidInput("a crawler is named by 3 to 100 characters of its user agent", param="crawlers")
    if not crawler.networks:
        raise InvalidInput(f"crawler {agent!r} needs the networks it comes from", param="crawlers")
    return Crawler(agent, tuple(_checked_network(one, "crawlers") for one in crawler.networks))


def rules_document(event: str, rules: ProtectionRules, revision: int) -> dict[str, Any]:
    """The rules as connectors read them."""
    return {
        "kind": "frontrow-room-rules",
        "v": DOCUMENT_VERSION,
        "event": event,
        "revision": revision,
        **msgspec.to_builtins(rules),
    }
