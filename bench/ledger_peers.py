"""The textbook ways to write the same rows: one transaction for each operation."""

import asyncio
from typing import Any, Protocol, Self

import aiosqlite
import asyncpg
from sqlalchemy import BigInteger, Identity, SmallInteger, Text, select
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from frontrow.boxoffice.adapters.ledger.ledger_url import sqlite_path

NOW_US = 1_700_000_000_000_000
CONNECTIONS = 16
BOOKING = (
    "INSERT INTO bookings (id, event_id, fan, state, seat_count, seats, amount_minor, currency, session, "
    "created_at_us, changed_at_us, hold_expires_at_us) VALUES ({}) RETURNING fence"
)
SEAT = "INSERT INTO booking_seats (booking_id, seat_index, event_id, price_minor, active) VALUES ({})"
FACT = "INSERT INTO outbox (fact, body, event_id, booking_id, at_us) VALUES ({})"
MOVE = (
    "UPDATE bookings SET state = {}, changed_at_us = {} WHERE id = {} AND fence = {} AND state = {} "
    "AND hold_expires_at_us > {} RETURNING id"
)


def dollars(count: int) -> str:
    return ", ".join(f"${n}" for n in range(1, count + 1))


def marks(count: int) -> str:
    return ", ".join("?" * count)


def booking_row(number: int, seats: tuple[int, ...]) -> tuple[Any, ...]:
    booking_id = f"bkg_{number:026d}"
    times = (NOW_US, NOW_US, NOW_US + 600_000_000)
    return (booking_id, "evt_bench", f"fan_{number}", "held", len(seats), str(list(seats)), 9_000, "EUR", "", *times)


def fact_row(kind: str, number: int) -> tuple[Any, ...]:
    body = f'{{"fact":"{kind}","booking_id":"bkg_{number:026d}","event_id":"evt_bench","at_us":{NOW_US}}}'
    return (kind, body, "evt_bench", f"bkg_{number:026d}", NOW_US)


class Peer(Protocol):
    callers: int

    async def hold(self, number: int, seats: tuple[int, ...]) -> int: ...

    async def pay(self, number: int, fence: int) -> None: ...

    async def confirm(self, number: int, fence: int) -> None: ...

    async def aclose(self) -> None: ...


class AsyncpgPeer:
    """asyncpg with a pool, a transaction each."""

    def __init__(self, pool: "asyncpg.Pool[asyncpg.Record]", callers: int) -> None:
        self._pool, self.callers = pool, callers

    @classmethod
    async def open(cls, url: str, callers: int) -> Self:
        return cls(await asyncpg.create_pool(url, min_size=CONNECTIONS, max_size=CONNECTIONS), callers)

    async def hold(self, number: int, seats: tuple[int, ...]) -> int:
        async with self._pool.acquire() as connection, connection.transaction():
            fence = await connection.fetchval(BOOKING.format(dollars(12)), *booking_row(number, seats))
            rows = [(f"bkg_{number:026d}", seat, "evt_bench", 0, 1) for seat in seats]
            await connection.executemany(SEAT.format(dollars(5)), rows)
            await connection.execute(FACT.format(dollars(5)), *fact_row("HoldPlaced", number))
        return int(fence)

    async def _move(self, number: int, fence: int, before: str, after: str) -> None:
        async with self._pool.acquire() as connection, connection.transaction():
            sql = MOVE.format("$1", "$2", "$3", "$4", "$5", "$6")
            args = (after, NOW_US, f"bkg_{number:026d}", fence, before, NOW_US)
            assert await connection.fetchval(sql, *args)
            await connection.execute(FACT.format(dollars(5)), *fact_row(after, number))

    async def pay(self, number: int, fence: int) -> None:
        await self._move(number, fence, "held", "paying")

    async def confirm(self, number: int, fence: int) -> None:
        await self._move(number, fence, "paying", "confirmed")

    async def aclose(self) -> None:
        await self._pool.close()


class Base(DeclarativeBase):
    pass


class BookingRow(Base):
    __tablename__ = "bookings"
    fence: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    id: Mapped[str] = mapped_column(Text)
    event_id: Mapped[str] = mapped_column(Text)
    fan: Mapped[str] = mapped_column(Text)
    state: Mapped[str] = mapped_column(Text)
    seat_count: Mapped[int] = mapped_column(BigInteger)
    seats: Mapped[str] = mapped_column(Text)
    amount_minor: Mapped[int] = mapped_column(BigInteger)
    currency: Mapped[str] = mapped_column(Text)
    session: Mapped[str] = mapped_column(Text)
    created_at_us: Mapped[int] = mapped_column(BigInteger)
    changed_at_us: Mapped[int] = mapped_column(BigInteger)
    hold_expires_at_us: Mapped[int] = mapped_column(BigInteger)


class SeatRow(Base):
    __tablename__ = "booking_seats"
    booking_id: Mapped[str] = mapped_column(Text, primary_key=True)
    seat_index: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    event_id: Mapped[str] = mapped_column(Text)
    price_minor: Mapped[int] = mapped_column(BigInteger)
    active: Mapped[int] = mapped_column(SmallInteger)


class FactRow(Base):
    __tablename__ = "outbox"
    number: Mapped[int] = mapped_column(BigInteger, Identity(), primary_key=True)
    fact: Mapped[str] = mapped_column(Text)
    body: Mapped[str] = mapped_column(Text)
    event_id: Mapped[str] = mapped_column(Text)
    booking_id: Mapped[str] = mapped_column(Text)
    at_us: Mapped[int] = mapped_column(BigInteger)


BOOKING_FIELDS = (
    "id",
    "event_id",
    "fan",
    "state",
    "seat_count",
    "seats",
    "amount_minor",
    "currency",
    "session",
    "created_at_us",
    "changed_at_us",
    "hold_expires_at_us",
)
FACT_FIELDS = ("fact", "body", "event_id", "booking_id", "at_us")


class SqlAlchemyPeer:
    """SQLAlchemy's async ORM over asyncpg, a session and transaction each; a move locks its row first."""

    def __init__(self, url: str, callers: int) -> None:
        self._engine = create_async_engine(
            "postgresql+asyncpg" + url[url.index("://") :], pool_size=CONNECTIONS, max_overflow=0, pool_timeout=600
        )
        self._sessions = async_sessionmaker(self._engine, expire_on_commit=False)
        self.callers = callers

    @classmethod
    async def open(cls, url: str, callers: int) -> Self:
        return cls(url, callers)

    async def hold(self, number: int, seats: tuple[int, ...]) -> int:
        async with self._sessions() as session, session.begin():
            booking = BookingRow(**dict(zip(BOOKING_FIELDS, booking_row(number, seats), strict=True)))
            session.add(booking)
            session.add_all(
                SeatRow(booking_id=booking.id, seat_index=seat, event_id="evt_bench", price_minor=0, active=1)
                for seat in seats
            )
            session.add(FactRow(**dict(zip(FACT_FIELDS, fact_row("HoldPlaced", number), strict=True))))
        return booking.fence

    async def _move(self, number: int, fence: int, before: str, after: str) -> None:
        async with self._sessions() as session, session.begin():
            query = select(BookingRow).where(BookingRow.id == f"bkg_{number:026d}").with_for_update()
            booking = (await session.execute(query)).scalar_one()
            assert (booking.fence, booking.state) == (fence, before)
            assert booking.hold_expires_at_us > NOW_US
            booking.state = after
            session.add(FactRow(**dict(zip(FACT_FIELDS, fact_row(after, number), strict=True))))

    async def pay(self, number: int, fence: int) -> None:
        await self._move(number, fence, "held", "paying")

    async def confirm(self, number: int, fence: int) -> None:
        await self._move(number, fence, "paying", "confirmed")

    async def aclose(self) -> None:
        await self._engine.dispose()


class AiosqlitePeer:
    """aiosqlite, one connection (SQLite has one writer), a transaction each, WAL and FULL."""

    def __init__(self, connection: aiosqlite.Connection, callers: int) -> None:
        self._connection, self.callers = connection, callers
        self._turn = asyncio.Lock()

    @classmethod
    async def open(cls, url: str, callers: int) -> Self:
        connection = await aiosqlite.connect(sqlite_path(url), isolation_level=None)
        for pragma in ("journal_mode = WAL", "synchronous = FULL"):
            await connection.execute(f"PRAGMA {pragma}")
        return cls(connection, callers)

    async def hold(self, number: int, seats: tuple[int, ...]) -> int:
        async with self._turn:
            await self._connection.execute("BEGIN IMMEDIATE")
            cursor = await self._connection.execute(BOOKING.format(marks(12)), booking_row(number, seats))
            row = await cursor.fetchone()
            rows = [(f"bkg_{number:026d}", seat, "evt_bench", 0, 1) for seat in seats]
            await self._connection.executemany(SEAT.format(marks(5)), rows)
            await self._connection.execute(FACT.format(marks(5)), fact_row("HoldPlaced", number))
            await self._connection.commit()
        assert row is not None
        return int(row[0])

    async def _move(self, number: int, fence: int, before: str, after: str) -> None:
        async with self._turn:
            await self._connection.execute("BEGIN IMMEDIATE")
            args = (after, NOW_US, f"bkg_{number:026d}", fence, before, NOW_US)
            cursor = await self._connection.execute(MOVE.format(*"??????"), args)
            assert await cursor.fetchone()
            await self._connection.execute(FACT.format(marks(5)), fact_row(after, number))
            await self._connection.commit()

    async def pay(self, number: int, fence: int) -> None:
        await self._move(number, fence, "held", "paying")

    async def confirm(self, number: int, fence: int) -> None:
        await self._move(number, fence, "paying", "confirmed")

    async def aclose(self) -> None:
        await self._connection.close()
