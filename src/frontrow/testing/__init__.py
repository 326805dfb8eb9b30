"""What your own tests need: a clock that they move, stores in memory, passes, a payment provider.

The limiter's own part, fixtures for pytest among them, is `frontrow.limits.testing` and comes with `frontrow-limits`.
Each part is a module of its own and needs only the extra of what it replaces:

    frontrow.testing.clock      ManualClock                  nothing
    frontrow.testing.limits     in_memory, MemoryStore       nothing
    frontrow.testing.room       RoomPasses, MemoryRoomStore  frontrow[room]
    frontrow.testing.payments   SimulatedProvider, Fault     frontrow[boxoffice]
"""
