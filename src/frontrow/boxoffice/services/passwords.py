"""Passwords: argon2id in threads of their own, a few at a time, the rest in a bounded line.

Every attempt costs exactly one verification, also for accounts that do not exist (against a hash nobody knows the
password of), so neither time nor `verifications` tells which addresses have an account.
"""

import asyncio
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from argon2.low_level import Type

from frontrow.boxoffice.services.people_settings import PeopleSettings
from frontrow.core.errors import Overloaded

MAX_WAITING: Final = 100
Answer = TypeVar("Answer")


class Passwords:
    """Hashes and verifies; never blocks the event loop."""

    def __init__(self, settings: PeopleSettings) -> None:
        self._hasher = PasswordHasher(
            time_cost=settings.argon2_time_cost,
            memory_cost=settings.argon2_memory_kib,
            parallelism=settings.argon2_lanes,
            type=Type.ID,
        )
        self._threads = ThreadPoolExecutor(settings.argon2_at_once, thread_name_prefix="passwords")
        self._nobodys = self._hasher.hash(secrets.token_urlsafe(24))
        self._waiting = 0
        self.verifications = 0

    async def hash(self, password: str) -> str:
        return await self._run(lambda: self._hasher.hash(password))

    async def verify(self, password_hash: str | None, password: str) -> bool:
        """Whether the password is this hash's; None (no such account) costs the same and is never right."""
        return await self._run(lambda: self._verify(password_hash or self._nobodys, password)) and bool(password_hash)

    def outdated(self, password_hash: str) -> bool:
        """Whether the hash was made with other settings than today's."""
        return self._hasher.check_needs_rehash(password_hash)

    def _verify(self, password_hash: str, password: str) -> bool:
        self.verifications += 1
        try:
            return self._hasher.verify(password_hash, password)
        except (VerificationError, InvalidHashError):
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
