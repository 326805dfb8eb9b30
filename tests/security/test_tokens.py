"""Forged, foreign, old and mixed-up tokens shown to the API: passes, places, sessions, keys, booking tokens."""

import base64
import hashlib
import hmac
import json

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from frontrow.boxoffice.people.model.people import secret_hash
from frontrow.boxoffice.people.model.roles import Role
from frontrow.waitingroom.credentials import passes
from tests.boxoffice.people.support import member
from tests.security.world import EVENT_ID, World, bearer, pass_for

pytestmark = pytest.mark.asyncio(loop_scope="session")
HOLDS, WISH = f"/v1/events/{EVENT_ID}/holds", {"seats": ["no such seat"]}
STATUS = f"/v1/events/{EVENT_ID}/room/status"


def parts(token: str) -> tuple[dict, dict]:
    claims = token.split(".")[1]
    return jwt.get_unverified_header(token), json.loads(base64.urlsafe_b64decode(claims + "=="))


def b64(value: object) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


async def refused(world: World, token: str) -> None:
    reply = await world.client.ask("POST", HOLDS, bearer(token), WISH)
    assert reply.status == 401, (reply.status, reply.body)
    for header in ("frontrow-pass", "cookie"):
        value = f"__Host-frontrow-pass={token}" if header == "cookie" else token
        assert (await world.client.ask("POST", HOLDS, [(header, value)], WISH)).status == 401


async def test_the_genuine_pass_gets_past_the_check(world: World):
    """The control of this file: with the real one the same request is refused for its seat only."""
    reply = await world.client.ask("POST", HOLDS, bearer(world.pass_jwt), WISH)
    assert reply.status in (404, 409, 422), reply.body


@pytest.mark.parametrize("alg", ["none", "None", "NONE", "nOnE", ""])
async def test_alg_none(world: World, alg: str):
    head, claims = parts(world.pass_jwt)
    for signature in ("", world.pass_jwt.rpartition(".")[2]):
        await refused(world, f"{b64(head | {'alg': alg})}.{b64(claims)}.{signature}")


async def test_key_confusion(world: World):
    """The public key, which everybody can read at /.well-known/jwks.json, used as an HMAC secret."""
    head, claims = parts(world.pass_jwt)
    key = jwt.PyJWK(world.platform.room.service.jwks()["keys"][0], algorithm="RS256").key
    pem = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    for secret in (pem, pem.strip(), key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)):
        signed = f"{b64(head | {'alg': 'HS256'})}.{b64(claims)}"
        mac = hmac.new(secret, signed.encode(), hashlib.sha256).digest()
        await refused(world, f"{signed}.{b64(mac)}")


async def test_kid_jku_and_jwk_injection(world: World):
    """A key of the attacker's own, offered in every place a header can name one."""
    _, claims = parts(world.pass_jwt)
    own = passes.PassSigner([passes.new_key()])
    jwk = own.jwks()["keys"][0]
    genuine = jwt.get_unverified_header(world.pass_jwt)["kid"]
    headers: list[dict] = [
        {"kid": kid} for kid in (jwk["kid"], genuine, "../../../dev/null", "x' OR '1'='1", "", "\x00", "a" * 2_000)
    ]
    headers += [{"kid": genuine, "jku": "https://evil.example/jwks"}, {"kid": genuine, "jwk": jwk}]
    headers += [{"kid": genuine, "x5u": "https://evil.example/x"}, {"kid": genuine, "x5c": ["MII"]}]
    for header in headers:
        await refused(world, jwt.encode(claims, own._keys[0][1], algorithm="RS256", headers=header))


async def test_crit_and_wrong_typ_even_when_signed_by_us(world: World):
    """Headers we never write are refused although the signature is right: nothing is negotiated."""
    _, claims = parts(world.pass_jwt)
    kid, key = world.platform.room.service.passes._keys[0]
    for extra in ({"crit": ["exp"]}, {"crit": ["b64"], "b64": False}, {"typ": "at+jwt"}, {"jku": "https://x.example"}):
        await refused(world, jwt.encode(claims, key, algorithm="RS256", headers={"kid": kid, **extra}))


async def test_wrong_audience_issuer_and_time(world: World):
    _, claims = parts(world.pass_jwt)
    kid, key = world.platform.room.service.passes._keys[0]
    now_s = world.platform.clock() // 1_000_000
    wrong = [{"aud": "evt_other"}, {"aud": [EVENT_ID]}, {"iss": "somebody"}, {"exp": now_s}, {"exp": now_s - 1}]
    wrong += [{"sub": 7}, {"plc": None}, {"jti": None}]
    for change in wrong:
        body = {name: value for name, value in (claims | change).items() if value is not None}
        token = jwt.encode(body, key, algorithm="RS256", headers={"kid": kid})
        reply = await world.client.ask("POST", HOLDS, bearer(token), WISH)
        assert reply.status in (401, 403), (change, reply.status)


async def test_a_changed_pass_and_a_place_as_a_pass_and_back(world: World):
    head, claims, signature = world.pass_jwt.split(".")
    body = json.loads(base64.urlsafe_b64decode(claims + "=="))
    await refused(world, f"{head}.{b64(body | {'sub': 'fan_somebody'})}.{signature}")
    await refused(world, f"{head}.{claims}.{signature[:-2]}AA")
    await refused(world, f"{head}.{claims}")
    joined = await world.client.ask("POST", f"/v1/events/{EVENT_ID}/room/join")
    place = joined.json()["place"]
    assert (await world.client.ask("GET", STATUS, bearer(place))).status == 200
    await refused(world, place)
    for text in (
        world.pass_jwt,
        place + "x",
        place[:-1] + ("A" if place[-1] != "A" else "B"),
        place.replace(".", ".."),
    ):
        assert (await world.client.ask("GET", STATUS, bearer(text))).status == 401
    head, claims, _ = place.split(".")
    for forged in (b64({"alg": "none", "typ": "JWT"}), head):
        assert (await world.client.ask("GET", STATUS, bearer(f"{forged}.{claims}."))).status == 401


async def test_keys_rotate_and_old_passes_end_with_their_key(world: World):
    first, second, third = (passes.new_key() for _ in range(3))
    signer = passes.PassSigner([first])
    old = signer.mint(passes.Pass("e", "p", passes.PlaceKey(0, 1, 1), 0, 100, 0))
    assert signer.verify(old, "e", 1).person == "p"
    assert passes.PassSigner([second, first]).verify(old, "e", 1).person == "p", "the last key stays good"
    with pytest.raises(passes.PassInvalid):
        passes.PassSigner([third, second]).verify(old, "e", 1)


async def test_a_session_is_not_made_of_what_the_ledger_or_another_proof_knows(world: World):
    """Hashes, ids, keys as sessions and sessions as keys, with every prefix: none of it signs anybody in."""
    owner = world.people["owner of hall"]
    session = await world.platform.people.sessions.find(owner.session)
    key = world.keys["key with everything"]
    tries = [
        secret_hash("session", owner.session),
        f"frs_{secret_hash('session', owner.session)[:43]}",
        session.id,
        owner.id,
        owner.session[:-1],
        owner.session + "x",
        owner.session.upper(),
        "frs_" + key[4:],
        "frk_" + owner.session[4:],
        world.booking_token,
        "frs_",
        "frs_" + "A" * 43,
        "frs_" + "%" * 43,
        owner.session.replace("frs_", "frs_ "),
    ]
    for text in tries:
        reply = await world.client.ask("GET", "/v1/organiser/team", bearer(text))
        assert reply.status == 401, (text, reply.status)
        reply = await world.client.ask("GET", "/v1/organiser/team", [("cookie", f"__Host-frontrow-session={text}")])
        assert reply.status == 401, text
    assert (await world.client.ask("GET", "/v1/organiser/team", bearer(owner.session))).status == 200


async def test_a_revoked_session_is_not_replayed(world: World):
    extra = await member(world.platform, Role.DOOR, "org_replay")
    assert (await world.client.ask("GET", "/v1/auth/sessions", bearer(extra.session))).status == 200
    assert (await world.client.ask("DELETE", "/v1/auth/session", bearer(extra.session))).status == 204
    assert (await world.client.ask("GET", "/v1/auth/sessions", bearer(extra.session))).status == 401
    assert (await world.client.ask("DELETE", "/v1/auth/session", bearer(extra.session))).status == 401


async def test_booking_tokens_are_of_one_booking_and_of_one_secret_key(world: World):
    from frontrow.shared.derived_keys import Secrets
    from frontrow.web.http.access import booking_token

    path = f"/v1/bookings/{world.booking}"
    good = world.booking_token
    forged = [
        good[:-1] + ("A" if good[-1] != "A" else "B"),
        good.partition(".")[0],
        good.partition(".")[0] + ".",
        booking_token(Secrets(b"another secret key of 32 bytes.."), world.booking),
        booking_token(world.platform.secrets, "bkg_01JCQ3W2N4X7Z8Y9A0B1C2D3E4"),
        good.lower(),
        good + "=",
        f"{good}é",
    ]
    for text in forged:
        for headers in ([("frontrow-booking", text)], bearer(text)):
            assert (await world.client.ask("GET", path, headers)).status == 404, text
    assert (await world.client.ask("GET", path, [("frontrow-booking", good)])).status == 200


async def test_a_pass_cannot_be_had_in_somebody_elses_name(world: World):
    """Joining names nobody but the session's own fan; so no pass opens another fan's bookings."""
    victim = world.people["fan"].id
    reply = await world.client.ask("POST", f"/v1/events/{EVENT_ID}/room/join", (), {"person": victim})
    assert (reply.status, reply.json().get("param")) == (422, "person")
    stolen = pass_for(world.platform, EVENT_ID, "place:1", position=9)
    assert (await world.client.ask("GET", f"/v1/bookings/{world.booking}", bearer(stolen))).status == 404
