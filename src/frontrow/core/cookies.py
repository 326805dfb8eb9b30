"""The names and header lines of the cookies that browsers keep for us.

Where people come by https, a cookie is `Secure` and its name begins with `__Host-`. A browser takes such a cookie only
from this very host and only over https, so no sister site and no page on plain http can plant one. There the plain name
is not read: anybody could have planted it. On plain http (a laptop, a test) the name has no prefix.
"""

from collections.abc import Sequence

MAX_COOKIE_CHARS = 16_384


def cookie_names(kind: str, event: str = "") -> tuple[str, str]:
    """The names of a cookie: for https first, then for plain http."""
    if event:
        return f"__Host-frontrow-{kind}-{event}", f"frontrow_{kind}_{event}"
    return f"__Host-frontrow-{kind}", f"frontrow_{kind}"


def names_to_read(names: tuple[str, str], *, secure: bool) -> tuple[str, ...]:
    """The names that may be believed: over https only the one that nobody else can plant."""
    return names[:1] if secure else names


def is_https(public_url: str) -> bool:
    """Whether people reach this address by https."""
    return public_url.lower().startswith("https://")


def cookie_line(names: tuple[str, str], value: str, life_s: int, *, secure: bool) -> str:
    """What follows `Set-Cookie:`; scripts cannot read the cookie. A life of 0 seconds removes it."""
    name, ending = (names[0], "; Secure") if secure else (names[1], "")
    return f"{name}={value}; Path=/; Max-Age={life_s}; HttpOnly; SameSite=Lax{ending}"


def read_cookies(header: str, names: Sequence[str]) -> list[str]:
    """The values of the named cookies in a `Cookie` header, in the order of `names`; empty ones are left out."""
    wanted = dict.fromkeys(names, "")
    for part in header[:MAX_COOKIE_CHARS].split(";"):
        name, _, value = part.partition("=")
        name = name.strip()
        if name in wanted and not wanted[name]:
            wanted[name] = value.strip().strip('"')
    return [value for value in wanted.values() if value]


def read_cookie(header: str, names: Sequence[str]) -> str:
    """The value of the first of the named cookies that is there, else nothing."""
    return next(iter(read_cookies(header, names)), "")
