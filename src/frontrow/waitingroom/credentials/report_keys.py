"""Keys of the reporters of a shop's health, and the signature of their reports.

A reporter's key is derived from the room's master secret, its event and its name. Whoever has it can report under this
name only, and can neither see nor change the room. The shop's side needs only `sign_report`.
"""

import hashlib
import hmac
import re

from frontrow.core.errors import InvalidInput, Unauthorised

SIGNATURE_HEADER = "frontrow-report"
PREFIX = "v1="
REPORTER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def check_reporter(name: str) -> str:
    """`name` if it can name a reporter."""
    if not REPORTER_NAME.fullmatch(name):
        raise InvalidInput(
            "a reporter is named by 1 to 64 letters, digits, dots, dashes or underscores", param="reporter"
        )
    return name


def report_key(master_secret: bytes, event: str, reporter: str) -> str:
    """The key of one reporter of one room, as text."""
    about = b"frontrow shop report\n" + event.encode() + b"\n" + check_reporter(reporter).encode()
    return hmac.digest(master_secret, about, "sha256").hex()


def sign_report(key: str, body: bytes) -> str:
    """The value of the header `Frontrow-Report` for this body."""
    return PREFIX + hmac.new(key.encode(), body, hashlib.sha256).hexdigest()


def check_signature(key: str, body: bytes, given: str) -> None:
    """Raises Unauthorised unless the body was signed with this key."""
    if not hmac.compare_digest(sign_report(key, body).encode(), given.encode("utf-8", "surrogatepass")):
        raise Unauthorised("the report is not signed with this reporter's key for this room")
