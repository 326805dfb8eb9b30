"""Shortens the style and script of the waiting-room page, once per process.

The page is rendered per visitor and sent as one answer of at most 14 KB: what fits into the first round trip of a
connection. It is not compressed, because that would have to be done again per visitor. Without these steps the page has
16.6 KB; with spaces removed but names kept, 15.5 KB. So names are shortened too.
"""

import re
import string

# Names of the page's script that mean nothing outside of it: not of properties, not used in template strings.
OWN_NAMES = (
    "seconds",
    "refresh",
    "become",
    "listen",
    "messageNo",
    "source",
    "saidAt",
    "stopped",
    "turned",
    "busy",
    "fails",
    "timer",
    "enter",
    "draw",
    "state",
    "vault",
    "bytes",
    "mode",
    "show",
    "poll",
    "tick",
    "turn",
    "uuid",
    "post",
    "prove",
    "proof",
    "bind",
    "skew",
    "from",
    "doc",
    "said",
    "WHY",
    "SLOW",
    "number",
    "lane",
    "ahead",
    "base",
    "wait",
    "put",
    "ask",
    "why",
    "key",
    "pair",
    "LOST",
    "seen",
    "ping",
    "head",
    "text",
    "path",
    "part",
    "kind",
)
# Shorter ways to write the same, outside of quotes.
SHORTER = (
    (r" *([{}()=,;:<>+*/&|?!]) *", r"\1"),
    (r" - ?", "-"),
    (r"(?<!\w)\((\w+)\)=>", r"\1=>"),
    (r";\n?}", "}"),
    (r"\bconst\b", "let"),
    (r"([=!])==", r"\1="),  # only values of the same type are compared, as the type checker sees
    (r"\btrue\b", "!0"),
    (r"\bfalse\b", "!1"),
)


def strip_lines(text: str) -> str:
    """The text without indentation, empty lines and comment lines."""
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("// "))


def minify_style(text: str, more: str = "") -> str:
    """The style with its own properties (`--brand`, …) called `--A`, `--B`, …

    With `more`, that style instead, which goes after it, with the same names.
    """
    style = strip_lines(text)
    names = sorted(set(re.findall(r"--[a-z][a-z0-9-]*", style)), key=len, reverse=True)
    style = more or style
    for number, name in enumerate(names):
        style = re.sub(rf"{name}(?![a-z0-9-])", f"--{chr(65 + number)}", style)
    return style


def minify_script(text: str) -> str:
    """The script without spaces around signs and with short names; texts in quotes stay as they are."""
    parts = re.split(r"""("(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`)""", strip_lines(text))
    for pattern, short in SHORTER:
        parts[::2] = [re.sub(pattern, short, part) for part in parts[::2]]
    for short, name in zip(string.ascii_letters, OWN_NAMES, strict=False):
        own = re.compile(rf"(?<![.\w$]){name}(?![\w:])")
        parts[::2] = [own.sub(f"_{short}", part) for part in parts[::2]]
    return re.sub(r"([;{},])\n", r"\1", "".join(parts))
