"""The rules of the room as a connector reads them: which requests need a pass, and who comes in without one.

The twin of `console.model.protection.decide`, by the standard library alone, so that a shop can copy it. Old rules open
nothing: when the room was away for `RULES_LIFE_S`, everything needs a pass again, and only the staff's ways in stay.
"""

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

RULES_LIFE_S = 86_400
_AMBIGUOUS = re.compile(r"//|\\|%2f|%5c|%2e|%00|;|(^|/)\.\.?(/|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Rules:
    """The room's rules as read at `read_s`. Empty lists mean everything."""

    read_s: int
    hosts: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    open_paths: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    key_hashes: tuple[str, ...] = ()
    crawlers: tuple[tuple[str, tuple[str, ...]], ...] = ()  # a part of the user agent, and its networks


def read_rules(told: Any, event: str, now_s: int) -> Rules:
    """The document of `GET ROOM/rules`. Raises ValueError for what is not that of this event and version."""
    try:
        if (told["kind"], told["v"], told["event"]) != ("frontrow-room-rules", 1, event):
            raise ValueError("not the rules of this event")
        names = ("hosts", "paths", "open_paths", "methods", "networks", "key_hashes")
        lists = {name: _texts(told.get(name, [])) for name in names}
        crawlers = tuple((str(one["agent"]), _texts(one["networks"])) for one in told.get("crawlers", []))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("not a document of rules") from error
    for network in (*lists["networks"], *(one for _, networks in crawlers for one in networks)):
        ipaddress.ip_network(network)
    return Rules(now_s, **lists, crawlers=crawlers)


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise TypeError("not a list of texts")
    return tuple(value)


def why_open(
    rules: Rules, host: str, method: str, target: str, headers: Mapping[str, str], address: str, now_s: int
) -> str:
    """Why this request needs no pass: bypass_key, bypass_network, bypass_crawler or open. Empty: it needs one. `host`
    is the shop's own: the header `Host` is a client's word."""
    key = headers.get("frontrow-bypass", "")
    hashed = hashlib.sha256(f"frontrow bypass:{key}".encode("utf-8", "surrogatepass")).hexdigest()
    if key and any(hmac.compare_digest(hashed.encode(), known.encode()) for known in rules.key_hashes):
        return "bypass_key"
    if _in_networks(address, rules.networks):
        return "bypass_network"
    if now_s >= rules.read_s + RULES_LIFE_S:
        return ""
    agent = headers.get("user-agent", "").lower()
    if any(part.lower() in agent and _in_networks(address, networks) for part, networks in rules.crawlers):
        return "bypass_crawler"
    if rules.hosts and not any(_host_fits(one, host) for one in rules.hosts):
        return "open"
    if rules.methods and method and method.upper() not in rules.methods:
        return "open"
    return "open" if _path_is_open(rules, target.partition("?")[0]) else ""


def _path_is_open(rules: Rules, raw: str) -> bool:
    path = unquote(raw, errors="replace")
    if not path.startswith("/") or _AMBIGUOUS.search(raw) or _AMBIGUOUS.search(path) or "%" in path:
        return False
    if any(_path_fits(one, raw) for one in rules.open_paths):
        return True
    # a shop may serve /Checkout as /checkout: a protected path is protected in every spelling
    return bool(rules.paths) and not any(_path_fits(one.lower(), path.lower()) for one in rules.paths)


def _path_fits(pattern: str, path: str) -> bool:
    if pattern.endswith("*"):
        start = pattern[:-1]
        return path.startswith(start) or (start.endswith("/") and path == start[:-1])
    return path == pattern or path == f"{pattern}/"


def _host_fits(pattern: str, host: str) -> bool:
    return host.endswith(pattern[1:]) if pattern.startswith("*.") else host == pattern


def _in_networks(address: str, networks: Sequence[str]) -> bool:
    if not networks or not address:
        return False
    try:
        found: Any = ipaddress.ip_address(address.partition("/")[0])
    except ValueError:
        return False
    found = getattr(found, "ipv4_mapped", None) or found
    return any(found in ipaddress.ip_network(one) for one in networks)
