"""What a password must be: long enough, and not among the first that guessers try."""

import re
import unicodedata
from typing import Final

from frontrow.core.errors import InvalidInput

MIN_PASSWORD_CHARS, MAX_PASSWORD_CHARS = 12, 256
# Words that guessers try first; a password made of one of them and digits is refused whatever its length.
_TOO_EASY: Final = re.compile(r"(pass(word|wort)?|frontrow|qwert[yz]|letmein|welcome|admin|ticket|secret|iloveyou)+\W*")


def normalised_password(text: str) -> str:
    """The one form in which a password is hashed and compared: NFKC, without spaces around it."""
    return unicodedata.normalize("NFKC", text).strip()


def checked_password(text: str, email: str) -> str:
    """The password as it is hashed, or what is wrong with it."""
    password = normalised_password(text)
    if not MIN_PASSWORD_CHARS <= len(password) <= MAX_PASSWORD_CHARS:
        raise InvalidInput(
            f"a password has {MIN_PASSWORD_CHARS} to {MAX_PASSWORD_CHARS} characters; a sentence is fine",
            param="password",
        )
    plain = re.sub(r"[\d_\s]+", "", password.lower())
    local = email.partition("@")[0].lower()
    if len(set(password)) < 5 or _TOO_EASY.fullmatch(plain) or (len(local) > 3 and plain == local):
        raise InvalidInput("this password is among the first that guessers try; choose another", param="password")
    return password
