"""Passwords: argon2id in threads of their own, a few at a time, the rest in a bounded line.

A password is normalised (`people.normalised_password`) when it is set and when it is checked, so that every keyboard
and every page means the same by it. Hashes from before were made of other forms: those are tried too, and whoever
signs in with one gets a new hash. How many forms there are depends on what was typed alone. Accounts that do not exist
cost as much (against a hash nobody knows the password of), so neither time nor `verifications` tells which addresses
have an account.
"""

import asyncio
import functools
import secrets
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import Final, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.low_level import Type

from frontrow.boxoffice.model.people import normalised_password
from frontrow.boxoffice.people.people_settings import PeopleSettings
from frontrow.core.errors import Overloaded

MAX_WAITING: Final = 100
Answer = TypeVar("Answer")


def _hasher(time_cost: int, memory_kib: int, lanes: int) -> PasswordHasher:
    return PasswordHasher(time_cost=time_cost, memory_cost=memory_kib, parallelism=lanes, type=Type.ID)


@functools.cache
def _hash_of_nobody(time_cost: int, memory_kib: int, lanes: int) -> str:
    """A hash of these costs whose password nobody knows; one in each process is enough."""
    return _hasher(time_cost, memory_kib, lanes).hash(secrets.token_urlsafe(24))


class Verified(Enum):
    """What a check of a password said. AS_BEFORE: right, but its hash is of an older form; make a new one."""

    WRONG = 0
    AS_NOW = 1
    AS_BEFORE = 2


class Passwords:
    """Hashes and verifies; never blocks the event loop."""

    def __init__(self, settings: PeopleSettings) -> None:
        self._threads = ThreadPoolExecutor(settings.argon2_at_once, thread_name_prefix="passwords")
        costs = settings.argon2_time_cost, settings.argon2_memory_kib, settings.argon2_lanes
        self._hasher = _hasher(*costs)
        self._nobodys = _hash_of_nobody(*costs)
        self._waiting = 0
        self.verifications = 0

    async def hash(self, password: str) -> str:
        """The hash of a password in its normalised form."""
        return await self._run(lambda: self._hasher.hash(normalised_password(password)))

    async def verify(self, password_hash: str | None, password: str) -> Verified:
        """Whether the password is this hash's; None (no such account) costs the same and is never right."""
        for number, form in enumerate(_forms(password)):
            right = await self._run(lambda form=form: self._verify(password_hash or self._nobodys, form))  # type: ignore[misc]
            if right and password_hash:
                return Verified.AS_NOW if number == 0 else Verified.AS_BEFORE
        return Verified.WRONG

    def outdated(self, password_hash: str) -> bool:
        """Whether the hash was made with other settings than today's."""
        return self._hasher.check_needs_rehash(password_hash)

    def _verify(self, password_hash: str, password: str) -> bool:
        self.verifications += 1
        try:
            return self._hasher.verify(password_hash, password)
        except (VerificationError, InvalidHashError, UnicodeEncodeError):
            return False

    async def _run(self, act: Callable[[], Answer]) -> Answer:
        if self._waiting >= MAX_WAITING:
            raise Overloaded("too many people sign in at this moment", retry_after_s=2.0)
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, act)
        finally:
            self._waiting -= 1

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _forms(typed: str) -> list[str]:
    """How a typed password may have been hashed, today's form first; nearly always there is only one."""
    older = (unicodedata.normalize("NFKC", typed), unicodedata.normalize("NFKC", typed.strip()), typed, typed.strip())
    return list(dict.fromkeys((normalised_password(typed), *older)))
