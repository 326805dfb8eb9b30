"""The versions of a rule book in Redis: a hash by version, and the number of the newest. See `rule_versions`."""

import json
from importlib.resources import files
from typing import Any

from frontrow.core.redis_scripts import RedisScript
from frontrow.limits.stores.rule_versions import MAX_VERSIONS, RuleVersion, conflict

SCRIPT = files("frontrow.limits.stores").joinpath("lua/rule_versions.lua").read_text("utf-8")


class RedisRuleVersions:
    """The book `name` in Redis or Valkey. `source` is a URL or redis-py clients: see `RedisScript`."""

    def __init__(self, source: Any, name: str, *, prefix: str, timeout_s: float) -> None:
        base = f"{prefix}:rules:{{{name}}}"
        self._keys = [base, f"{base}:newest"]
        self._script = RedisScript(source, SCRIPT, timeout_s=timeout_s)

    def newest(self, known: tuple[int, int] = (0, 0)) -> RuleVersion | None:
        found = self._run("newest", known[0], known[1])
        return _version(found[0]) if found else None

    def get(self, version: int) -> RuleVersion | None:
        found = self._run("get", version)
        return _version(found[0]) if found else None

    def history(self, most: int = MAX_VERSIONS) -> list[RuleVersion]:
        return [_version(packed) for packed in self._run("history", most)]

    def put(self, text: str, by: str, note: str, seen: int) -> RuleVersion:
        packed = json.dumps({"text": text, "by": by, "note": note})
        newest, *stored = self._run("put", seen, packed, MAX_VERSIONS)
        if not stored:
            raise conflict(seen, int(newest))
        return _version(stored[0])

    def _run(self, *words: str | int) -> list[bytes]:
        reply: list[bytes] = self._script.run(self._keys, words)
        return reply

    def close(self) -> None:
        self._script.close()


def _version(packed: bytes) -> RuleVersion:
    number, at_us, rest = packed.split(b" ", 2)
    fields = json.loads(rest)
    return RuleVersion(int(number), str(fields["text"]), str(fields["by"]), int(at_us), str(fields["note"]))
