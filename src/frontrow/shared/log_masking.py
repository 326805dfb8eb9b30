"""Masks what must not be logged: whatever looks like an e-mail address, a card number, a secret token or an IP address.

This is the last safety net: nothing that needs it should be logged in the first place.
"""

import ipaddress
import re
from typing import Final

_TOKENS: Final = re.compile(r"\b(?:fr[a-z]_|eyJ|pm_|pi_|sk_|rk_|whsec_|cs_)[A-Za-z0-9_.=-]{6,}")
_EMAIL: Final = re.compile(r"[^\s\"'<>@\\,;:()]+@[^\s\"'<>@\\,;:()]+\.[A-Za-z]{2,}")
_DIGITS: Final = re.compile(r"(?<![\d.])\d(?:[ -]?\d){12,18}(?![\d.])")
_IPV4: Final = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])")
_IPV6: Final = re.compile(r"(?<![\w:.])[0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7}(?![\w:])")
# One word of letters, digits and underscores: no e-mail and no address. It begins no token and holds no card.
_HARMLESS: Final = re.compile(r"(?!fr[a-z]_|eyJ|pm_|pi_|sk_|rk_|whsec_|cs_)(?!\w*\d{13})\w*", re.ASCII)
_PASSWORD: Final = re.compile(r"(\w+://[^:/@\s\"]*):[^@/\s\"]+@")


def needs_no_mask(text: str) -> bool:
    """Whether `mask_line` would change nothing and JSON would quote it as it is. False may only mean "not sure"."""
    return _HARMLESS.fullmatch(text) is not None


def mask_line(line: str) -> str:
    """The line without personal data and secrets."""
    if "@" in line:  # both begin anywhere, so looking for them takes half the time of a line
        line = _EMAIL.sub("[email]", _PASSWORD.sub(r"\1:…@", line))
    line = _TOKENS.sub("[token]", line)
    line = _DIGITS.sub(_card, line)
    line = _IPV4.sub("[ip]", line)
    return _IPV6.sub(_address, line)


def _card(found: "re.Match[str]") -> str:
    """Removed when the digits are a card number (Luhn check); times in microseconds stay."""
    digits = [int(char) for char in found[0] if char.isdigit()]
    total = sum(digits[-1::-2]) + sum(sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return "[card]" if total % 10 == 0 else found[0]


def _address(found: "re.Match[str]") -> str:
    """Removed when it is an address; a time of day is not."""
    try:
        ipaddress.IPv6Address(found[0])
    except ValueError:
        return found[0]
    return "[ip]"
