"""Evaluates PromQL and alert rules as Prometheus does, for the part of the language that deploy/alerts uses.

promtool is in no package registry. The cases of tests/deploy/alert_cases.yml have promtool's own form, so where it is
installed `promtool test rules tests/deploy/alert_cases.yml` says the same. Expressions are read by promql-parser;
whatever is not supported here raises, so a new rule cannot pass unevaluated.
"""

import bisect
import itertools
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import promql_parser as pq

LOOK_BACK_S = 300.0
NAME = "__name__"
Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
Point = tuple[float, float]  # second, value


class Unsupported(Exception):
    """An expression uses something that this evaluator does not know."""


@dataclass
class Series:
    """Samples by labels, each list in the order of time."""

    points: dict[Labels, list[Point]] = field(default_factory=dict)

    def add(self, labels: Labels, at_s: float, value: float) -> None:
        self.points.setdefault(labels, []).append((at_s, value))

    def select(self, selector: Any, at_s: float) -> Vector:
        """The newest sample of each matching series, if it is not too old."""
        at_s -= selector.offset.total_seconds() if selector.offset else 0.0
        found = {labels: between(points, at_s - LOOK_BACK_S, at_s) for labels, points in self._matching(selector)}
        return {labels: points[-1][1] for labels, points in found.items() if points}

    def window(self, selector: Any, at_s: float) -> tuple[float, float, dict[Labels, list[Point]]]:
        """The beginning and the end of a range, and the samples in it."""
        inner = selector.vector_selector
        end_s = at_s - (inner.offset.total_seconds() if inner.offset else 0.0)
        begin_s = end_s - selector.range.total_seconds()
        return begin_s, end_s, {labels: between(points, begin_s, end_s) for labels, points in self._matching(inner)}

    def _matching(self, selector: Any) -> Iterable[tuple[Labels, list[Point]]]:
        if selector.matchers.or_matchers or selector.at is not None:
            raise Unsupported(str(selector))
        for labels, points in self.points.items():
            named = dict(labels)
            if (not selector.name or named[NAME] == selector.name) and all(
                _matches(one, named.get(one.name, "")) for one in selector.matchers.matchers
            ):
                yield labels, points


def between(points: list[Point], begin_s: float, end_s: float) -> list[Point]:
    first = bisect.bisect_left(points, (begin_s, -math.inf))
    return points[first : bisect.bisect_right(points, (end_s, math.inf))]


def _matches(matcher: Any, value: str) -> bool:
    kind = str(matcher.op).rpartition(".")[2]
    if kind in ("Equal", "NotEqual"):
        return (value == matcher.value) is (kind == "Equal")
    return bool(re.fullmatch(matcher.value, value)) is (kind == "Re")


def evaluate(expression: Any, series: Series, at_s: float) -> Vector | float:
    """The value of a parsed expression at a moment."""
    match type(expression).__name__:
        case "NumberLiteral":
            return float(expression.val)
        case "ParenExpr":
            return evaluate(expression.expr, series, at_s)
        case "VectorSelector":
            return series.select(expression, at_s)
        case "Call":
            return _call(expression, series, at_s)
        case "AggregateExpr":
            return _aggregate(expression, series, at_s)
        case "BinaryExpr":
            return _binary(expression, series, at_s)
    raise Unsupported(type(expression).__name__)


def _call(call: Any, series: Series, at_s: float) -> Vector:
    name = call.func.name
    if name in ("rate", "increase", "delta"):
        begin_s, end_s, ranges = series.window(call.args[0], at_s)
        found = {
            _unnamed(labels): _extrapolated(points, begin_s, end_s, counter=name != "delta", per_s=name == "rate")
            for labels, points in ranges.items()
        }
        return {labels: value for labels, value in found.items() if value is not None}
    if name == "absent":
        return {} if _vector(call.args[0], series, at_s) else {frozenset(): 1.0}
    if name == "clamp_min":
        least = _scalar(call.args[1], series, at_s)
        vector = _vector(call.args[0], series, at_s)
        return {_unnamed(labels): max(value, least) for labels, value in vector.items()}
    if name == "histogram_quantile":
        return _quantile(_scalar(call.args[0], series, at_s), _vector(call.args[1], series, at_s))
    raise Unsupported(name)


def _extrapolated(points: list[Point], begin_s: float, end_s: float, *, counter: bool, per_s: bool) -> float | None:
    """As Prometheus: what was seen, extended to the ends of the range if the samples come close to them."""
    if len(points) < 2:
        return None
    (first_s, first), (last_s, last) = points[0], points[-1]
    risen = last - first
    if counter:  # a value that falls is a restart
        risen += sum(before for (_, before), (_, now) in itertools.pairwise(points) if now < before)
    seen_s = last_s - first_s
    to_begin_s, to_end_s, step_s = first_s - begin_s, end_s - last_s, seen_s / (len(points) - 1)
    if counter and risen > 0 and first >= 0:  # a counter is not below zero
        to_begin_s = min(to_begin_s, seen_s * first / risen)
    whole_s = seen_s
    for gap_s in (to_begin_s, to_end_s):
        whole_s += gap_s if gap_s < step_s * 1.1 else step_s / 2
    return risen * whole_s / seen_s / ((end_s - begin_s) if per_s else 1.0)


def _quantile(wanted: float, buckets: Vector) -> Vector:
    groups: dict[Labels, list[Point]] = {}
    for labels, count in buckets.items():
        bound = float(dict(labels)["le"].replace("+Inf", "inf"))
        groups.setdefault(_without(labels, {NAME, "le"}), []).append((bound, count))
    found: Vector = {}
    for labels, some in groups.items():
        ordered = sorted(some)
        total = ordered[-1][1]
        if not total:
            found[labels] = math.nan
            continue
        below_bound, below_count = 0.0, 0.0
        for bound, count in ordered:
            if count >= wanted * total:
                share = (wanted * total - below_count) / (count - below_count)
                found[labels] = below_bound if bound == math.inf else below_bound + (bound - below_bound) * share
                break
            below_bound, below_count = bound, count
    return found


_TOGETHER: dict[str, Callable[[list[float]], float]] = {
    "sum": sum,
    "max": max,
    "min": min,
    "count": lambda values: float(len(values)),
}


def _aggregate(expression: Any, series: Series, at_s: float) -> Vector:
    name = str(expression.op)
    if name not in _TOGETHER or expression.param is not None:
        raise Unsupported(name)
    keep: set[str] = set()
    if expression.modifier is not None:
        if str(expression.modifier.type).rpartition(".")[2] != "By":
            raise Unsupported("without")
        keep = set(expression.modifier.labels)
    groups: dict[Labels, list[float]] = {}
    for labels, value in _vector(expression.expr, series, at_s).items():
        groups.setdefault(frozenset(pair for pair in labels if pair[0] in keep), []).append(value)
    return {labels: _TOGETHER[name](values) for labels, values in groups.items()}


_ARITHMETIC: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b if b else (math.nan if not a else math.copysign(math.inf, a)),
}
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


def _binary(expression: Any, series: Series, at_s: float) -> Vector | float:
    name, modifier = str(expression.op), expression.modifier
    if modifier is not None and (modifier.matching is not None or modifier.return_bool):
        raise Unsupported(f"{name} on, ignoring, bool")
    left, right = evaluate(expression.lhs, series, at_s), evaluate(expression.rhs, series, at_s)
    if name in ("and", "or", "unless"):
        if isinstance(left, float) or isinstance(right, float):
            raise Unsupported(f"{name} of numbers")
        both = {_unnamed(labels) for labels in right}
        if name == "or":
            own = {_unnamed(labels) for labels in left}
            return left | {labels: value for labels, value in right.items() if _unnamed(labels) not in own}
        return {labels: value for labels, value in left.items() if (_unnamed(labels) in both) is (name == "and")}
    if name in _ARITHMETIC:
        if isinstance(left, float) and isinstance(right, float):
            return _ARITHMETIC[name](left, right)
        return {_unnamed(labels): _ARITHMETIC[name](a, b) for labels, a, b in _pairs(left, right)}
    if name in _COMPARISONS:
        if isinstance(left, float):
            raise Unsupported("a number on the left of a comparison")
        return {labels: a for labels, a, b in _pairs(left, right) if _COMPARISONS[name](a, b)}
    raise Unsupported(name)


def _pairs(left: Vector | float, right: Vector | float) -> Iterable[tuple[Labels, float, float]]:
    if isinstance(right, float):
        assert not isinstance(left, float)
        yield from ((labels, value, right) for labels, value in left.items())
    elif isinstance(left, float):
        yield from ((labels, left, value) for labels, value in right.items())
    else:
        others = {_unnamed(labels): value for labels, value in right.items()}
        yield from ((labels, a, others[_unnamed(labels)]) for labels, a in left.items() if _unnamed(labels) in others)


def _vector(expression: Any, series: Series, at_s: float) -> Vector:
    found = evaluate(expression, series, at_s)
    if isinstance(found, float):
        raise Unsupported("a number where a vector is wanted")
    return found


def _scalar(expression: Any, series: Series, at_s: float) -> float:
    found = evaluate(expression, series, at_s)
    if not isinstance(found, float):
        raise Unsupported("a vector where a number is wanted")
    return found


def _unnamed(labels: Labels) -> Labels:
    return _without(labels, {NAME})


def _without(labels: Labels, names: set[str]) -> Labels:
    return frozenset(pair for pair in labels if pair[0] not in names)


# Alert rules and their cases


def seconds(text: str) -> float:
    """A duration such as `1h30m`."""
    units = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
    return float(sum(int(count) * units[unit] for count, unit in re.findall(r"(\d+)([smhd])", text)))


def labels_of(text: str) -> Labels:
    """`name{label="value"}` or `{label="value"}`."""
    name, _, rest = text.partition("{")
    pairs = re.findall(r'(\w+)="([^"]*)"', rest)
    return frozenset([*pairs, *([(NAME, name.strip())] if name.strip() else [])])


def values_of(text: str) -> list[float | None]:
    """promtool's notation: `1 2 3`, `0+10x5` (0 10 … 50), `7x3` (7 four times), `_` for nothing."""
    found: list[float | None] = []
    for word in text.split():
        if word.startswith("_"):
            found += [None] * int(word.removeprefix("_").removeprefix("x") or 1)
            continue
        parts = re.fullmatch(r"(-?[\d.]+)(?:([+-][\d.]+))?(?:x(\d+))?", word)
        assert parts is not None, word
        first, step, times = float(parts[1]), float(parts[2] or 0), int(parts[3] or 0)
        found += [first + step * number for number in range(times + 1)]
    return found


def firing(rules: list[dict[str, Any]], case: dict[str, Any], until_s: float, every_s: float) -> list[dict[str, str]]:
    """The labels of the alerts that fire at `until_s`, if the rules are evaluated `every_s`."""
    series, step_s = Series(), seconds(case["interval"])
    for given in case["input_series"]:
        for number, value in enumerate(values_of(given["values"])):
            if value is not None:
                series.add(labels_of(given["series"]), number * step_s, value)
    parsed = [(rule, pq.parse(rule["expr"])) for rule in rules]
    waits = {rule["alert"]: seconds(rule.get("for", "0s")) for rule in rules}
    since: dict[tuple[str, Labels], float] = {}
    now_s = max(0.0, until_s - (max(waits.values()) // every_s + 1) * every_s)  # earlier rounds decide nothing
    while now_s <= until_s:
        active = {
            (rule["alert"], _unnamed(labels))
            for rule, expression in parsed
            for labels in _vector(expression, series, now_s)
        }
        since = {key: since.get(key, now_s) for key in active}
        now_s += every_s
    at_s = now_s - every_s
    severities = {rule["alert"]: rule["labels"]["severity"] for rule in rules}
    return [
        {"alertname": name, "severity": severities[name], **dict(labels)}
        for (name, labels), began_s in since.items()
        if at_s - began_s >= waits[name]
    ]
