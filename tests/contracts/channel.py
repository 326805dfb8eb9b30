"""The contract of channels: one outcome per message, never an exception, and what each failure means.

Each adapter brings a `ChannelBench`, which knows its receiver. `copies_after_a_lost_answer`: how often a message
arrives whose answer was lost and that was sent again; one where the provider has a way to recognise it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from frontrow.boxoffice.messages.model.messages import Contact, Message, Outcome
from frontrow.boxoffice.messages.ports.channels import Channel
from frontrow.core.errors import Unavailable
from tests.boxoffice.shop import NOW


@dataclass
class ChannelBench:
    """A channel with its receiver. `who` gives the contact of a person who is reached at this number of addresses."""

    channel: Channel
    who: Callable[[int], Contact]
    nobody: Contact  # has no usable address
    arrived: Callable[[], list[str]]  # the texts that arrived, in any order
    away: Callable[[bool], Any]
    busy: Callable[[bool], Any]
    lose_answers: Callable[[int], Any] | None  # None: there is no answer that could get lost
    copies_after_a_lost_answer: int = 1
    notes: bool = False  # whether a killed worker could make it send a second copy (e-mail)


def message(number: int, contact: Contact) -> Message:
    text = f"Ticket {number} for Aurora"
    return Message(f"confirmed-bkg_{number}-{number}", "confirmed", contact, text, text, short=text, since_us=NOW)


class ChannelContract:
    """Inherit this and give the fixture `bench`."""

    async def test_messages_arrive_and_each_has_its_outcome(self, bench: ChannelBench) -> None:
        outcomes = await bench.channel.send([message(n, bench.who(n)) for n in range(3)])
        assert outcomes == [Outcome(True)] * 3
        assert sorted(bench.arrived()) == [f"Ticket {n} for Aurora" for n in range(3)]

    async def test_nothing_is_nothing(self, bench: ChannelBench) -> None:
        assert await bench.channel.send([]) == []

    async def test_a_person_without_an_address_is_final_and_holds_up_nobody(self, bench: ChannelBench) -> None:
        people = [bench.who(0), bench.nobody, bench.who(2)]
        first, middle, last = await bench.channel.send([message(n, one) for n, one in enumerate(people)])
        assert first.sent
        assert last.sent
        assert not middle.sent
        assert middle.final
        assert middle.reason
        assert len(bench.arrived()) == 2

    async def test_a_provider_that_is_away_is_tried_again(self, bench: ChannelBench) -> None:
        bench.away(True)
        (outcome,) = await bench.channel.send([message(0, bench.who(0))])
        assert (outcome.sent, outcome.final) == (False, False)
        assert outcome.reason
        bench.away(False)
        assert (await bench.channel.send([message(0, bench.who(0))]))[0].sent
        assert len(bench.arrived()) == 1

    async def test_a_provider_that_is_busy_is_tried_again(self, bench: ChannelBench) -> None:
        bench.busy(True)
        (outcome,) = await bench.channel.send([message(0, bench.who(0))])
        assert (outcome.sent, outcome.final) == (False, False)
        assert outcome.reason
        bench.busy(False)
        assert (await bench.channel.send([message(0, bench.who(0))]))[0].sent
        assert len(bench.arrived()) == 1

    async def test_a_lost_answer_is_no_success_and_makes_no_more_copies_than_promised(
        self, bench: ChannelBench
    ) -> None:
        if bench.lose_answers is None:
            return
        bench.lose_answers(1)
        (outcome,) = await bench.channel.send([message(0, bench.who(0))])
        assert (outcome.sent, outcome.final) == (False, False)
        (outcome,) = await bench.channel.send([message(0, bench.who(0))])
        assert outcome.sent
        assert len(bench.arrived()) == bench.copies_after_a_lost_answer

    async def test_an_equal_text_of_another_time_is_another_message(self, bench: ChannelBench) -> None:
        assert (await bench.channel.send([message(0, bench.who(0))]))[0].sent
        other = message(1, bench.who(1))
        assert (await bench.channel.send([other]))[0].sent
        assert len(bench.arrived()) == 2

    async def test_nothing_more_is_sent_while_the_outcome_cannot_be_noted(self, bench: ChannelBench) -> None:
        if not bench.notes:
            return

        async def note(place: int, outcome: Outcome) -> None:
            raise Unavailable("the ledger is away")

        outcomes = await bench.channel.send([message(n, bench.who(n)) for n in range(3)], note)
        assert [one.sent for one in outcomes] == [True, False, False]
        assert [one.tried for one in outcomes] == [True, False, False]
        assert len(bench.arrived()) == 1


async def caught(contract: type[ChannelContract], bench: Callable[[], Any]) -> list[str]:
    """The tests of the contract that this bench fails: for canaries."""
    failed = []
    for name in [one for one in dir(contract) if one.startswith("test_")]:
        async with bench() as made:
            try:
                await getattr(contract(), name)(made)
            except (AssertionError, OSError, pytest.fail.Exception):
                failed.append(name)
    return failed
