"""What a connector answers instead of the shop: status, headers and body of a decision."""

import json

from frontrow.waitingroom.protect.connector import Decision

AWAY = (
    '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="2"><title>One moment</title>'
    "<p>The waiting room does not answer. This page tries again by itself."
)
DETAILS = {
    "pass_required": "this shop lets people in through its waiting room",
    "pass_invalid": "this pass was not issued by the waiting room of this shop",
    "key_unknown": "this pass was signed with a key that the waiting room does not publish",
    "pass_foreign": "this pass is for another event or another shop",
    "pass_expired": "this pass has run out",
    "pass_ended": "this visit has ended",
    "cross_site": "only a page of this shop may end a visit",
}
Answer = tuple[int, list[tuple[str, str]], bytes]


def answer_of(done: Decision, room: str) -> Answer | None:
    """Status, headers and body; None if the shop answers."""
    headers = [("Cache-Control", "no-store"), ("Referrer-Policy", "no-referrer")]
    headers += [("Set-Cookie", line) for line in done.cookies]
    match done.action:
        case "pass" | "open":
            return None
        case "strip" | "room":
            return 303, [*headers, ("Location", done.location), ("Content-Length", "0")], b""
        case "end":
            return 204, headers, b""
        case "away":
            body = AWAY.encode()
            return 503, [*headers, ("Retry-After", "2"), ("Content-Type", "text/html"), _length(body)], body
    status = 403 if done.code in ("cross_site", "pass_foreign") else 401
    problem = {
        "type": f"urn:frontrow:{done.code}",
        "title": done.code.replace("_", " ").capitalize(),
        "status": status,
        "detail": DETAILS[done.code],
        "code": done.code,
        "room": f"{room}/",
    }
    body = json.dumps(problem).encode()
    return status, [*headers, ("Content-Type", "application/problem+json"), _length(body)], body


def _length(body: bytes) -> tuple[str, str]:
    return "Content-Length", str(len(body))
