"""Passwords: argon2id in separate threads, a few at a time, the rest in a bounded line.

A password is normalised (`password_rules.normalised_password`) when it is set and when it is checked, so that it is the
same on every keyboard and every page. Older hashes were made from other forms. Those are tried too, and a member who
signs in with one gets a new hash. The number of forms depends only on what was typed. Accounts that do not exist cost
as much (they are checked against a hash of an unknown password), so neither time nor `verifications` shows which
addresses have an account.
"""

import asyncio
import secrets
import unicodedata
from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import Final, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.low_level import ARGON2_VERSION, Type

from frontrow.boxoffice.people.model.password_rules import normalised_password
from frontrow.boxoffice.people.people_settings import PeopleSettings
from frontrow.core.errors import Overloaded

MAX_WAITING: Final = 100
Result = TypeVar("Result")


def unknown_password_hash(hasher: PasswordHasher) -> str:
    """A hash as `hasher` makes them, of a password that nobody knows: random bytes, so that no start waits for it."""
    costs = f"m={hasher.memory_cost},t={hasher.time_cost},p={hasher.parallelism}"
    salt, digest = (_base64(secrets.token_bytes(size)) for size in (hasher.salt_len, hasher.hash_len))
    return f"$argon2id$v={ARGON2_VERSION}${costs}${salt}${digest}"


def _base64(data: bytes) -> str:
    return b64encode(data).decode().rstrip("=")


class PasswordCheck(Enum):
    """The result of checking a password. OLD_FORM: right, but the hash was made from an older form; make a new one."""

    WRONG = 0
    CURRENT = 1
    OLD_FORM = 2


class Passwords:
    """Hashes and verifies passwords without blocking the event loop."""

    def __init__(self, settings: PeopleSettings) -> None:
        self._threads = ThreadPoolExecutor(settings.argon2_at_once, thread_name_prefix="passwords")
        self._hasher = PasswordHasher(
            time_cost=settings.argon2_time_cost,
            memory_cost=settings.argon2_memory_kib,
            parallelism=settings.argon2_lanes,
            type=Type.ID,
        )
        self._unknown_hash = unknown_password_hash(self._hasher)
        self._waiting = 0
        self.verifications = 0

    async def hash(self, password: str) -> str:
        """The hash of a password in its normalised form."""
        return await self._run(lambda: self._hasher.hash(normalised_password(password)))

    async def verify(self, password_hash: str | None, password: str) -> PasswordCheck:
        """Check the password against the hash. `None` (no such account) costs the same and is never right."""
        for number, form in enumerate(_forms(password)):
            right = await self._run(lambda form=form: self._verify(password_hash or self._unknown_hash, form))  # type: ignore[misc]
            if right and password_hash:
                return PasswordCheck.CURRENT if number == 0 else PasswordCheck.OLD_FORM
        return PasswordCheck.WRONG

    def needs_rehash(self, password_hash: str) -> bool:
        """Whether the hash was made with other settings than the current ones."""
        return self._hasher.check_needs_rehash(password_hash)

    def _verify(self, password_hash: str, password: str) -> bool:
        self.verifications += 1
        try:
            return self._hasher.verify(password_hash, password)
        except (VerificationError, InvalidHashError, UnicodeEncodeError):
            return False

    async def _run(self, act: Callable[[], Result]) -> Result:
        if self._waiting >= MAX_WAITING:
            raise Overloaded("too many people are signing in right now", retry_after_s=2.0)
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, act)
        finally:
            self._waiting -= 1

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _forms(typed: str) -> list[str]:
    """The forms in which a typed password may have been hashed, the current one first. Usually there is only one."""
    older = (unicodedata.normalize("NFKC", typed), unicodedata.normalize("NFKC", typed.strip()), typed, typed.strip())
    return list(dict.fromkeys((normalised_password(typed), *older)))
