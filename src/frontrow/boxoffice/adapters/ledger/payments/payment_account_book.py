"""The organisers' accounts at payment providers, and what their sales took there. See PaymentAccountBook."""

from msgspec.structs import replace

from frontrow.boxoffice.adapters.ledger.engine.group_commit import CommitLine, LedgerStore, RunProgram
from frontrow.boxoffice.adapters.ledger.engine.queries import Query
from frontrow.boxoffice.adapters.ledger.holds.booking_transactions import Program
from frontrow.boxoffice.adapters.ledger.organiser.organiser_changes import noted, organiser_note
from frontrow.boxoffice.events.model.event_changes import Change
from frontrow.boxoffice.payments.model.payment_accounts import AccountState, PaymentAccount
from frontrow.boxoffice.payments.ports import MoneyAtAccount


class SqlPaymentAccountBook:
    """Keeps at most one account per organiser that takes new payments."""

    def __init__(self, store: LedgerStore, line: CommitLine) -> None:
        self._store, self._line = store, line

    async def put(self, account: PaymentAccount, change: Change) -> None:
        head = (account.provider, account.account, account.organiser_id, account.state.value, account.reason)
        times = (account.made_at_us, account.changed_at_us, account.ended_at_us)
        ended = (account.organiser_id, account.provider, account.account, change.at_us)
        put = Query("put_payment_accounts", [(*head, account.fee_basis_points, *times)])
        end = None if account.ended_at_us else Query("end_payment_accounts", [ended])
        note = organiser_note(change)
        await self._line.submit(RunProgram(lambda facts: _put(end, put, change), change.at_us, note=note))

    async def all_accounts(self) -> list[PaymentAccount]:
        rows = await self._store.read(Query("payment_accounts"))
        return [PaymentAccount(row[0], row[1], row[2], AccountState(row[3]), *row[4:9]) for row in rows]

    async def money(self, organiser_id: str) -> list[MoneyAtAccount]:
        taken = await self._store.read(Query("money_taken_by_account", params=(organiser_id,)))
        back = await self._store.read(Query("money_refunded_by_account", params=(organiser_id,)))
        refunded = {tuple(row[:3]): (int(row[3]), int(row[4])) for row in back}
        found = []
        for row in taken:
            given, waiting = refunded.get(tuple(row[:3]), (0, 0))
            one = MoneyAtAccount(row[0], row[1], row[2], int(row[3]), fee_minor=int(row[4]))
            found.append(replace(one, refunded_minor=given, waiting=waiting))
        return found


def _put(end: Query | None, put: Query, change: Change) -> Program[None]:
    """End the organiser's other account first: only one takes new payments."""
    if end is not None:
        yield end
    if (yield put):
        yield noted(change)
