"""Makes `connectors/vectors.json`: what every connector must decide, in every language (docs/connector.md).

    python -m connectors.make_vectors

Each case says what must come out. The reference (`frontrow.waitingroom.protect.connector`) must agree before anything is
written; the file then has its whole decision. The keys in `vector_keys.pem` sign nothing but these cases.
"""

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.hashes import SHA1, SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from frontrow.waitingroom.credentials.passes import PassSigner, from_pem
from frontrow.waitingroom.protect.connector import Known, Setup, b64, decide, learn

HERE = Path(__file__).parent
NOW_S = 1_800_000_000
SHOP, ROOM = "https://shop.example", "https://room.example/v1/events/aurora/room"
FRESH, VERIFIER, TOKEN = "F" * 43, "V" * 43, "AbCd-_" * 12
HTML = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
SETUPS: dict[str, dict[str, Any]] = {
    "https": {"room": ROOM, "event": "aurora", "shop": SHOP, "open_paths": ["/static/", "/health"]},
    "http": {
        "room": "http://room.test:8008/v1/events/aurora/room",
        "event": "aurora",
        "shop": "http://shop.test:8000",
        "open_paths": [],
    },
    "borealis": {
        "room": "https://other-room.example/v1/events/borealis/room",
        "event": "borealis",
        "shop": SHOP,
        "open_paths": [],
    },
}
NEW, OLD, STRANGER = (
    from_pem(pem.encode()) for pem in re.findall(r"-----BEGIN.+?END PRIVATE KEY-----\n", (HERE / "vector_keys.pem").read_text(), re.DOTALL)
)  # fmt: skip
Case = tuple[str, dict[str, Any], dict[str, Any]]  # name, request, what must come out


def rs256_keys(*keys: RSAPrivateKey) -> list[dict[str, str]]:
    return [jwk for jwk in PassSigner(keys).jwks()["keys"] if jwk["alg"] == "RS256"]


def room(keys: list[dict[str, str]], *ended: str, events: tuple[str, ...] = ("aurora",)) -> dict[str, Any]:
    return {
        "events": list(events),
        "keys": keys,
        "after": "",
        "mark": f"1.{len(ended)}",
        "complete": True,
        "ended": [f"{one}:{NOW_S + 600}" for one in ended],
        "now_s": NOW_S,
    }


ROOMS = {
    "usual": room(rs256_keys(NEW, OLD)),
    "before the rotation": room(rs256_keys(OLD)),
    "after the rotation": room(rs256_keys(NEW)),
    "empty": room([]),
    "ended": room(rs256_keys(NEW, OLD), "aurora.0.1.7"),
    "others ended": room(rs256_keys(NEW, OLD), "aurora.0.1.77", "aurora.0.2.7", "aurora.1.1.7", "borealis.0.1.7"),
    "borealis": room(rs256_keys(NEW, OLD), events=("borealis",)),
    "of somebody else": room(rs256_keys(STRANGER), events=("borealis",)),
    "sharded": room(rs256_keys(NEW, OLD), "aurora.1.0.1.9", events=("aurora.0", "aurora.1")),
}
KID = rs256_keys(NEW)[0]["kid"]
OLD_KID = rs256_keys(OLD)[0]["kid"]
HEADER = {"alg": "RS256", "kid": KID, "typ": "JWT"}


def claims(**changes: Any) -> dict[str, Any]:
    """The claims of a good pass, changed; None removes one."""
    good = {
        "iss": "frontrow-room",
        "aud": "aurora",
        "sub": "guest_7",
        "iat": NOW_S - 100,
        "exp": NOW_S + 800,
        "jti": "aurora.0.1.7.1",
        "plc": [0, 1, 7],
        "since": NOW_S - 100,
        "shop": SHOP,
    }
    return {name: value for name, value in (good | changes).items() if value is not None}


def part(value: Any) -> str:
    return b64((value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))).encode())


def signed(body: Any = None, header: Any = None, key: RSAPrivateKey = NEW, **changes: Any) -> str:
    """A pass as the room signs it, or with another header or body."""
    text = f"{part(HEADER if header is None else header)}.{part(claims(**changes) if body is None else body)}"
    return f"{text}.{b64(key.sign(text.encode(), PKCS1v15(), SHA256()))}"


def cookie(text: str, setup: str = "https", kind: str = "pass") -> str:
    return f"{Setup(**SETUPS[setup]).cookie(kind)}={text}"


def ask(target: str = "/seats", method: str = "GET", **more: Any) -> dict[str, Any]:
    """A browser's request; `headers` are added to `Accept`."""
    headers = more.pop("headers", {})
    return {"method": method, "target": target, "headers": HTML | headers} | more


def shows(text: str, target: str = "/seats", method: str = "GET", **more: Any) -> dict[str, Any]:
    """A browser's request with this pass in its cookie."""
    setup = more.get("setup", "https")
    headers = {"cookie": cookie(text, setup)} | more.pop("headers", {})
    return ask(target, method, headers=headers, **more)


def good_passes() -> Iterator[Case]:
    good = signed()
    let_in = {"action": "pass", "person": "guest_7", "visit": "aurora.0.1.7"}
    yield "a good pass", shows(good), let_in
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"):
        yield f"a good pass with {method}", shows(good, method=method), let_in
    yield "a good pass of a program", ask(headers={"frontrow-pass": good, "accept": "*/*"}), let_in
    yield "a good pass with blanks around it in the header", ask(headers={"frontrow-pass": f"  {good} "}), let_in
    yield "a good pass among other cookies", ask(headers={"cookie": f"a=1; {cookie(good)}; b=2"}), let_in
    yield "cookies without blanks between them", ask(headers={"cookie": f"a=1;{cookie(good)};b=2"}), let_in
    yield "the first of two passes counts", ask(headers={"cookie": f"{cookie(good)}; {cookie('x')}"}), let_in
    yield "an empty cookie is passed over", ask(headers={"cookie": f"{cookie('')}; {cookie(good)}"}), let_in
    yield (
        "a person with other letters",
        shows(signed(sub="Zoë 东京 \U0001f39f")),
        {"action": "pass", "person": "Zoë 东京 \U0001f39f"},
    )
    yield (
        "claims that nobody knows yet are let be",
        shows(signed(more={"a": [1, {"b": None}]}, cnf={"jkt": "x"})),
        let_in,
    )
    yield (
        "claims with blanks and in another order",
        shows(signed(json.dumps(dict(reversed(claims().items())), indent=1))),
        let_in,
    )
    yield "a header in another order", shows(signed(header=dict(reversed(HEADER.items())))), let_in
    yield "over http", shows(signed(shop="http://shop.test:8000"), setup="http"), let_in
    yield (
        "of a shard",
        shows(signed(aud="aurora.1", plc=[0, 1, 8]), room="sharded"),
        {"action": "pass", "visit": "aurora.1.0.1.8"},
    )
    yield (
        "a large position",
        shows(signed(plc=[2, 40, 14_000_000])),
        {"action": "pass", "visit": "aurora.2.40.14000000"},
    )
    for target in ("/", "/?", "/a?b=c", "/a%2fb", "/..;/x", "//x", "/Seats", "/seats/", "*", "http://evil.example/"):
        yield f"a good pass at {target}", shows(good, target), let_in


def no_pass() -> Iterator[Case]:
    room_ = {"action": "room", "code": "pass_required"}
    yield "no pass", ask(), room_
    yield "no pass, HEAD", ask(method="HEAD"), room_
    yield "no pass, a verifier is kept", ask(headers={"cookie": cookie(VERIFIER, kind="bind")}), room_
    for verifier in ("V" * 42, "V" * 44, "V" * 42 + "!", "V" * 42 + "%20", ""):
        yield (
            f"no pass, a verifier that is none: {verifier[40:]!r}",
            ask(headers={"cookie": cookie(verifier, kind="bind")}),
            room_,
        )
    for target in (
        "/",
        "/a?b=c",
        "/caf%C3%A9?row=3&seat=a%26b",
        "/a;b=c",
        "/?next=https://evil.example/",
        "/a?b=c?d=e",
        "/~ann/x.html",
        "/a+b",
        "/a'b(c)*!",
        "/a@b:c",
    ):
        yield f"no pass at {target}", ask(target), room_
    for target in (
        "//evil.example/x",
        "/a//b",
        "/a/../b",
        "/./a",
        "/a%2Fb",
        "/a%5cb",
        "/a%00b",
        "/a%0d%0ax",
        "/a\\b",
        "/a b",
        "/é",
        "*",
        "http://evil.example/",
        "/a#b",
        "/a?b\\c",
        "/" + "a" * 1024,
    ):
        yield f"no pass, and nothing to return to: {target[:30]}", ask(target), room_
    yield "no pass, a long query falls away", ask("/a?" + "b" * 1024), room_
    for accept in ("application/json", "*/*", "text/plain", "", "TEXT/HTML"):
        yield (
            f"no pass, accepts {accept!r}",
            ask(headers={"accept": accept}),
            {"action": "refuse", "code": "pass_required"},
        )
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "get", "TRACE", "CONNECT"):
        yield f"no pass, {method}", ask(method=method), {"action": "refuse", "code": "pass_required"}
    yield "over http", ask(setup="http"), room_
    yield "before another room", ask(setup="borealis"), room_
    yield "the cookie of the other scheme", ask(headers={"cookie": f"frontrow_pass_aurora={signed()}"}), room_
    yield "the cookie in another case", ask(headers={"cookie": f"__host-frontrow-pass-aurora={signed()}"}), room_
    yield "the cookie without its prefix", ask(headers={"cookie": f"frontrow-pass-aurora={signed()}"}), room_
    yield "the cookie of another event", ask(headers={"cookie": f"__Host-frontrow-pass-aurora2={signed()}"}), room_
    yield "the cookie in quotes", ask(headers={"cookie": f'x="; {cookie("")}'}), room_
    yield "a bearer is the shop's own", ask(headers={"authorization": f"Bearer {signed()}"}), room_
    yield (
        "cookies beyond 16 KB are not read",
        ask(headers={"cookie": "a=" + "b" * 16_384 + f"; {cookie(signed())}"}),
        room_,
    )


def forged() -> Iterator[Case]:
    invalid = {"action": "room", "code": "pass_invalid"}
    head, body, signature = signed().split(".")
    text = f"{head}.{body}"
    public = NEW.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    with_secret = b64(hmac.digest(public, f"{part(HEADER | {'alg': 'HS256'})}.{body}".encode(), "sha256"))
    numbers = NEW.private_numbers()
    n, size = numbers.public_numbers.n, 256
    value = int.from_bytes(base64.urlsafe_b64decode(signature + "=="))
    digest = hashlib.sha256(text.encode()).digest()

    def raw(block: bytes) -> str:
        """The signature whose padded block is this one: only who has the key can make it."""
        return f"{text}.{b64(pow(int.from_bytes(block.rjust(size, bytes(1))), numbers.d, n).to_bytes(size))}"

    der = bytes.fromhex("3031300d060960864801650304020105000420") + digest
    short = b"\0\1" + b"\xff" * 8 + b"\0" + der
    forged_texts = {
        "no dots": "nonsense",
        "two parts": text,
        "four parts": f"{text}.{signature}.x",
        "no signature": f"{text}.",
        "no body": f"{head}..{signature}",
        "no header": f".{body}.{signature}",
        "dots only": "..",
        "signed by a stranger": signed(key=STRANGER),
        "signed by another known key": signed(key=OLD),
        "another body": f"{head}.{part(claims(sub='queen'))}.{signature}",
        "another header": f"{part(HEADER | {'kid': OLD_KID})}.{body}.{signature}",
        "a signature cut short": f"{text}.{signature[:-4]}",
        "a signature made longer": f"{text}.{signature}AAAA",
        "a signature of zeros": f"{text}.{b64(bytes(256))}",
        "a signature of ones": f"{text}.{b64(bytes(255) + bytes([1]))}",
        "a signature of 0xff": f"{text}.{b64(bytes([255]) * 256)}",
        "a flipped bit": f"{text}.{b64((value ^ 1).to_bytes(256))}",
        "a signature plus the modulus": f"{text}.{b64((value + n).to_bytes(257))}",
        "a signature with a leading zero": f"{text}.{b64(bytes(1) + value.to_bytes(256))}",
        "SHA-1": f"{text}.{b64(NEW.sign(text.encode(), PKCS1v15(), SHA1()))}",
        "short padding and trailing bytes": raw(short + bytes(size - len(short))),
        "no DigestInfo": raw(b"\0\1" + b"\xff" * (size - 35) + b"\0" + digest),
        "padding of type 2": raw(b"\0\2" + b"\xff" * (size - len(der) - 3) + b"\0" + der),
        "padding with a hole": raw(b"\0\1" + b"\xff" * (size - len(der) - 4) + b"\0\0" + der),
        "unused bits of the last character": f"{text}.{signature[:-1]}{chr(ord(signature[-1]) + 1) if signature[-1] not in 'Zz9-_' else 'B'}",
        "padded base64": f"{text}.{signature}==",
        "plain base64": f"{text}.{base64.b64encode(b'?>' * 128).decode()}",
        "a blank in the middle": f"{text[:20]} {text[20:]}.{signature}",
        "a line break": f"{text}.{signature}\n",
        "a NUL": f"{text}.{signature}\0",
        "alg none": f"{part(HEADER | {'alg': 'none'})}.{body}.",
        "alg None with a signature": signed(header=HEADER | {"alg": "None"}),
        "alg HS256 with the public key": f"{part(HEADER | {'alg': 'HS256'})}.{body}.{with_secret}",
        "alg RS256 said, HMAC meant": f"{text}.{with_secret}",
        "alg rs256": signed(header=HEADER | {"alg": "rs256"}),
        "alg RS512": signed(header=HEADER | {"alg": "RS512"}),
        "alg PS256": signed(header=HEADER | {"alg": "PS256"}),
        "alg EdDSA": signed(header=HEADER | {"alg": "EdDSA"}),
        "alg a list": signed(header=HEADER | {"alg": ["RS256"]}),
        "typ of a proof": signed(header=HEADER | {"typ": "place-proof+jwt"}),
        "typ in small letters": signed(header=HEADER | {"typ": "jwt"}),
        "no typ": signed(header={"alg": "RS256", "kid": KID}),
        "no kid": signed(header={"alg": "RS256", "typ": "JWT"}),
        "a key of one's own": signed(header=HEADER | {"jwk": rs256_keys(STRANGER)[0]}, key=STRANGER),
        "keys from elsewhere": signed(header=HEADER | {"jku": "https://evil.example/jwks.json"}),
        "a certificate": signed(header=HEADER | {"x5u": "https://evil.example/x"}),
        "a critical extension": signed(header=HEADER | {"crit": ["exp"]}),
        "a header that is a list": signed(header=["RS256"]),
        "a header that is a number": signed(header=7),
        "a header that is null": signed(header="null"),
        "a header that is no JSON": signed(header='{"alg":"RS256",'),
        "a body that is a list": signed([1, 2]),
        "a body that is null": signed("null"),
        "a body that is no JSON": signed("{"),
        "a body with text after it": signed(json.dumps(claims()) + "x"),
        "too long": signed(more="x" * 4096),
        "another issuer": signed(iss="frontrow"),
        "no issuer": signed(iss=None),
        "no event": signed(aud=None),
        "a list of events": signed(aud=["aurora"]),
        "no person": signed(sub=None),
        "a person that is a number": signed(sub=7),
        "no shop": signed(shop=None),
        "a shop that is a list": signed(shop=[SHOP]),
        "no end": signed(exp=None),
        "an end that is text": signed(exp=str(NOW_S + 800)),
        "an end that is true": signed(exp=True),
        "an end that is null": signed(json.dumps(claims() | {"exp": None})),
        "no beginning": signed(iat=None),
        "no place": signed(plc=None),
        "a place of two numbers": signed(plc=[0, 1]),
        "a place of four numbers": signed(plc=[0, 1, 7, 0]),
        "a place of texts": signed(plc=["0", "1", "7"]),
        "a place that is text": signed(plc="017"),
        "a place that is an object": signed(plc={"0": 0, "1": 1, "2": 7}),
    }  # fmt: skip
    for name, forgery in forged_texts.items():
        yield f"forged: {name}", shows(forgery), invalid
    yield (
        "forged: in the header a good cookie does not help",
        ask(headers={"frontrow-pass": "x.y.z", "cookie": cookie(signed())}),
        invalid,
    )
    yield "forged: two headers in one", ask(headers={"frontrow-pass": f"{signed()}, {signed()}"}), invalid
    yield (
        "forged: a program is told",
        shows(signed(key=STRANGER), headers={"accept": "*/*"}),
        {"action": "refuse", "code": "pass_invalid"},
    )
    yield (
        "forged: the place of the room is no pass",
        shows(f"{part({'alg': 'HS256', 'typ': 'JWT', 'kid': KID})}.{body}.{with_secret}"),
        invalid,
    )
    yield "forged: a sealed hand-over is no pass", shows(TOKEN), invalid


def keys() -> Iterator[Case]:
    unknown = {"action": "room", "code": "key_unknown"}
    let_in = {"action": "pass", "visit": "aurora.0.1.7"}
    old = signed(header=HEADER | {"kid": OLD_KID}, key=OLD)
    yield "rotation: the old key is known beside the new one", shows(old), let_in
    yield "rotation: the old key, before", shows(old, room="before the rotation"), let_in
    yield "rotation: the new key, before it is known", shows(signed(), room="before the rotation"), unknown
    yield "rotation: the old key, when it is gone", shows(old, room="after the rotation"), unknown
    yield "rotation: no keys yet", shows(signed(), room="empty"), unknown
    yield (
        "rotation: no keys yet, a program",
        shows(signed(), room="empty", headers={"accept": "*/*"}),
        {"action": "refuse", "code": "key_unknown"},
    )
    for kid in ("", "now-serving", KID.lower(), KID + "=", "../" + KID, "__proto__", "constructor", "toString"):
        yield f"a kid that is none: {kid[:12]!r}", shows(signed(header=HEADER | {"kid": kid})), unknown


def foreign() -> Iterator[Case]:
    elsewhere = {"action": "room", "code": "pass_foreign"}
    yield "another event", shows(signed(aud="borealis")), elsewhere
    yield (
        "another event, a program",
        shows(signed(aud="borealis"), headers={"accept": "*/*"}),
        {"action": "refuse", "code": "pass_foreign"},
    )
    for event in ("Aurora", "aurora ", "aurora.0", "aurora2", "", "*", "aurora\n"):
        yield f"an event that is nearly ours: {event!r}", shows(signed(aud=event)), elsewhere
    yield "a shard that there is not", shows(signed(aud="aurora.2"), room="sharded"), elsewhere
    others = (
        "https://other.example",
        "http://shop.example",
        "https://shop.example:8443",
        "https://shop.example/",
        "https://SHOP.example",
        "https://shop.example.evil.example",
        "https://evil.example/https://shop.example",
        "",
        "*",
        "null",
    )
    for shop in others:
        yield f"another shop: {shop}", shows(signed(shop=shop)), elsewhere
    yield "a pass of this shop before another room", shows(signed(), setup="borealis", room="borealis"), elsewhere
    yield (
        "a pass of this shop for another room",
        shows(signed(aud="borealis"), setup="borealis", room="borealis"),
        {"action": "pass"},
    )
    yield (
        "a pass of another room's server",
        shows(signed(aud="borealis"), setup="borealis", room="of somebody else"),
        {"action": "room", "code": "key_unknown"},
    )
    yield "another shop and expired", shows(signed(shop="https://other.example", exp=NOW_S - 1)), elsewhere


def times() -> Iterator[Case]:
    expired, let_in = {"action": "room", "code": "pass_expired"}, {"action": "pass", "renew": False}
    for seconds in (0, -1, -60, -86_400, -NOW_S):
        yield f"expired {-seconds} s ago", shows(signed(exp=NOW_S + seconds)), expired
    yield "the last second", shows(signed(exp=NOW_S + 1)), {"action": "pass", "renew": True}
    for ahead, result in (
        (-1, let_in),
        (0, let_in),
        (1, let_in),
        (59, let_in),
        (60, let_in),
        (61, expired),
        (3_600, expired),
    ):
        yield f"clock skew: issued {ahead} s from now", shows(signed(iat=NOW_S + ahead, exp=NOW_S + 4_000)), result
    yield (
        "expired, a program is told",
        shows(signed(exp=NOW_S), headers={"accept": "*/*"}),
        {"action": "refuse", "code": "pass_expired"},
    )
    for left, due in ((301, False), (300, False), (299, True), (1, True), (900, False)):
        wanted = {"action": "pass", "renew": due}
        yield f"renewal: {left} of 900 s are left", shows(signed(iat=NOW_S - 900 + left, exp=NOW_S + left)), wanted
    due_pass = signed(iat=NOW_S - 800, exp=NOW_S + 100)
    both = f"{cookie(due_pass)}; {cookie('1', kind='kept')}"
    yield "renewal: asked a moment ago", ask(headers={"cookie": both}), let_in
    yield "renewal: a program renews by itself", ask(headers={"frontrow-pass": due_pass}), let_in
    yield "renewal: with POST too", shows(due_pass, method="POST"), {"action": "pass", "renew": True}
    yield "a far end", shows(signed(exp=NOW_S + 4_000_000_000)), let_in
    over = {"action": "room", "code": "pass_ended"}
    yield "ended early", shows(signed(), room="ended"), over
    yield "ended early, renewed before", shows(signed(exp=NOW_S + 5_000), room="ended"), over
    yield (
        "ended early, a program",
        shows(signed(), room="ended", headers={"accept": "*/*"}),
        {"action": "refuse", "code": "pass_ended"},
    )
    yield "another visit ended", shows(signed(plc=[0, 1, 8]), room="ended"), let_in
    yield "visits with similar names ended", shows(signed(), room="others ended"), let_in
    yield "ended in a shard", shows(signed(aud="aurora.1", plc=[0, 1, 9]), room="sharded"), over


def hand_overs() -> Iterator[Case]:
    kept = {"cookie": cookie(VERIFIER, kind="bind")}
    back = {"action": "room", "code": "pass_required", "token": ""}

    def exchange(page: str, token: str = TOKEN, code: str = "pass_required") -> dict[str, Any]:
        return {"action": "exchange", "code": code, "token": token, "verifier": VERIFIER, "page": page}

    yield "a hand-over", ask(f"/seats?frontrow={TOKEN}", headers=kept), exchange("/seats")
    yield "a hand-over after a query", ask(f"/seats?a=b&frontrow={TOKEN}", headers=kept), exchange("/seats?a=b")
    yield "a hand-over at the front", ask(f"/?frontrow={TOKEN}", headers=kept), exchange("/")
    yield "a hand-over to a program", ask(f"/?frontrow={TOKEN}", headers=kept | {"accept": "*/*"}), exchange("/")
    yield "the last of two hand-overs", ask(f"/x?frontrow=old&frontrow={TOKEN}", headers=kept), exchange("/x")
    yield (
        "a hand-over after encoded words",
        ask(f"/caf%C3%A9?a=%26frontrow%3Dx&frontrow={TOKEN}", headers=kept),
        exchange("/caf%C3%A9?a=%26frontrow%3Dx"),
    )
    yield "a copied URL: no verifier", ask(f"/seats?frontrow={TOKEN}"), back
    yield (
        "a copied URL: a verifier that is none",
        ask(f"/seats?frontrow={TOKEN}", headers={"cookie": cookie("short", kind="bind")}),
        back,
    )
    yield (
        "a copied URL, a program",
        ask(f"/seats?frontrow={TOKEN}", headers={"accept": "*/*"}),
        {"action": "refuse", "code": "pass_required"},
    )
    yield "an empty hand-over", ask("/seats?frontrow=", headers=kept), back
    yield "a hand-over with HEAD", ask(f"/seats?frontrow={TOKEN}", "HEAD", headers=kept), back
    yield (
        "a hand-over with POST",
        ask(f"/seats?frontrow={TOKEN}", "POST", headers=kept),
        {"action": "refuse", "code": "pass_required"},
    )
    for target in (
        f"/seats?frontrow={TOKEN}&a=b",
        f"/seats?Frontrow={TOKEN}",
        f"/seats?xfrontrow={TOKEN}",
        f"/seats;frontrow={TOKEN}",
        f"/seats?frontrow={TOKEN}%20",
        f"/seats?frontrow[]={TOKEN}",
        f"/seats?frontrow={TOKEN}.",
    ):
        yield f"no hand-over: {target.replace(TOKEN, 'T')}", ask(target, headers=kept), back
    good = {"action": "strip", "location": "/seats"}
    yield "a hand-over is not needed", shows(signed(), f"/seats?frontrow={TOKEN}"), good
    yield (
        "a hand-over is not needed, after a query",
        shows(signed(), f"/seats?a=b&frontrow={TOKEN}"),
        {"action": "strip", "location": "/seats?a=b"},
    )
    for page in (
        "//evil.example/",
        "/\\evil.example/",
        "\\\\evil.example/",
        "http://evil.example/",
        "https:evil.example",
        "/%0d%0aset-cookie:x",
        "/../x",
        "/a//b",
    ):
        yield (
            f"never to another site: {page}",
            shows(signed(), f"{page}?frontrow={TOKEN}"),
            {"action": "strip", "location": "/"},
        )
        yield (
            f"never to another site after an exchange: {page}",
            ask(f"{page}?frontrow={TOKEN}", headers=kept),
            exchange("/"),
        )
    yield "an empty hand-over is taken away", shows(signed(), "/seats?frontrow="), good
    yield "many hand-overs are taken away at once", shows(signed(), "/seats?frontrow=a&frontrow=b&frontrow=c"), good
    yield (
        "a hand-over stays in a form's address",
        shows(signed(), f"/seats?frontrow={TOKEN}", "POST"),
        {"action": "pass"},
    )
    for code, text, known in (
        ("pass_expired", signed(exp=NOW_S), "usual"),
        ("pass_ended", signed(), "ended"),
        ("pass_invalid", "x", "usual"),
        ("pass_foreign", signed(shop="https://other.example"), "usual"),
    ):
        both = {"cookie": f"{cookie(text)}; {kept['cookie']}"}
        yield (
            f"a hand-over beside a pass: {code}",
            ask(f"/seats?frontrow={TOKEN}", headers=both, room=known),
            exchange("/seats", code=code),
        )
    yield "nothing open takes a hand-over", ask(f"/static/x?frontrow={TOKEN}", headers=kept), {"action": "open"}
    yield (
        "a hand-over to a page that is none",
        ask(f"//evil.example/?frontrow={TOKEN}", headers=kept),
        exchange("/"),
    )


def open_paths() -> Iterator[Case]:
    for target in (
        "/static/",
        "/static/app.css",
        "/static/a/b.js?v=1",
        "/health",
        "/health?x=/..",
        "/static/a+b@c:d,e(f)!~'$&*=.js",
    ):
        yield f"open: {target}", ask(target), {"action": "open"}
    yield "open with POST", ask("/health", "POST"), {"action": "open"}
    yield "open with a forged pass", shows("x", "/health"), {"action": "open"}
    closed = {"action": "room", "code": "pass_required"}
    tricks = (
        "/static",
        "/Static/app.css",
        "/STATIC/",
        "/static/../checkout",
        "/static/./x",
        "/static//x",
        "//static/x",
        "/static/%2e%2e/checkout",
        "/static%2fx",
        "/static/%2e%2e%2fcheckout",
        "/static/..;/checkout",
        "/static/;/x",
        "/static\\..\\checkout",
        "/static/\\x",
        "/static/..",
        "/static/.",
        "/health/",
        "/health/x",
        "/Health",
        "/healthx",
        "/health;x",
        "/health%20",
        "/health%00",
        "/./health",
        "/x/../health",
        "/static/%00",
        "/static/a b",
        "/static/é",
        "/%73tatic/x",
        "static/x",
        "http://shop.example/static/x",
        "/health#x",
        "",
        "?/static/",
        "/static/%2E%2E/x",
        "/static/a%0d%0ab",
    )
    for target in tricks:
        yield f"not open: {target}", ask(target), closed


def endings() -> Iterator[Case]:
    own = {"origin": SHOP, "accept": "*/*"}
    good = signed()
    yield "end a visit", shows(good, "/.frontrow/end", "POST", headers=own), {"action": "end", "given": good}
    yield (
        "end a visit by a browser's word",
        shows(good, "/.frontrow/end", "POST", headers={"sec-fetch-site": "same-origin"}),
        {"action": "end", "given": good},
    )
    yield (
        "end a visit with a query",
        shows(good, "/.frontrow/end?x", "POST", headers=own),
        {"action": "end", "given": good},
    )
    yield "end without a pass", ask("/.frontrow/end", "POST", headers=own), {"action": "end", "given": ""}
    yield (
        "end with a forged pass",
        shows("x.y.z", "/.frontrow/end", "POST", headers=own),
        {"action": "end", "given": ""},
    )
    yield (
        "end what has ended",
        shows(good, "/.frontrow/end", "POST", headers=own, room="ended"),
        {"action": "end", "given": ""},
    )
    cross = {"action": "refuse", "code": "cross_site"}
    for name, headers in (
        ("another site", {"origin": "https://evil.example"}),
        ("a sister site", {"origin": "https://a.shop.example"}),
        ("a frame", {"origin": "null"}),
        ("nobody", {}),
        ("a browser that says so", {"sec-fetch-site": "cross-site"}),
        ("a sister that says so", {"sec-fetch-site": "same-site"}),
        ("a bookmark", {"sec-fetch-site": "none"}),
        ("another scheme", {"origin": "http://shop.example"}),
    ):
        yield f"end, asked by {name}", shows(good, "/.frontrow/end", "POST", headers=headers), cross
    yield "end is a POST", shows(good, "/.frontrow/end"), {"action": "pass"}
    for target in ("/.frontrow/End", "/.frontrow/end/", "/.frontrow//end", "/.frontrow/%65nd"):
        yield f"not the end: {target}", shows(good, target, "POST", headers=own), {"action": "pass"}


GROUPS = (good_passes, no_pass, forged, keys, foreign, times, hand_overs, open_paths, endings)


def decision_of(vector: dict[str, Any]) -> dict[str, Any]:
    """The reference's whole decision: every field that is not empty."""
    setup, known = Setup(**SETUPS[vector["setup"]]), learn(Known(), ROOMS[vector["room"]])
    headers = vector["headers"]
    done = decide(setup, known, vector["method"], vector["target"], headers, vector["now_s"], FRESH)
    found = {name: getattr(done, name) for name in done.__slots__}
    return {name: list(value) if name == "cookies" else value for name, value in found.items() if value}


def vectors() -> list[dict[str, Any]]:
    """All cases with the whole decision. Raises AssertionError where the reference does not agree."""
    made = []
    for group in GROUPS:
        for name, request, wanted in group():
            vector = {"name": f"{group.__name__}: {name}", "setup": "https", "room": "usual", "now_s": NOW_S} | request
            found = decision_of(vector)
            for part_, value in wanted.items():
                empty: Any = False if part_ == "renew" else ""
                assert found.get(part_, empty) == value, (vector["name"], part_, found.get(part_), value)
            made.append(vector | {"expect": found})
    names = [vector["name"] for vector in made]
    assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)
    return made


def text() -> str:
    """The file."""
    about = "Made by `python -m connectors.make_vectors`. docs/connector.md says what each part means."
    whole = {"about": about, "fresh": FRESH, "setups": SETUPS, "rooms": ROOMS, "vectors": vectors()}
    return json.dumps(whole, indent=1, ensure_ascii=True) + "\n"


if __name__ == "__main__":
    (HERE / "vectors.json").write_text(text())
    print(f"{len(vectors())} vectors in {HERE / 'vectors.json'}")
