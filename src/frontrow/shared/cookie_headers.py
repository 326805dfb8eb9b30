"""Names and header lines of our cookies.

Over https a cookie is `Secure` and its name begins with `__Host-`. A browser accepts such a cookie only from this exact
host and only over https, so no sister site and no page on plain http can plant one. The plain name is not read there,
because anybody could have planted it. On plain http (a laptop, a test) the name has no prefix.
"""

from collections.abc import Sequence

MAX_COOKIE_CHARS = 16_384


def cookie_names(kind: str, event: str = "") -> tuple[str, str]:
    """The names of a cookie: the one for https first, then the one for plain http."""
    if event:
        return f"__Host-frontrow-{kind}-{event}", f"frontrow_{kind}_{event}"
    return f"__Host-frontrow-{kind}", f"frontrow_{kind}"


def names_to_read(names: tuple[str, str], *, secure: bool) -> tuple[str, ...]:
    """The names to trust: over https only the one that nobody else can plant."""
    return names[:1] if secure else names


def is_https(public_url: str) -> bool:
    """Whether people reach this address by https."""
    return public_url.lower().startswith("https://")


def cookie_line(names: tuple[str, str], value: str, life_s: int, *, secure: bool) -> str:
    """The value of a `Set-Cookie` header. Scripts cannot read the cookie. A life of 0 seconds removes it."""
    name, ending = (names[0], "; Secure") if secure else (names[1], "")
    return f"{name}={value}; Path=/; Max-Age={life_s}; HttpOnly; SameSite=Lax{ending}"


def read_cookies(header: str, names: Sequence[str]) -> list[str]:
    """The values of the named cookies in a `Cookie` header, in the order of `names`, without empty ones."""
    wanted = dict.fromkeys(names, "")
    for part in header[:MAX_COOKIE_CHARS].split(";"):
        name, _, value = part.partition("=")
        name = name.strip()
        if name in wanted and not wanted[name]:
            wanted[name] = value.strip().strip('"')
    return [value for value in wanted.values() if value]


def read_cookie(header: str, names: Sequence[str]) -> str:
    """The value of the first named cookie that is present, else an empty string."""
    return next(iter(read_cookies(header, names)), "")
