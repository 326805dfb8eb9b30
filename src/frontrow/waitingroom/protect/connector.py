"""What the connector of a shop on another domain does with a request. docs/connector.md is the specification.

This is the reference, and it is pure: the connectors of other languages do the same, and `connectors/vectors.json` is
made from it. `connector_client` talks to the room; `connector_asgi`, `connector_wsgi`, `connector_django` and
`forward_auth` put it in front of a shop. It and `connector_rules` use the standard library alone, so that a shop can
copy them.
"""

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from frontrow.waitingroom.protect.connector_rules import Rules, why_open

MAX_PASS_CHARS, MAX_COOKIE_CHARS, MAX_PAGE_CHARS = 4_096, 16_384, 1_024
AHEAD_S, PASS_COOKIE_S, BIND_COOKIE_S, KEPT_COOKIE_S = 60, 86_400, 604_800, 30
END_PATH = "/.frontrow/end"
_PLAIN = re.compile(r"/[A-Za-z0-9._~!$&'()*+,=:@/-]*\Z")
_PAGE = re.compile(r"(/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)(\?[!$-;=?-\[\]-~]*)?\Z")
_HIDDEN = re.compile(r"%(?:[01].|2f|5c|7f)", re.IGNORECASE)
_TOKENS = re.compile(r"([?&]frontrow=[A-Za-z0-9_-]*)+\Z")
_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(:[0-9]+)?\Z")
_PART = re.compile(r"[A-Za-z0-9_-]+\Z")
_VERIFIER = re.compile(r"[A-Za-z0-9_-]{43}\Z")
_DER = bytes.fromhex("3031300d060960864801650304020105000420")  # DigestInfo of SHA-256


@dataclass(frozen=True, slots=True)
class Setup:
    """`room` is the address of the room's endpoints, `shop` this shop's origin as browsers see it."""

    room: str
    event: str
    shop: str
    open_paths: Sequence[str] = ()
    rules_key: str = ""  # of the room's console, for rules:read; empty: `open_paths` are all that is open

    def __post_init__(self) -> None:
        if not _ORIGIN.match(self.shop):
            raise ValueError(f"shop is an origin like https://shop.example.org, not {self.shop!r}")
        if not self.room.startswith(("https://", "http://")) or self.room.endswith("/"):
            raise ValueError(f"room is like https://room.example.org/v1/events/aurora/room, not {self.room!r}")
        for path in self.open_paths:
            if not is_open(self, path):
                raise ValueError(f"open path {path!r} must be written plainly, like /static/")

    @property
    def host(self) -> str:
        """The shop's host name, which the room's rules name."""
        return self.shop.partition("://")[2].partition(":")[0].rstrip(".")

    def cookie(self, kind: str) -> str:
        """The name of one of our cookies. Over https no sister site can plant it."""
        secure = self.shop.startswith("https:")
        return f"__Host-frontrow-{kind}-{self.event}" if secure else f"frontrow_{kind}_{self.event}"

    def cookie_line(self, kind: str, value: str, life_s: int) -> str:
        """The value of `Set-Cookie`."""
        secure = "; Secure" if self.shop.startswith("https:") else ""
        return f"{self.cookie(kind)}={value}; Path=/; Max-Age={life_s}; HttpOnly; SameSite=Lax{secure}"


@dataclass(frozen=True, slots=True)
class Known:
    """What the room's `connector` document said last."""

    keys: Mapping[str, tuple[int, int]] = field(default_factory=dict)  # kid -> n, e
    events: frozenset[str] = frozenset()
    ended: Mapping[str, int] = field(default_factory=dict)  # visit id -> expiry of its pass
    mark: str = ""
    rules: Rules | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """`action`: pass, open, strip, exchange, end, room (a page is redirected), refuse (a program is told `code`)."""

    action: str
    code: str = ""
    location: str = ""
    cookies: tuple[str, ...] = ()
    person: str = ""
    visit: str = ""
    given: str = ""  # the pass
    renew: bool = False
    token: str = ""
    verifier: str = ""
    page: str = ""  # where to go after the exchange

    @property
    def needs_room(self) -> bool:
        """Whether `Connector.handle` calls the room for it."""
        return self.renew or self.action in ("exchange", "end") or self.code == "key_unknown"


def decide(
    setup: Setup,
    known: Known,
    method: str,
    target: str,
    headers: Mapping[str, str],
    now_s: int,
    fresh: str,
    address: str = "",
) -> Decision:
    """What to do with a request. `target` is path and query as the client sent them, `headers` has lower-case names,
    `fresh` is a new verifier, `address` the client's, as far as the shop knows it."""
    path = target.partition("?")[0]
    if is_open(setup, path):
        return Decision("open")
    if known.rules is not None and path != END_PATH:
        why = why_open(known.rules, setup.host, method, target, headers, address, now_s)
        if why:
            return Decision("open", "" if why == "open" else why)
    page = _TOKENS.sub("", target)
    token = target[len(page) :].rpartition("=")[2] if method == "GET" else ""
    cookies = headers.get("cookie", "")[:MAX_COOKIE_CHARS]
    header = headers.get("frontrow-pass", "").strip(" \t")
    given = header or read_cookie(cookies, setup.cookie("pass"))
    claims, code = read_pass(setup, known, given, now_s) if given else ({}, "pass_required")
    if path == END_PATH and method == "POST":
        own = headers.get("origin") == setup.shop or headers.get("sec-fetch-site") == "same-origin"
        gone = tuple(setup.cookie_line(kind, "", 0) for kind in ("pass", "kept"))
        return Decision("end", given="" if code else given, cookies=gone) if own else Decision("refuse", "cross_site")
    if not code and len(page) < len(target) and method == "GET":
        return Decision("strip", location=wanted(page))
    if not code:
        due = not header and (claims["exp"] - now_s) * 3 < claims["exp"] - claims["iat"]
        renew = due and not read_cookie(cookies, setup.cookie("kept"))
        return Decision("pass", person=claims["sub"], visit=visit_of(claims), given=given, renew=renew)
    verifier = read_cookie(cookies, setup.cookie("bind"))
    verifier = verifier if _VERIFIER.match(verifier) else ""
    if token and verifier:
        return Decision("exchange", code, token=token, verifier=verifier, page=wanted(page))
    if method not in ("GET", "HEAD") or "text/html" not in headers.get("accept", ""):
        return Decision("refuse", code)
    return to_room(setup, page, verifier, fresh, code)


def to_room(setup: Setup, page: str, verifier: str, fresh: str, code: str) -> Decision:
    """To the room, and back to `page` afterwards. A browser without a verifier gets `fresh`."""
    bind = b64(hashlib.sha256((verifier or fresh).encode()).digest())
    cookies = () if verifier else (setup.cookie_line("bind", fresh, BIND_COOKIE_S),)
    return Decision(
        "room", code, f"{setup.room}/?bind={bind}&return={quote(setup.shop + wanted(page), safe='')}", cookies
    )


def wanted(page: str) -> str:
    """The page to lead to: never another site, whatever was in the address."""
    path = page.partition("?")[0]
    return page if is_page(page) else path if is_page(path) else "/"


def is_open(setup: Setup, path: str) -> bool:
    """Whether the path is written plainly and is listed, or is below a listed path that ends with /."""
    if not _PLAIN.match(path) or "//" in path or {".", ".."} & set(path.split("/")):
        return False
    return any(path == one or (one.endswith("/") and path.startswith(one)) for one in setup.open_paths)


def is_page(text: str) -> bool:
    """Whether this is a page of one's own site as a browser writes it."""
    found = _PAGE.match(text) if len(text) <= MAX_PAGE_CHARS else None
    if found is None or "//" in found[1] or _HIDDEN.search(found[1]):
        return False
    return not {".", ".."} & set(found[1].split("/"))


def read_cookie(header: str, name: str) -> str:
    """The first value of this cookie that is not empty."""
    for part in header.split(";"):
        key, _, value = part.strip(" \t").partition("=")
        if key == name and value:
            return value
    return ""


def read_pass(setup: Setup, known: Known, text: str, now_s: int) -> tuple[dict[str, Any], str]:
    """The claims of a pass, and why it is refused (nothing if it is good)."""
    try:
        claims = _verified(known, text)
    except LookupError:
        return {}, "key_unknown"
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {}, "pass_invalid"
    if claims["shop"] != setup.shop or claims["aud"] not in {setup.event, *known.events}:
        return {}, "pass_foreign"
    if now_s >= claims["exp"] or claims["iat"] > now_s + AHEAD_S:
        return {}, "pass_expired"
    return (claims, "") if visit_of(claims) not in known.ended else ({}, "pass_ended")


def visit_of(claims: dict[str, Any]) -> str:
    return ".".join(map(str, (claims["aud"], *claims["plc"])))


def _verified(known: Known, text: str) -> dict[str, Any]:
    """The claims, if the room signed them. Raises LookupError without the key, ValueError and others otherwise."""
    head, body, signature = text.split(".") if len(text) <= MAX_PASS_CHARS else ("", "", "")
    header = json.loads(unb64(head))
    if header.keys() != {"alg", "kid", "typ"} or (header["alg"], header["typ"]) != ("RS256", "JWT"):
        raise ValueError("not the header of a pass")
    n, e = known.keys[str(header["kid"])]
    raw, size = unb64(signature), (n.bit_length() + 7) // 8
    given = int.from_bytes(raw)
    digest = _DER + hashlib.sha256(f"{head}.{body}".encode()).digest()
    right = b"\0\1" + b"\xff" * (size - len(digest) - 3) + b"\0" + digest
    if len(raw) != size or given >= n or not hmac.compare_digest(right, pow(given, e, n).to_bytes(size)):
        raise ValueError("not signed by the room")
    claims: dict[str, Any] = json.loads(unb64(body))
    texts = [claims.get(name) for name in ("iss", "aud", "sub", "shop")]
    plc = claims.get("plc")
    numbers = [claims.get("exp"), claims.get("iat"), *(plc if isinstance(plc, list) else ())]
    good = texts[0] == "frontrow-room" and all(type(one) is str for one in texts)
    if not good or len(numbers) != 5 or not all(type(one) is int for one in numbers):
        raise ValueError("not the claims of a pass for a shop")
    return claims


def b64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def unb64(text: str) -> bytes:
    """The bytes of base64url without padding, in its only spelling. Raises ValueError."""
    raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)) if _PART.match(text) else b""
    if b64(raw) != text:
        raise ValueError("not base64url")
    return raw


def learn(known: Known, told: Mapping[str, Any]) -> Known:
    """What is known after another `connector` document."""
    keys = {key["kid"]: tuple(int.from_bytes(unb64(key[part])) for part in ("n", "e")) for key in told["keys"]}
    before = known.ended if told["after"] == known.mark and known.mark else {}
    ended = {visit: until_s for visit, until_s in before.items() if until_s > told["now_s"]}
    ended |= {visit: int(until_s) for visit, _, until_s in (entry.rpartition(":") for entry in told["ended"])}
    return Known(keys, frozenset(told["events"]), ended, told["mark"], known.rules)  # type: ignore[arg-type]
