"""Owners sign in and sign out, invite others, and make keys for programs.

A secret is 256 random bits; only its hash is stored. A session's owner is read on every request, so a role that was
taken away is gone at once. Keys are followed by every server, so a revoked one is refused everywhere within a second.
"""

import contextlib
import hashlib
import secrets
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from frontrow.core.clock import US_PER_S, Clock
from frontrow.core.errors import InvalidInput, NotFound
from frontrow.shared.ids import Ids
from frontrow.waitingroom.console.model.errors import (
    ConsoleConflict,
    OwnerLinkSpent,
    OwnerNeeded,
    RightMissing,
    WrongPassword,
)
from frontrow.waitingroom.console.model.owners import (
    RIGHTS,
    VERSION,
    ConsoleKey,
    OneTimeLink,
    Owner,
    OwnerRole,
    OwnerSession,
    Right,
    Scope,
    checked_email,
    checked_name,
)
from frontrow.waitingroom.console.model.versions import read_document, write_document
from frontrow.waitingroom.console.ports import (
    Attempts,
    ConsoleBook,
    DocumentKind,
    Entry,
    LogLine,
    PasswordHashes,
    Write,
)

HOUR_US: Final = 3_600 * US_PER_S
IDLE_US, WHOLE_US = 2 * HOUR_US, 12 * HOUR_US  # as for organisers
FIRST_LINK_US, INVITATION_US = 24 * HOUR_US, 72 * HOUR_US
TOUCH_EVERY_US: Final = 60 * US_PER_S
SESSION_PREFIX, LINK_PREFIX, KEY_PREFIX = "fcs_", "fcl_", "frk_"
SECRET_CHARS: Final = 47
MOST_OWNERS, MOST_KEYS = 100, 200


def secret_hash(kind: str, secret: str) -> str:
    """The stored hash of a secret. It depends on the kind, so a link never matches a session."""
    return hashlib.sha256(f"frontrow console {kind}:{secret}".encode("utf-8", "surrogatepass")).hexdigest()


def csrf_of(session_secret: str) -> str:
    """The CSRF token of a session: derived one-way from its secret, and valid as long as the session."""
    return secret_hash("csrf", session_secret)[:43]


def _new_secret(prefix: str) -> str:
    return prefix + secrets.token_urlsafe(32)


def _is_secret(text: str, prefix: str) -> bool:
    return len(text) == SECRET_CHARS and text.startswith(prefix) and text.isascii()


class SignedInOwner(msgspec.Struct, frozen=True):
    """Who uses the console in this request."""

    owner: Owner
    secret: str

    @property
    def csrf(self) -> str:
        return csrf_of(self.secret)

    def may(self, right: Right) -> bool:
        return right in RIGHTS[self.owner.role]

    def need(self, right: Right) -> None:
        if not self.may(right):
            raise RightMissing("your role does not include this; ask an owner")


class ConsoleAccess:
    """Accounts, sessions, links and keys."""

    def __init__(
        self, book: ConsoleBook, passwords: PasswordHashes, per_account: Attempts, per_address: Attempts, clock: Clock
    ) -> None:
        self._book, self._passwords, self._clock, self._ids = book, passwords, clock, Ids()
        self._per_account, self._per_address = per_account, per_address
        self._keys: dict[str, ConsoleKey] = {}  # by hash, as last followed

    # -- signing in ----------------------------------------------------------------------------------------------------

    async def sign_in(self, email: str, password: str, address: str) -> SignedInOwner:
        """Start a session. Attempts are counted per account and per address, those that succeed are taken back."""
        account = email.strip().lower()[:254]
        await self._per_address.count_attempt(address)
        await self._per_account.count_attempt(account)
        found = next((one for one in await self.owners() if one.email == account), None)
        if not await self._passwords.matches(found.password_hash if found else None, password) or found is None:
            raise WrongPassword("wrong email address or password")
        await self._per_account.forgive_attempt(account)
        await self._per_address.forgive_attempt(address)
        return await self._start(found)

    async def _start(self, owner: Owner) -> SignedInOwner:
        now_us, secret = self._clock(), _new_secret(SESSION_PREFIX)
        session = OwnerSession(owner.id, now_us, now_us, now_us + WHOLE_US, IDLE_US)
        await self._book.forget_ended(now_us)
        text, line = write_document(session, VERSION), LogLine(now_us, owner.email, "sign_in")
        write = Write(DocumentKind.SESSION, secret_hash("session", secret), text, 0, session.ends_at_us)
        await self._book.write([write], line)
        return SignedInOwner(owner, secret)

    async def find(self, secret: str) -> SignedInOwner | None:
        """Whose live session this is. Updates when it was last used, once per minute."""
        if not _is_secret(secret, SESSION_PREFIX):
            return None
        entry = await self._book.get(DocumentKind.SESSION, secret_hash("session", secret))
        if entry is None:
            return None
        session, now_us = read_document(OwnerSession, entry.text, VERSION), self._clock()
        owner = await self._book.get(DocumentKind.OWNER, session.owner_id) if session.alive(now_us) else None
        if owner is None:
            return None
        if now_us - session.seen_at_us >= TOUCH_EVERY_US:
            text = write_document(msgspec.structs.replace(session, seen_at_us=now_us), VERSION)
            with contextlib.suppress(ConsoleConflict):  # another request has updated it, or signed out
                await self._book.write(
                    [Write(DocumentKind.SESSION, entry.id, text, entry.revision, session.ends_at_us)]
                )
        return SignedInOwner(_owner(owner), secret)

    async def sign_out(self, secret: str) -> None:
        entry = await self._book.get(DocumentKind.SESSION, secret_hash("session", secret))
        if entry is not None:
            try:
                await self._book.write([Write(DocumentKind.SESSION, entry.id, None, entry.revision)])
            except ConsoleConflict:
                await self.sign_out(secret)

    # -- links ---------------------------------------------------------------------------------------------------------

    async def first_link(self) -> str | None:
        """The secret of a new link for the first owner, which replaces older ones; None once there is an owner."""
        if await self._book.all(DocumentKind.OWNER):
            return None
        return await self._make_link(OneTimeLink(OwnerRole.OWNER), FIRST_LINK_US, "console", "first_link")

    async def invite(self, who: SignedInOwner, email: str, role: OwnerRole) -> str:
        """The secret of a link for somebody new."""
        who.need(Right.PEOPLE)
        return await self.link_for(email, role, who.owner.email)

    async def link_for(self, email: str, role: OwnerRole, who: str) -> str:
        """The secret of a link: a new password for the owner of this address, or an account for somebody new."""
        address = checked_email(email)
        owners = await self.owners()
        known = next((one for one in owners if one.email == address), None)
        if known is None and len(owners) >= MOST_OWNERS:
            raise InvalidInput(f"there are at most {MOST_OWNERS} people", param="email")
        link = OneTimeLink(known.role if known else role, address, known.id if known else "")
        return await self._make_link(link, INVITATION_US, who, "invite")

    async def _make_link(self, link: OneTimeLink, life_us: int, who: str, act: str) -> str:
        now_us, secret = self._clock(), _new_secret(LINK_PREFIX)
        lasting = msgspec.structs.replace(link, ends_at_us=now_us + life_us)
        replaced = [
            Write(DocumentKind.LINK, entry.id, None, entry.revision)
            for entry in await self._book.all(DocumentKind.LINK)
            if read_document(OneTimeLink, entry.text, VERSION).email == link.email
        ]
        write = Write(
            DocumentKind.LINK, secret_hash("link", secret), write_document(lasting, VERSION), 0, lasting.ends_at_us
        )
        await self._book.write(
            [*replaced, write], LogLine(now_us, who, act, detail=f"{link.email} {link.role}".strip())
        )
        return secret

    async def use_link(self, secret: str, email: str, name: str, password: str, address: str) -> SignedInOwner:
        """Set a password by a one-time link, and sign in. The link is used up in the same transaction."""
        await self._per_address.count_attempt(address)
        link_entry, link = await self._link(secret.strip().rpartition("#")[2])
        account = link.email or checked_email(email)
        self._passwords.check_new(password, account)
        if link.owner_id:
            return await self._new_password(link_entry, link, password)
        if not link.email and await self._book.all(DocumentKind.OWNER):
            raise OwnerLinkSpent("there is an owner already; they can invite you")
        shown, hashed = checked_name(name), await self._passwords.hash(password)
        owner = Owner(_owner_id(account), account, shown, link.role, hashed, self._clock())
        await self._book.write(
            [
                Write(DocumentKind.LINK, link_entry.id, None, link_entry.revision),
                Write(DocumentKind.OWNER, owner.id, write_document(owner, VERSION), 0),
            ],
            LogLine(self._clock(), account, "join_console", detail=owner.role),
        )
        return await self._start(owner)

    async def _new_password(self, link_entry: Entry, link: OneTimeLink, password: str) -> SignedInOwner:
        """A new password for a known owner; every session of theirs ends."""
        entry = await self._book.get(DocumentKind.OWNER, link.owner_id)
        if entry is None:
            raise OwnerLinkSpent("this link was used, replaced or has expired")
        owner = msgspec.structs.replace(_owner(entry), password_hash=await self._passwords.hash(password))
        await self._book.write(
            [
                Write(DocumentKind.LINK, link_entry.id, None, link_entry.revision),
                Write(DocumentKind.OWNER, owner.id, write_document(owner, VERSION), entry.revision),
                *await self._sessions_of(owner.id),
            ],
            LogLine(self._clock(), owner.email, "new_password"),
        )
        return await self._start(owner)

    async def _link(self, secret: str) -> tuple[Entry, OneTimeLink]:
        entry = (
            await self._book.get(DocumentKind.LINK, secret_hash("link", secret))
            if _is_secret(secret, LINK_PREFIX)
            else None
        )
        link = read_document(OneTimeLink, entry.text, VERSION) if entry else None
        if entry is None or link is None or self._clock() >= link.ends_at_us:
            raise OwnerLinkSpent("this link was used, replaced or has expired")
        return entry, link

    # -- people --------------------------------------------------------------------------------------------------------

    async def owners(self) -> list[Owner]:
        return [_owner(entry) for entry in await self._book.all(DocumentKind.OWNER)]

    async def remove(self, who: SignedInOwner, owner_id: str) -> None:
        """Remove somebody with all their sessions. The last owner stays."""
        who.need(Right.PEOPLE)
        entries = {entry.id: entry for entry in await self._book.all(DocumentKind.OWNER)}
        if owner_id not in entries:
            raise NotFound("there is no such person")
        gone = _owner(entries[owner_id])
        others = [entry for entry in entries.values() if entry.id != owner_id and _owner(entry).role is OwnerRole.OWNER]
        if not others:
            raise InvalidInput("the last owner cannot be removed", param="owner")
        # written as it is, so that two owners who remove each other at once cannot both succeed
        stays = Write(DocumentKind.OWNER, others[0].id, others[0].text, others[0].revision)
        await self._book.write(
            [
                Write(DocumentKind.OWNER, owner_id, None, entries[owner_id].revision),
                stays,
                *await self._sessions_of(owner_id),
            ],
            LogLine(self._clock(), who.owner.email, "remove_person", detail=gone.email),
        )

    async def _sessions_of(self, owner_id: str) -> list[Write]:
        return [
            Write(DocumentKind.SESSION, entry.id, None, entry.revision)
            for entry in await self._book.all(DocumentKind.SESSION)
            if read_document(OwnerSession, entry.text, VERSION).owner_id == owner_id
        ]

    # -- keys ----------------------------------------------------------------------------------------------------------

    async def make_key(
        self, who: SignedInOwner, name: str, scopes: Iterable[Scope], rooms: Sequence[str]
    ) -> tuple[ConsoleKey, str]:
        """A key and its secret, which is shown once."""
        who.need(Right.SET_UP)
        chosen = tuple(scope for scope in Scope if scope in set(scopes))
        if not chosen:
            raise InvalidInput("choose what the key may do", param="scopes")
        if len(await self.keys()) >= MOST_KEYS:
            raise InvalidInput(f"there are at most {MOST_KEYS} keys", param="name")
        secret = _new_secret(KEY_PREFIX)
        key = ConsoleKey(
            self._ids.new("key"),
            checked_name(name),
            secret_hash("key", secret),
            f"{secret[:8]}…",
            chosen,
            tuple(rooms),
            self._clock(),
            who.owner.email,
        )
        line = LogLine(self._clock(), who.owner.email, "make_key", detail=f"{key.name}: {', '.join(chosen)}")
        await self._book.write([Write(DocumentKind.KEY, key.id, write_document(key, VERSION), 0)], line)
        self._keys[key.hash] = key
        return key, secret

    async def revoke_key(self, who: SignedInOwner, key_id: str) -> None:
        """Refuse the key from now on: here at once, on other servers within a second."""
        who.need(Right.SET_UP)
        entry = await self._book.get(DocumentKind.KEY, key_id)
        if entry is None:
            raise NotFound("there is no such key")
        key = read_document(ConsoleKey, entry.text, VERSION)
        if not key.revoked_at_us:
            gone = msgspec.structs.replace(key, revoked_at_us=self._clock())
            line = LogLine(self._clock(), who.owner.email, "revoke_key", detail=key.name)
            await self._book.write(
                [Write(DocumentKind.KEY, key.id, write_document(gone, VERSION), entry.revision)], line
            )
        self._keys.pop(key.hash, None)

    async def keys(self) -> list[ConsoleKey]:
        """All keys, the newest first."""
        found = [read_document(ConsoleKey, entry.text, VERSION) for entry in await self._book.all(DocumentKind.KEY)]
        return sorted(found, key=lambda one: -one.created_at_us)

    async def follow_keys(self) -> None:
        """Read the keys again, after the book has changed."""
        self._keys = {one.hash: one for one in await self.keys() if not one.revoked_at_us}

    def key_of(self, secret: str) -> ConsoleKey | None:
        """The live key of this secret, as last followed."""
        return self._keys.get(secret_hash("key", secret)) if _is_secret(secret, KEY_PREFIX) else None


def _owner_id(email: str) -> str:
    """One account per address, whoever makes it first."""
    return "own_" + hashlib.sha256(f"frontrow owner:{email}".encode()).hexdigest()[:26]


def _owner(entry: Entry) -> Owner:
    return read_document(Owner, entry.text, VERSION)


__all__ = ["ConsoleAccess", "OwnerNeeded", "SignedInOwner", "csrf_of"]
