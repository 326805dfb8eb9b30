"""The limit scripts: their source, what a batch of requests sends to them, and what their reply means.

A script is put together from the files in `lua`: the arithmetic, the algorithms it needs, and what it does with them.
One check under one rule, the most common request, has a small script per algorithm. Everything else goes to
`decide.lua`, which knows all algorithms and takes many requests at once. Before the algorithm, a small script tries the
case that nearly every check is (`lua/fast`), so that it need not define functions.

A state says what it is. Its key names the rule, the algorithm and the period (`frl|api|counter:60s|user:42`), so states
that cannot be read as each other never meet. What is left of the quota (limit, capacity, weight of a unit) stands in
the state, and a script that reads the state under another quota converts it: `algorithms.carry_over` says how.
"""

import struct
from collections.abc import Sequence
from functools import cache
from hashlib import blake2b, sha1
from importlib.resources import files
from typing import Any, NamedTuple

import hiredis

from frontrow.limits.keys import StoreKey
from frontrow.limits.quota import Decision
from frontrow.limits.stores.protocol import (
    CHECK,
    RESERVE,
    QuotaSlot,
    ReserveResult,
    StoreRequest,
    StoreResult,
    check_prefix,
)
from frontrow.limits.stores.state_names import SPARE_US, key_start, state_of, stored_key

GIVING_BACK = "-- [giving back]"  # what follows in an algorithm's file is not needed to check
HASH_TAGS = 64  # hash tags on a Cluster: few enough to share calls, enough to spread over the nodes
MANY_SLOTS = 8  # of more slots, a call sends only those that its requests use
STATES = ("fixed_window", "sliding_log", "sliding_counter", "bucket", "calendar_month")  # each is a file in `lua`
REPLY = struct.Struct("<7q")  # per request: allowed, rule, remaining, reset, retry, delay, shadow bit mask
ALLOWED = struct.Struct("<2q")  # the short reply to one check that is allowed without delay: remaining, reset
TIME = struct.Struct("<q")
_new: Any = tuple.__new__  # builds a named tuple at half the cost of calling its class


class Script(NamedTuple):
    """A script's source, and the digest by which the server knows it."""

    source: str
    sha: str


class ScriptCall(NamedTuple):
    """One call: the script, and what follows its name in EVALSHA or EVAL."""

    script: Script
    arguments: list[Any]


class LimitScript:
    """Writes requests over `slots` as script calls and reads the replies."""

    def __init__(self, slots: Sequence[QuotaSlot], prefix: str, *, cluster: bool) -> None:
        check_prefix(prefix)
        self._cluster = cluster
        self._key_starts = [key_start(prefix, slot) for slot in slots]
        self._names_and_limits = [(slot.rule.name, slot.quota.capacity) for slot in slots]
        self._packed_slots = [_pack_slot(slot) for slot in slots]
        self._check_scripts = [_check_script(state_of(slot.quota)) for slot in slots]
        self._frames = [_frame(*each) for each in zip(self._check_scripts, self._packed_slots, strict=True)]
        self._spec = (
            "".join(str(STATES.index(state_of(slot.quota)) + 1) for slot in slots),
            b"".join(self._packed_slots),
        )

    def call(self, requests: Sequence[StoreRequest]) -> ScriptCall:
        """The call that decides `requests`. On a Cluster they share a hash tag."""
        first = requests[0]
        if len(requests) == 1 and len(first.slots) == 1 and first.op == CHECK:
            [slot], [key] = first.slots, self._keys(first)
            arguments = [1, key, self._packed_slots[slot]]
            if first.now_us is not None:
                arguments += (first.cost, first.now_us)
            elif first.cost != 1:
                arguments.append(first.cost)
            return ScriptCall(self._check_scripts[slot], arguments)
        keys = [key for request in requests for key in self._keys(request)]
        leading = tuple(range(len(first.slots)))
        if all(request.slots == leading and _is_plain(request) for request in requests):
            return ScriptCall(decide_script(), [len(keys), *keys, *self._spec, len(leading), b""])
        spec = self._spec
        if len(self._packed_slots) > MANY_SLOTS:
            requests, spec = self._narrow(requests)
        numbers = [number for request in requests for number in _request_numbers(request)]
        packed = struct.pack(f"<{len(numbers)}d", *numbers)
        return ScriptCall(decide_script(), [len(keys), *keys, *spec, 0, packed])

    def _narrow(self, requests: Sequence[StoreRequest]) -> tuple[Sequence[StoreRequest], tuple[str, bytes]]:
        """The requests and the slots that they use, numbered anew. The script reads every slot that it is sent."""
        used = sorted({slot for request in requests for slot in request.slots})
        place = {slot: at for at, slot in enumerate(used)}
        algorithms = self._spec[0]
        spec = "".join(algorithms[slot] for slot in used), b"".join(self._packed_slots[slot] for slot in used)
        return [each._replace(slots=tuple([place[slot] for slot in each.slots])) for each in requests], spec

    def frame_check(self, requests: Sequence[StoreRequest]) -> bytes | None:
        """The call as it goes over the wire, if it is the most common: one unit of one rule, by the server's clock."""
        slots, keys, cost, now_us, op, _ = requests[0]
        if len(requests) > 1 or len(slots) > 1 or cost != 1 or now_us is not None or op != CHECK or self._cluster:
            return None
        key = (self._key_starts[slots[0]] + stored_key(keys[0])).encode()
        before, after = self._frames[slots[0]]
        return b"%b%d\r\n%b%b" % (before, len(key), key, after)

    def _keys(self, request: StoreRequest) -> list[str]:
        tag = "{" + hash_tag(request.tag) + "}" if self._cluster else ""
        starts = self._key_starts
        return [tag + starts[slot] + stored_key(key) for slot, key in zip(request.slots, request.keys, strict=True)]

    def read_reply(self, requests: Sequence[StoreRequest], reply: bytes) -> list[Any]:
        """The results of `requests`, in their order: a `StoreResult`, or a `ReserveResult` for a RESERVE."""
        names_and_limits = self._names_and_limits
        if len(reply) == ALLOWED.size:
            name, capacity = names_and_limits[requests[0].slots[0]]
            remaining, reset = ALLOWED.unpack(reply)
            return [_new(StoreResult, (_new(Decision, (True, name, capacity, remaining, reset, 0, 0, "store")), ()))]
        results: list[Any] = []
        fields = REPLY.iter_unpack(reply[: len(requests) * REPLY.size])  # the server's time may follow
        for request, (allowed, rule, remaining, reset, retry, delay, mask) in zip(requests, fields, strict=True):
            name, capacity = names_and_limits[request.slots[rule - 1]]
            decision = _new(Decision, (allowed == 1, name, capacity, remaining, reset, retry, delay, "store"))
            shadowed = tuple(at for at in range(len(request.slots)) if mask >> at & 1) if mask else ()
            result = _new(StoreResult, (decision, shadowed))
            results.append(result if request.op != RESERVE else ReserveResult(result, TIME.unpack(reply[-8:])[0]))
        return results


def _frame(script: Script, packed_slot: bytes) -> tuple[bytes, bytes]:
    """What comes before the length of the key in a call of `script`, and what comes after the key."""
    words: Any = ("EVALSHA", script.sha, 1, "", packed_slot)
    framed: bytes = hiredis.pack_command(words)
    before, empty_key, after = framed.partition(b"$0\r\n")
    return before + empty_key[:1], after


def _is_plain(request: StoreRequest) -> bool:
    """Whether this is a check of one unit by the server's clock."""
    return request.cost == 1 and request.now_us is None and request.op == CHECK


def _request_numbers(request: StoreRequest) -> tuple[int, ...]:
    now_us = -1 if request.now_us is None else request.now_us
    return (request.op, request.cost, now_us, len(request.slots), *[slot + 1 for slot in request.slots])


def _pack_slot(slot: QuotaSlot) -> bytes:
    """A slot as the `slot` function of its algorithm's file reads it. All have the same size."""
    quota = slot.quota
    ttl_ms = -(-(quota.life_us + SPARE_US) // 1000)
    if quota.is_bucket:
        numbers = (quota.capacity, quota.life_us, *quota.drip, int(quota.algorithm == "leaky_queue"))
    else:
        numbers = (quota.limit, quota.period_us, quota.grain_us, 0, 0)
    return struct.pack("<7d", ttl_ms, int(slot.rule.shadow), *numbers)


# -- scripts ---------------------------------------------------------------------------------------------------------


@cache
def decide_script() -> Script:
    """The script that decides a batch of any requests."""
    members = ("slot", "read", "judge", "write", "refund", "charge", "take_back", "header")
    table = f"return {{ {', '.join(f'{name} = {name}' for name in members)} }}"
    algorithms = [f"(function()\nlocal header, charge\n{_lua(state)}{table}\nend)()" for state in STATES]
    known = f"local algorithms = {{\n{', '.join(algorithms)}\n}}\n"
    return _script(_lua("division"), _lua("arithmetic"), known, _lua("decide"))


@cache
def _check_script(state: str) -> Script:
    """The script that decides one check of one rule whose state is of this kind."""
    algorithm = _lua(state).partition(GIVING_BACK)[0]
    before = map(_lua, ("check_time", "division", f"fast/{state}", "arithmetic"))
    return _script(*before, algorithm, _lua("check_one"))


def _lua(name: str) -> str:
    return files("frontrow.limits.stores").joinpath(f"lua/{name}.lua").read_text("utf-8")


def _script(*parts: str) -> Script:
    """A script from its parts, without comments: the server keeps and replicates the source."""
    lines = (line.split("--")[0].rstrip() for part in parts for line in part.splitlines())
    source = "\n".join(line for line in lines if line) + "\n"
    return Script(source, sha1(source.encode(), usedforsecurity=False).hexdigest())


# -- keys ------------------------------------------------------------------------------------------------------------


def hash_tag(key: StoreKey) -> str:
    """The hash tag of keys that are decided in one step on a Cluster."""
    raw = key if isinstance(key, bytes) else key.encode("utf-8", "surrogatepass")
    return str(int.from_bytes(blake2b(raw, digest_size=2).digest(), "big") % HASH_TAGS)
