"""Many askers, few calls: each gets its own answer, error or cancellation, and an idle one adds no wait."""

import asyncio
from collections.abc import Sequence

import pytest

from frontrow.core.errors import Overloaded
from frontrow.shared.coalescer import Coalescer
from tests.support.eventually import eventually


class Echo:
    """Answers the doubled question once the gate is open, and remembers the batches."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, asks: Sequence[int]) -> list[int | BaseException]:
        self.batches.append(list(asks))
        await self.gate.wait()
        if 1313 in asks:
            raise ConnectionError("batch lost")
        return [ValueError(ask) if ask < 0 else ask * 2 for ask in asks]


async def test_an_idle_coalescer_sends_the_first_question_at_once_and_alone() -> None:
    echo = Echo()
    coalescer: Coalescer[int, int] = Coalescer(echo)
    assert await coalescer.ask(4) == 8
    assert echo.batches == [[4]]


async def test_a_question_right_after_an_answer_is_sent_too() -> None:
    """The flight that just landed must not be counted as still in the air."""
    coalescer: Coalescer[int, int] = Coalescer(Echo())
    for number in range(100):
        assert await asyncio.wait_for(coalescer.ask(number), 60) == number * 2
    assert coalescer.calls == 100


async def test_what_arrives_during_a_call_travels_together_in_the_next() -> None:
    echo = Echo()
    echo.gate.clear()
    coalescer: Coalescer[int, int] = Coalescer(echo)
    tasks = [asyncio.create_task(coalescer.ask(number)) for number in range(100)]
    first = asyncio.create_task(coalescer.ask(1000))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    late = [asyncio.create_task(coalescer.ask(number)) for number in range(100, 150)]
    await asyncio.sleep(0)
    echo.gate.set()
    assert await asyncio.gather(*tasks, first, *late) == [2 * n for n in [*range(100), 1000, *range(100, 150)]]
    assert coalescer.calls == len(echo.batches) == 2


async def test_one_callers_cancellation_reaches_nobody_else() -> None:
    echo = Echo()
    echo.gate.clear()
    coalescer: Coalescer[int, int] = Coalescer(echo, max_batch=2)
    tasks = [asyncio.create_task(coalescer.ask(number)) for number in range(60)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    for task in tasks[::3]:  # some in flight, some in line
        task.cancel()
    echo.gate.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    for number, answer in enumerate(answers):
        assert isinstance(answer, asyncio.CancelledError) if number % 3 == 0 else answer == number * 2
    assert all(ask % 3 or ask < 2 for batch in echo.batches for ask in batch), "the cancelled in line were not sent"


async def test_a_failed_batch_fails_exactly_its_own_callers() -> None:
    coalescer: Coalescer[int, int] = Coalescer(Echo(), max_batch=5)
    asks = [1313 if number == 13 else number for number in range(50)]
    answers = await asyncio.gather(*map(coalescer.ask, asks), return_exceptions=True)
    for number, answer in enumerate(answers):
        assert isinstance(answer, ConnectionError) if 10 <= number < 15 else answer == number * 2


async def test_an_error_in_one_answer_is_raised_to_its_caller_only() -> None:
    coalescer: Coalescer[int, int] = Coalescer(Echo())
    answers = await asyncio.gather(coalescer.ask(1), coalescer.ask(-7), coalescer.ask(3), return_exceptions=True)
    assert answers[0::2] == [2, 6]
    assert isinstance(answers[1], ValueError)


async def test_the_line_is_bounded_and_one_more_is_refused_at_once() -> None:
    echo = Echo()
    echo.gate.clear()
    coalescer: Coalescer[int, int] = Coalescer(echo, max_batch=1, max_waiting=3)
    futures = [coalescer.submit(number) for number in range(3)]
    with pytest.raises(Overloaded, match="3 requests are already waiting"):
        coalescer.submit(99)
    echo.gate.set()
    assert await asyncio.gather(*futures) == [0, 2, 4]


async def test_a_wrong_number_of_answers_is_an_error_not_a_mix_up() -> None:
    async def short(asks: Sequence[int]) -> list[int]:
        return [0]

    coalescer: Coalescer[int, int] = Coalescer(short)
    answers = await asyncio.gather(*(coalescer.ask(n) for n in range(3)), return_exceptions=True)
    assert all(isinstance(answer, RuntimeError) for answer in answers)


async def test_calls_in_flight_never_exceed_their_bound() -> None:
    flying = most = 0

    async def send(asks: Sequence[int]) -> list[int]:
        nonlocal flying, most
        flying += 1
        most = max(most, flying)
        await asyncio.sleep(0)
        flying -= 1
        return list(asks)

    coalescer: Coalescer[int, int] = Coalescer(send, max_batch=3, max_in_flight=4)
    assert await asyncio.gather(*(coalescer.ask(n) for n in range(200))) == list(range(200))
    assert most == 4
    await coalescer.aclose()
    assert len(coalescer) == 0


class Box:
    """A slot that is no future: it takes its answer at once."""

    def __init__(self) -> None:
        self.got: list[object] = []

    def done(self) -> bool:
        return bool(self.got)

    def set_result(self, result: object) -> None:
        self.got.append(result)

    def set_exception(self, exception: BaseException) -> None:
        self.got.append(exception)

    def cancel(self) -> bool:
        self.got.append("cancelled")
        return True


async def test_a_second_call_begins_when_it_is_worth_it_or_when_the_first_takes_long() -> None:
    echo = Echo()
    echo.gate.clear()
    coalescer: Coalescer[int, int] = Coalescer(echo, max_in_flight=2, spread_from=3)
    first = coalescer.submit(1)
    await asyncio.sleep(0)
    few = [coalescer.submit(number) for number in (2, 3)]
    await asyncio.sleep(0)
    assert echo.batches == [[1]], "two wait for the first call"
    many = coalescer.submit(4)
    await asyncio.sleep(0)
    assert echo.batches == [[1], [2, 3, 4]]
    echo.gate.set()
    assert await asyncio.gather(first, *few, many) == [2, 4, 6, 8]
    echo.gate.clear()
    stuck = coalescer.submit(5)
    await asyncio.sleep(0)
    waiting = coalescer.submit(6)
    await eventually(lambda: len(echo.batches) == 4)  # nobody else comes, and the call does not end
    assert echo.batches[2:] == [[5], [6]]
    echo.gate.set()
    assert await asyncio.gather(stuck, waiting) == [10, 12]
    await coalescer.aclose()


async def test_slots_of_the_callers_own_are_filled_in_order_beside_futures() -> None:
    echo = Echo()
    coalescer: Coalescer[int, int] = Coalescer(echo)
    boxes = [Box() for _ in range(60)]
    future = coalescer.submit(1)
    for number, box in enumerate(boxes):
        coalescer.submit_into(-1 if number == 7 else number, box)
    await coalescer.aclose()
    assert await future == 2
    assert [box.got for n, box in enumerate(boxes) if n != 7] == [[n * 2] for n in range(60) if n != 7]
    assert isinstance(boxes[7].got[0], ValueError), "an error in one's place is one's own"
    assert len(echo.batches) <= 2


async def test_a_lost_batch_and_a_cancelled_flight_reach_every_slot() -> None:
    echo = Echo()
    coalescer: Coalescer[int, int] = Coalescer(echo)
    lost, left = Box(), Box()
    coalescer.submit_into(1313, lost)
    await coalescer.aclose()
    assert isinstance(lost.got[0], ConnectionError)
    echo.gate.clear()
    coalescer.submit_into(1, left)
    await asyncio.sleep(0)
    for task in tuple(coalescer._tasks):
        task.cancel()
    await coalescer.aclose()
    assert left.got == ["cancelled"]


async def test_o1_closing_ends_although_the_last_call_has_just_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    """Since Python 3.12, `gather` of finished tasks does not let the loop run, so their callbacks wait. An older Python
    is made to behave so here. A wait that spins is counted, because no timeout can reach it."""
    spins = 0
    gather = asyncio.gather

    def gather_of_312(*given: "asyncio.Future[object]", return_exceptions: bool = False) -> "asyncio.Future[object]":
        nonlocal spins
        spins += 1
        assert spins < 100, "the loop never came to run the callbacks"
        if not all(isinstance(one, asyncio.Future) and one.done() for one in given):
            return gather(*given, return_exceptions=return_exceptions)
        done: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        done.set_result([one.exception() or one.result() for one in given])
        return done

    monkeypatch.setattr(asyncio, "gather", gather_of_312)
    coalescer: Coalescer[int, int] = Coalescer(Echo())
    assert await coalescer.ask(4) == 8
    assert [task.done() for task in coalescer._tasks] == [True], "finished, and not yet out of the set"
    await coalescer.aclose()
    assert not coalescer._tasks
