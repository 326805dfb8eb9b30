"""The rooms of the console: created, changed and deleted by their owners, followed by every server, run by schedule.

The room's own settings and phase are where they always were, in its store and its audit. The book has the rest
(`RoomPlan`). A change is written to the log before it is made, so nothing is changed that the log does not have.

Every server looks at the book four times per second: it opens rooms that are new, closes deleted ones and reads a room
again whose plan has changed. A step of the schedule is taken on by one server for some seconds; if that server dies,
the next one makes it.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

import msgspec

from frontrow.core.clock import Clock
from frontrow.core.errors import FrontrowError, InvalidInput, NotFound, Refused
from frontrow.core.failures import note_failure, note_success
from frontrow.waitingroom.console.access import ConsoleAccess, SignedInOwner
from frontrow.waitingroom.console.model.errors import ConsoleConflict, NameTaken, NewerVersion
from frontrow.waitingroom.console.model.owners import Right
from frontrow.waitingroom.console.model.page_design import PageDesign, checked_design
from frontrow.waitingroom.console.model.protection import ProtectionRules, ShopRequest, Verdict, checked_rules, decide
from frontrow.waitingroom.console.model.room_plans import SETTINGS, RoomPlan, StepDone, checked_shop_url, plan_of
from frontrow.waitingroom.console.model.schedules import PHASES, Schedule, ScheduleStep, checked_schedule, why_not
from frontrow.waitingroom.console.ports import ConsoleBook, DocumentKind, Entry, LogLine, Write
from frontrow.waitingroom.model.config import Phase, RoomConfig, check_event
from frontrow.waitingroom.model.results import RoomView
from frontrow.waitingroom.service.room import WaitingRoom

log = logging.getLogger("frontrow.room.console")

FOLLOW_EVERY_S: Final = 0.25
TRY_FOR_US: Final = 5_000_000  # how long one server may take for a step before another one makes it
MOST_ROOMS: Final = 500
TRIES: Final = 5
SCHEDULE: Final = "schedule"  # who makes the steps, in the log
ACTIONS: Final = ("open", "pause", "resume", "queue_all", "close")


class RoomOpener(Protocol):
    """Serves a room in this process, or stops serving it."""

    async def open_room(self, name: str) -> None: ...

    async def close_room(self, name: str) -> None: ...


class ConsoleRooms:
    """The rooms of one process, as the book has them."""

    def __init__(
        self, book: ConsoleBook, room: WaitingRoom, access: ConsoleAccess, first: RoomConfig, clock: Clock
    ) -> None:
        """`first`: the settings of a new room, before its owner changes them."""
        self._book, self._room, self._access, self._first, self._clock = book, room, access, first, clock
        self.plans: dict[str, RoomPlan] = {}  # as last followed; deleted ones are not among them
        self.revisions: dict[str, int] = {}
        self._unreadable: set[str] = set()
        self._opener: RoomOpener | None = None
        self._opened: set[str] = set()
        self._seen_no = -1
        self.bypassed: dict[str, dict[str, int]] = {}  # room -> verdict -> how often, for the metrics

    # -- following the book --------------------------------------------------------------------------------------------

    def serve_with(self, opener: RoomOpener) -> None:
        """Where rooms are opened from now on."""
        self._opener = opener

    async def adopt(self, names: Iterable[str]) -> None:
        """Take over rooms that the settings name. One that was deleted here stays deleted."""
        for name in names:
            if await self._book.get(DocumentKind.ROOM, check_event(name)) is None:
                plan = RoomPlan(name, self._clock())
                with contextlib.suppress(ConsoleConflict):  # another server took it over
                    await self._book.write([Write(DocumentKind.ROOM, name, plan.to_text(), 0)])

    async def not_deleted(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of these rooms that were not deleted here."""
        gone = []
        for entry in await self._book.all(DocumentKind.ROOM):
            try:
                plan = plan_of(entry.text)
            except NewerVersion:
                continue
            if plan.deleted_at_us:
                gone.append(plan.name)
        return tuple(name for name in names if name not in gone)

    async def follow(self) -> None:
        """Bring this process in step with the book, if it has changed."""
        number = await self._book.change_no()
        if number == self._seen_no:
            return
        await self._access.follow_keys()
        entries = await self._book.all(DocumentKind.ROOM)
        failed: FrontrowError | None = None
        for entry in entries:
            try:
                await self._follow_room(entry)
            except FrontrowError as error:  # the other rooms go on, and this one is tried again
                failed = error
        if failed is not None:
            raise failed
        self._seen_no = number

    async def _follow_room(self, entry: Entry) -> None:
        if self.revisions.get(entry.id) == entry.revision and (entry.id in self._opened or entry.id not in self.plans):
            return
        try:
            plan = plan_of(entry.text)
        except NewerVersion as error:  # it goes on as it is
            if entry.id not in self._unreadable:
                self._unreadable.add(entry.id)
                log.warning("room not followed", extra={"event_id": entry.id, "problem": error.message})
            return
        if plan.deleted_at_us:
            self.plans.pop(plan.name, None)
            await self._close(plan.name)
        else:
            await self._open(plan)
            self.plans[plan.name] = plan
        self.revisions[plan.name] = entry.revision

    async def _open(self, plan: RoomPlan) -> None:
        if plan.name in self._opened:
            await self._room.loops.refresh(plan.name)  # another server may have changed its phase
            return
        config = _config(self._first, plan.settings)
        await self._room.control.create(plan.name, config, plan.schedule.first_phase(plan.created_at_us))
        if self._opener is not None:
            await self._opener.open_room(plan.name)
            self._opened.add(plan.name)

    async def _close(self, name: str) -> None:
        if name in self._opened and self._opener is not None:
            self._opened.discard(name)
            await self._opener.close_room(name)
            await self._room.loops.forget(name)

    async def run(self) -> None:
        """Follow the book and make the steps that are due, until cancelled."""
        while True:
            await self.turn()
            await asyncio.sleep(FOLLOW_EVERY_S)

    async def turn(self) -> None:
        """One turn of `run`. A store or a book that is away is tried again."""
        try:
            await self.follow()
            await self.make_due_steps()
            note_success()
        except FrontrowError as error:
            note_failure(error)

    # -- the schedule --------------------------------------------------------------------------------------------------

    async def make_due_steps(self) -> None:
        """Make each step whose time has come, the earliest first. One room's failure stops no other room."""
        now_us, failed = self._clock(), None
        for plan in list(self.plans.values()):
            for at_us, step in plan.schedule.due(now_us):
                if plan.is_done(step, at_us):
                    continue
                try:
                    if not await self._make_step(plan.name, step, at_us):
                        break  # another server is at it; what follows comes after it
                except FrontrowError as error:
                    failed = error
                    break
        if failed is not None:
            raise failed

    async def _make_step(self, name: str, step: ScheduleStep, at_us: int) -> bool:
        """Take the step on, make it, note it. False if another server has taken it on."""
        now_us = self._clock()
        plan, revision = await self._read(name)
        if plan.is_done(step, at_us) or (at_us, step) not in plan.schedule.steps() or plan.deleted_at_us:
            return True
        if now_us < plan.trying_until_us(step, at_us):
            return False
        try:
            trying = plan.with_step(StepDone(step, at_us, now_us + TRY_FOR_US))
            await self._book.write([Write(DocumentKind.ROOM, name, trying.to_text(), revision)])
        except ConsoleConflict:
            return False
        try:
            await self._room.loops.refresh(name)
            reason = why_not(step, self._room.control.view(name).state)
            if not reason:
                await self._to_phase(name, PHASES[step])
        except FrontrowError:  # the store is away: the next turn, here or elsewhere, tries again
            await self._change(name, lambda plan: plan.with_step(StepDone(step, at_us)), None)
            raise
        await self._note_step(name, StepDone(step, at_us, done=True, why_not=reason))
        return True

    async def _to_phase(self, name: str, phase: Phase) -> None:
        match phase:
            case Phase.OPEN:
                await self._room.control.open(name)
            case Phase.PREQUEUE:
                await self._room.control.hold_prequeue(name)
            case _:
                await self._room.control.close(name)

    async def _note_step(self, name: str, done: StepDone) -> None:
        line = LogLine(self._clock(), SCHEDULE, f"step_{done.step}", name, done.why_not)
        await self._change(name, lambda plan: plan.with_step(done), line)

    # -- owners change rooms -------------------------------------------------------------------------------------------

    async def create(
        self, who: SignedInOwner, name: str, *, title: str = "", shop_url: str = "", settings: Mapping[str, int] = {}
    ) -> RoomPlan:
        """A new room, which every server serves within a second."""
        who.need(Right.SET_UP)
        name = check_event(name.strip())
        url, chosen = checked_shop_url(shop_url), checked_settings(settings)
        config = _config(self._first, chosen)  # a wrong value is refused before anything is written
        if len(self.plans) >= MOST_ROOMS:
            raise InvalidInput(f"there are at most {MOST_ROOMS} rooms", param="name")
        if await self._book.get(DocumentKind.ROOM, name) is not None:
            raise NameTaken(f"there is, or was, a room named {name}; places name their room, so choose another name")
        design = checked_design(PageDesign(titles={"en": title} if title.strip() else {}))
        plan = RoomPlan(name, self._clock(), url, design=design, settings=chosen)
        view = await self._room.control.create(name, config)
        if view.state.config.changed(draw_salt=config.draw_salt) != config:  # its creation was cut short before
            await self._room.control.configure(name, **chosen)
        line = LogLine(self._clock(), who.owner.email, "create_room", name, _as_detail(chosen))
        try:
            await self._book.write([Write(DocumentKind.ROOM, name, plan.to_text(), 0)], line)
        except ConsoleConflict:
            raise NameTaken(f"somebody has just made a room named {name}") from None
        await self.follow()
        return plan

    async def delete(self, who: SignedInOwner, name: str) -> None:
        """Close the room for good. Its name is not used again."""
        who.need(Right.SET_UP)
        await self._read(name)
        await self._room.control.close(name)
        line = LogLine(self._clock(), who.owner.email, "delete_room", name)
        now_us = self._clock()
        await self._change(name, lambda plan: msgspec.structs.replace(plan, deleted_at_us=now_us), line)
        await self.follow()

    async def act(self, who: SignedInOwner, name: str, action: str) -> RoomView:
        """Open, pause, resume, hold everybody or close."""
        who.need(Right.RUN)
        if action not in ACTIONS:
            raise InvalidInput(f"{action[:40]!r} is not one of {', '.join(ACTIONS)}", param="action")
        await self.log(who.owner.email, action, name)
        view: RoomView = await getattr(self._room.control, action)(name)  # actions are named as the methods
        await self._tell_others(name)
        return view

    async def configure(self, who: SignedInOwner, name: str, changes: Mapping[str, int]) -> RoomView:
        """Change settings of the room by name."""
        who.need(Right.RUN)
        chosen = checked_settings(changes)
        self._room.control.view(name).state.config.changed(**chosen)
        await self.log(who.owner.email, "change_settings", name, _as_detail(chosen))
        view = await self._room.control.configure(name, **chosen)
        await self._change(name, lambda plan: msgspec.structs.replace(plan, settings={**plan.settings, **chosen}), None)
        return view

    async def set_message(self, who: SignedInOwner, name: str, message: str) -> RoomView:
        who.need(Right.RUN)
        view = self._room.control.view(name)
        view.state.config.changed(message=message)
        await self.log(who.owner.email, "set_message", name, message)
        view = await self._room.control.set_message(name, message)
        await self._tell_others(name)
        return view

    async def set_schedule(self, who: SignedInOwner, name: str, schedule: Schedule, zone: str) -> RoomPlan:
        """Change the schedule. A step whose time has not changed and that was made is not made again."""
        who.need(Right.SET_UP)
        wanted = checked_schedule(schedule)
        self.plan(name)
        await self._room.loops.refresh(name)  # people may have joined a moment ago
        now_us, state = self._clock(), self._room.control.view(name).state
        if wanted.prequeue_at_us and any(lane.issued for lane in state.lanes):
            raise Refused("people have places in this room already, which a draw would move: leave the pre-queue out")
        line = LogLine(now_us, who.owner.email, "set_schedule", name, _as_detail(msgspec.to_builtins(wanted)))
        plan = await self._change(name, lambda old: msgspec.structs.replace(old, schedule=wanted, zone=zone), line)
        is_unused = state.phase is Phase.OPEN and not any(lane.issued for lane in state.lanes)
        if is_unused and not wanted.due(now_us) and wanted.first_phase(now_us) is Phase.CLOSED:
            await self._room.control.close(name)  # it opens later: until then it is closed
        return plan

    async def set_rules(self, who: SignedInOwner, name: str, rules: ProtectionRules) -> RoomPlan:
        who.need(Right.SET_UP)
        wanted = checked_rules(rules)
        detail = msgspec.json.encode(msgspec.structs.replace(wanted, key_hashes=())).decode()
        line = LogLine(self._clock(), who.owner.email, "set_rules", name, detail[:2_000])
        return await self._change(name, lambda plan: msgspec.structs.replace(plan, rules=wanted), line)

    async def set_page(self, who: SignedInOwner, name: str, design: PageDesign, shop_url: str) -> RoomPlan:
        who.need(Right.SET_UP)
        wanted, url = checked_design(design), checked_shop_url(shop_url)
        line = LogLine(
            self._clock(), who.owner.email, "set_page", name, f"colour {wanted.colour or '–'}, shop {url or '–'}"
        )
        return await self._change(name, lambda plan: msgspec.structs.replace(plan, design=wanted, shop_url=url), line)

    async def put_picture(self, hash: str, body: bytes) -> None:
        """Keep a prepared logo."""
        await self._book.put_picture(hash, body)

    async def picture(self, hash: str) -> bytes | None:
        return await self._book.picture(hash)

    # -- reading -------------------------------------------------------------------------------------------------------

    def plan(self, name: str) -> RoomPlan:
        """The plan as last followed. Raises NotFound."""
        found = self.plans.get(name)
        if found is None:
            raise NotFound(f"there is no room named {name[:40]!r}")
        return found

    def verdict(self, name: str, request: ShopRequest) -> Verdict:
        """Whether this request to the shop needs a pass; rooms without a plan protect everything."""
        plan = self.plans.get(name)
        verdict = decide(plan.rules, request) if plan is not None else Verdict.PROTECTED
        if verdict is not Verdict.PROTECTED:
            counts = self.bypassed.setdefault(name, {})
            counts[verdict.value] = counts.get(verdict.value, 0) + 1
        return verdict

    async def log(self, who: str, act: str, name: str = "", detail: str = "") -> None:
        """Write a line to the log."""
        await self._book.write([], LogLine(self._clock(), who, act, name, detail[:2_000]))

    async def log_lines(self, name: str, before: int, limit: int) -> list[LogLine]:
        return await self._book.log(name, before, limit)

    async def _read(self, name: str) -> tuple[RoomPlan, int]:
        entry = await self._book.get(DocumentKind.ROOM, name)
        plan = plan_of(entry.text) if entry is not None else None
        if entry is None or plan is None or plan.deleted_at_us:
            raise NotFound(f"there is no room named {name[:40]!r}")
        return plan, entry.revision

    async def _change(self, name: str, change: Callable[[RoomPlan], RoomPlan], line: LogLine | None) -> RoomPlan:
        """Change a plan. Changes of different parts by two people at once are both kept."""
        for attempt in range(TRIES):
            plan, revision = await self._read(name)
            changed = change(plan)
            try:
                await self._book.write([Write(DocumentKind.ROOM, name, changed.to_text(), revision)], line)
            except ConsoleConflict:
                if attempt == TRIES - 1:
                    raise
                continue
            if not changed.deleted_at_us:
                self.plans[name], self.revisions[name] = changed, revision + 1
            return changed
        raise AssertionError("the last try returns or raises")

    async def _tell_others(self, name: str) -> None:
        """Let every server read the room again, also one where it is idle."""
        await self._change(name, lambda plan: plan, None)


def checked_settings(changes: Mapping[str, Any]) -> dict[str, int]:
    """Only settings that an owner may change. Raises InvalidInput with the name of another."""
    for name in changes:
        if name not in SETTINGS:
            raise InvalidInput(f"{name[:40]!r} is not one of {', '.join(SETTINGS)}", param=name[:40])
    return dict(changes)


def _config(first: RoomConfig, settings: Mapping[str, int]) -> RoomConfig:
    chosen = dict(settings)
    if chosen.get("pass_ttl_s", 0) > chosen.get("max_stay_s", first.max_stay_s):
        chosen["max_stay_s"] = chosen["pass_ttl_s"]
    return first.changed(**chosen)


def _as_detail(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())
