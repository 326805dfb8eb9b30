"""E-mail addresses in the one form in which they are kept and compared.

Two addresses are the same when their canonical forms are: Unicode in NFC, the domain in lower case, and the letters A
to Z of the local part in lower case too (the standard lets a server tell `Ada@` from `ada@`; none in use does). Other
letters of the local part stay as they are: folding them would make one of `straße@` and `strasse@`, two mailboxes.
Mail is sent to the canonical form, so what a link proves is exactly what is compared.
"""

import re
import unicodedata
from typing import Final

from frontrow.core.errors import InvalidInput

MAX_EMAIL_CHARS: Final = 254
_WORD: Final = r"([A-Za-z0-9!#$%&'*+/=?^_`{|}~-]|[^\x00-\x7F])+"
_LABEL: Final = r"([A-Za-z0-9-]|[^\x00-\x7F])+"
EMAIL_PATTERN: Final = rf"^{_WORD}(\.{_WORD})*@{_LABEL}(\.{_LABEL})*$"
_EMAIL: Final = re.compile(EMAIL_PATTERN)
_LOWER: Final = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def canonical_email(text: str) -> str:
    """The form in which an address is kept and compared. Does not check that it is an address."""
    local, at, domain = unicodedata.normalize("NFC", text.strip()).rpartition("@")
    return local.translate(_LOWER) + at + unicodedata.normalize("NFC", domain.lower())


def is_email(text: str) -> bool:
    """Whether somebody on the open internet can be reached at this: its domain has a dot."""
    try:
        return "." in checked_email(text).rpartition("@")[2]
    except InvalidInput:
        return False


def checked_email(text: str) -> str:
    """The canonical form of an address, or `InvalidInput`."""
    email = canonical_email(text)
    local = email.rpartition("@")[0]
    if len(email) > MAX_EMAIL_CHARS or len(local) > 64 or not email.isprintable() or not _EMAIL.fullmatch(email):
        raise InvalidInput("this is not an e-mail address; one is like ada@example.org", param="email")
    return email
