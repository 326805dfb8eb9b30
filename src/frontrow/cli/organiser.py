"""`frontrow organiser create | list | account | reset`: the first owner, the account for payments, the way back in.

There is no default password. `create` asks for one on a terminal, or prints a one-time link (`--invite`); `reset`
prints such a link for a member who lost password or second factor.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, NoReturn

import typer

from frontrow.cli.deployment_options import ConfigOption, FolderOption, LedgerOption
from frontrow.cli.folder_lock import find_address
from frontrow.core.errors import FrontrowError
from frontrow.core.settings_loader import load, read_tables
from frontrow.settings.deployment import read_deployment

app = typer.Typer(help="Organisers: make the first owner, list them, let somebody back in.", no_args_is_help=True)
PublicUrl = Annotated[
    str | None,
    typer.Option("--url", envvar="FRONTROW_SERVER_PUBLIC_URL", help="How people reach the server; for links."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Answer in JSON.")]


@app.command()
def create(
    name: Annotated[str, typer.Argument(help="The organiser's name, as fans see it.")],
    email: Annotated[str, typer.Option(help="The owner's e-mail address.", prompt="E-mail address of the owner")],
    owner: Annotated[str, typer.Option(help="The owner's name.")] = "Owner",
    organiser: Annotated[str, typer.Option(help="An organiser that is there already, like org_default.")] = "",
    invite: Annotated[bool, typer.Option("--invite", help="Print a one-time link instead of asking.")] = False,
    config: ConfigOption = None,
    folder: FolderOption = None,
    ledger: LedgerOption = None,
    url: PublicUrl = None,
    as_json: AsJson = False,
) -> None:
    """Make an organiser and its first owner."""
    password = (
        "" if invite else typer.prompt("Password (12 or more characters)", hide_input=True, confirmation_prompt=True)
    )

    from frontrow.boxoffice.people.model.email_addresses import checked_email
    from frontrow.boxoffice.people.model.password_rules import checked_password

    try:
        checked_password(password or "checked when it is chosen", checked_email(email))
    except FrontrowError as error:
        _fail(error.message)

    async def act(people: Any) -> dict[str, str]:
        from frontrow.boxoffice.people.model.roles import Role

        created = await people.team.create_organiser(name, organiser)
        if invite:
            link = await people.team.create_invitation_link(created.id, email, Role.OWNER)
            return {"organiser": created.id, "link": link}
        staff = await people.team.add_owner(created.id, email, owner, password)
        return {"organiser": created.id, "staff": staff.id}

    created = _run(act, config, folder, ledger, url, make=True)
    if as_json:
        typer.echo(json.dumps(created))
    elif invite:
        typer.echo(f"{created['organiser']}\nThis link makes {email} its owner; it works once, for three days:")
        typer.echo(created["link"])
    else:
        typer.echo(f"{created['organiser']}\n{email} owns it. The second factor is set up at the first sign-in.")


@app.command("list")
def list_organisers(
    config: ConfigOption = None,
    folder: FolderOption = None,
    ledger: LedgerOption = None,
    as_json: AsJson = False,
) -> None:
    """Every organiser and the members of its team."""

    async def act(people: Any) -> list[dict[str, Any]]:
        rows, after = [], ""
        for _ in range(1_000):  # pages of 100
            page = await people.book.organisers(after, 100)
            for one in page:
                team = [
                    {
                        "id": member.id,
                        "email": member.email,
                        "role": member.role.value,
                        "totp": bool(member.totp_sealed),
                    }
                    for member in await people.book.staff_of(one.id)
                ]
                rows.append({"id": one.id, "name": one.name, "team": team})
            if len(page) < 100:
                break
            after = page[-1].id
        return rows

    for row in _run(act, config, folder, ledger):
        if as_json:
            typer.echo(json.dumps(row))
            continue
        typer.echo(f"{row['id']}  {row['name']}")
        for member in row["team"]:
            factor = "" if member["totp"] else "  (no second factor yet)"
            typer.echo(f"  {member['role']:<10}  {member['email']}{factor}")


@app.command()
def account(
    organiser: Annotated[str, typer.Argument(help="The organiser's id, like org_default.")],
    provider: Annotated[str, typer.Option(help="The payment provider, like adyen.")] = "",
    account: Annotated[str, typer.Option(help="Its name for the account, like a merchant account.")] = "",
    fee: Annotated[int, typer.Option(help="What the platform keeps, in basis points: 250 is 2.5 %.")] = 0,
    end: Annotated[bool, typer.Option("--end", help="The server's own account takes new payments again.")] = False,
    config: ConfigOption = None,
    folder: FolderOption = None,
    ledger: LedgerOption = None,
    as_json: AsJson = False,
) -> None:
    """Show or set the account that takes an organiser's payments, and what it took."""
    from frontrow.app.command_services import open_payment_accounts
    from frontrow.boxoffice.events.model.event_changes import Editor
    from frontrow.cli.deployment_options import find_deployment

    async def act() -> dict[str, Any]:
        async with open_payment_accounts(find_deployment(config, folder, ledger)) as accounts:
            editor = Editor("operator", organiser)
            if end:
                await accounts.end(editor)
            elif account:
                await accounts.put(editor, provider, account, fee)
            found = await accounts.current(organiser)
            money = [
                {field: getattr(one, field) for field in (*one.__struct_fields__, "kept_minor")}
                for one in await accounts.money(organiser)
            ]
            named = {field: getattr(found, field) for field in found.__struct_fields__} if found else None
            return {"account": named, "money": money}

    try:
        told = asyncio.run(act())
    except FrontrowError as error:
        _fail(error.message)
    if as_json:
        typer.echo(json.dumps(told))
        return
    named = told["account"]
    typer.echo(
        f"{named['provider']} {named['account']}  {named['state']}  fee {named['fee_basis_points']} basis points"
        if named
        else "the server's own account takes the payments"
    )
    for one in told["money"]:
        where = f"{one['provider']} {one['account']}".strip()
        typer.echo(
            f"  {where}  {one['currency']}  taken {one['captured_minor']}  refunded {one['refunded_minor']}  "
            f"fee {one['fee_minor']}  left {one['kept_minor']}  refunds waiting {one['waiting']}"
        )


@app.command()
def reset(
    email: Annotated[str, typer.Argument(help="The member's e-mail address.")],
    config: ConfigOption = None,
    folder: FolderOption = None,
    ledger: LedgerOption = None,
    url: PublicUrl = None,
) -> None:
    """Print a one-time link for a new password; using it also removes the second factor and ends all sessions."""

    async def act(people: Any) -> str:
        from frontrow.boxoffice.people.model.email_addresses import checked_email
        from frontrow.boxoffice.people.model.people import PersonNotFound

        staff = await people.book.staff_by_email(checked_email(email))
        if staff is None:
            raise PersonNotFound("nobody has this address; see `frontrow organiser list`")
        link: str = await people.team.create_invitation_link(staff.organiser_id, staff.email, staff.role)
        return link

    typer.echo(_run(act, config, folder, ledger, url))


def _run(
    act: Callable[[Any], Awaitable[Any]],
    config: str | None,
    folder: str | None,
    ledger: str | None,
    url: str | None = None,
    *,
    make: bool = False,
) -> Any:
    from frontrow.app.command_services import open_people
    from frontrow.boxoffice.people.people_settings import PeopleSettings

    async def whole() -> Any:
        deployment = read_deployment(config, ledger=ledger, folder=folder, public_url=url)
        if not deployment.server.public_url and (address := find_address(deployment.folder)):
            deployment = read_deployment(config, ledger=ledger, folder=folder, public_url=address)
        settings = load(PeopleSettings, "people", tables=read_tables(config))
        async with open_people(deployment, settings, make=make) as people:
            return await act(people)

    try:
        return asyncio.run(whole())
    except FrontrowError as error:
        _fail(error.message)


def _fail(message: str) -> NoReturn:
    typer.echo(f"frontrow organiser: {message}", err=True)
    raise typer.Exit(2)
