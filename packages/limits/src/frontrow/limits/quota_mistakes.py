"""Says what is wrong with a text that is no quota: which part of it, and what would be right."""

import re
from difflib import get_close_matches
from fractions import Fraction

EXAMPLE = '"100/minute"'
_RATE = re.compile(
    r"\s*(?P<limit>[^\s/]+?)\s*(?:/|\bper\b)\s*(?P<count>\d+(?:\.\d+)?)?\s*(?P<unit>[a-zµμ]+)(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_FRACTION = re.compile(r"\d+\.\d+|\d+(?:\.\d+)?e\d{1,2}", re.IGNORECASE)
_THOUSANDS = re.compile(r"(?:^|[;|\n])\s*(\d{1,3}(?:[, ]\d{3})+)\s*(?:/|per\b)", re.IGNORECASE)
_OTHER_NAMES = {  # what others call our algorithms
    "gcra": "token_bucket",
    "moving_window": "sliding_log",
    "sliding_window": "sliding_counter",
    "sliding_window_counter": "sliding_counter",
    "sliding_window_log": "sliding_log",
    "leaking_bucket": "leaky_bucket",
}


def thousands_mistake(text: str) -> str | None:
    """What to say about `1,000/hour`, in which the comma would separate two quotas. None: it has no such number."""
    found = _THOUSANDS.search(text)
    if found is None:
        return None
    plain = re.sub("[, ]", "", found[1])
    return f"{text!r}: {found[1]!r} has a separator inside; write {plain} or {int(plain):_}"


def quota_mistake(text: object, algorithms: tuple[str, ...]) -> str:
    """One sentence about a text that is no quota."""
    if not isinstance(text, str) or not text.strip():
        return f'{text!r} is no quota; write a number, a slash and a time, like {EXAMPLE} or "5/100ms"'
    rate = _RATE.fullmatch(text)
    if rate is None:
        number = re.match(r"\s*(\d[\d_]*)", text)
        if number is None:
            return f'{text!r} is no quota; write a number, a slash and a time, like {EXAMPLE} or "5/100ms"'
        return f"{text!r} does not say in what time; write a slash and a time, like {number[1]}/minute"
    limit, count, unit, rest = rate["limit"], rate["count"] or "1", rate["unit"], rate["rest"].strip(" ,")
    if _FRACTION.fullmatch(limit) or "." in count:
        if not re.fullmatch(r"\d[\d_]*", limit) and not _FRACTION.fullmatch(limit):
            return f"{text!r}: {limit!r} is no number; write one, like 10/{unit}"
        return _fraction_mistake(text, limit, count, unit)
    if not re.fullmatch(r"-?\d[\d_]*", limit):
        return f"{text!r}: {limit!r} is no number; write one, like 10/{unit}"
    return f"{text!r}: {_rest_mistake(rest, algorithms)}"


def _fraction_mistake(text: str, limit: str, count: str, unit: str) -> str:
    """A rate of whole numbers is as exact: 1.5 per second is 3 per 2 seconds."""
    wrong = limit if _FRACTION.fullmatch(limit) else count
    per_unit = Fraction(limit) / Fraction(count) if Fraction(count) else Fraction(0)
    if not per_unit:
        return f"{text!r}: {wrong!r} is no whole number; write one, like 10/{unit}"
    times = "" if per_unit.denominator == 1 else per_unit.denominator
    right = f"{per_unit.numerator}/{times}{unit}"
    if re.fullmatch(r"\d{1,3}\.\d{3}", limit):
        right += f" ({limit.replace('.', '')}/{unit} for thousands)"
    return f"{text!r}: {wrong!r} is no whole number; write {right}"


def _rest_mistake(rest: str, algorithms: tuple[str, ...]) -> str:
    """What stands behind the rate."""
    burst = re.match(r"burst\b[\s:=]*(.*)", rest, re.IGNORECASE | re.DOTALL)
    if burst is not None and not re.match(r"\d+\b", burst[1]):
        return "burst needs a whole number, like burst 20"
    if burst is not None:
        rest = re.sub(r"^\d+[\s,]*", "", burst[1])
        if rest.lower().startswith("burst"):
            return "it has two bursts; write one, like burst 20"
    if rest.lower().startswith(("per ", "/", "by ")):
        return f"{rest!r} says who is limited, which is the key's part; write the quota alone"
    named = re.sub(r"[\s-]+", "_", rest.lower())
    if named in _OTHER_NAMES:
        return f"{rest!r} is called {_OTHER_NAMES[named]} here; write {_OTHER_NAMES[named]}"
    near = get_close_matches(named, algorithms, 1, 0.5)
    hint = f"write {near[0]}" if near else f"write burst 20 or one of {', '.join(algorithms)}"
    return f"{rest!r} is neither a burst nor an algorithm; {hint}"
