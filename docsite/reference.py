"""The reference, written from the code: settings, commands, metrics, the HTTP API, the Python API.

`pages()` gives every page as Markdown. Nothing of it is kept in the repository, so it cannot be out of date.
"""

import asyncio
import dataclasses
import importlib
import tempfile
from collections.abc import Iterator
from typing import Any, Final, cast, get_type_hints

import msgspec
import typer

from frontrow.app.wiring import open_platform
from frontrow.cli.main import COMMANDS, GROUPS
from frontrow.limits.config import LimitsSettings
from frontrow.settings.platform import _SECTIONS, PlatformSettings
from frontrow.settings.server import ServerSettings
from frontrow.web.api.operation_groups import GROUPS as OPERATION_GROUPS
from frontrow.web.observability.worker_metrics import Family
from frontrow.web.platform.metrics import families
from frontrow.web.server.app import platform_app

PYTHON: Final = {
    "frontrow.limits": "The limiter: quotas, rules, decisions.",
    "frontrow.limits.http.asgi": "The middleware for ASGI applications.",
    "frontrow.limits.http.wsgi": "The middleware for WSGI applications.",
    "frontrow.limits.testing": "Limits in your tests.",
    "frontrow.client": "The client of the HTTP API.",
    "frontrow.client.calls": "What a buyer can ask.",
    "frontrow.client.staff_calls": "What organisers and gates can ask.",
    "frontrow.waitingroom.protect": "The waiting room in front of any shop.",
    "frontrow.boxoffice.payments.ports": "The port of a payment provider of your own.",
    "frontrow.testing.clock": "A clock for your tests.",
    "frontrow.testing.limits": "Limiters for your tests.",
    "frontrow.testing.room": "Passes and a room's store for your tests.",
    "frontrow.testing.payments": "A payment provider for your tests.",
}
AUDIENCES: Final = {  # page -> title, the beginnings of its groups' names
    "fans": ("The API for fans", ()),
    "organisers": ("The API for organisers", ("Organiser", "Staff")),
    "gate": ("The API for the gate", ("Gate",)),
    "server": ("The API of the server itself", ("Server",)),
}
MADE: Final = "Written from the code when this site was built.\n"


def pages() -> dict[str, str]:
    """Every page of the reference by its path."""
    document = msgspec.json.decode(platform_app(cast(Any, None), own_loops=False).state.make_document())
    found = {
        "reference/settings.md": settings_page(),
        "reference/commands.md": commands_page(),
        "reference/metrics.md": metrics_page(asyncio.run(_families())),
        "reference/python.md": python_page(),
        "reference/http/schemas.md": schemas_page(document),
    }
    return found | {f"reference/http/{name}.md": http_page(document, name) for name in AUDIENCES}


# Settings


_RANGE: Final = {"low": "at least", "high": "at most"}


def settings_page() -> str:
    """Every setting with its variable, default and meaning."""
    parts = [
        "# Settings\n",
        MADE,
        "`frontrow serve` reads `frontrow.toml` in the current folder (or `--config`), then the variables, which win. "
        "`[server] port` is also `FRONTROW_SERVER_PORT`. Give secrets as variables, not in the file of an image.\n",
    ]
    for name, section in {**_SECTIONS, "limits": LimitsSettings}.items():
        parts.append(f"## [{name}]\n")
        if name == "limits":
            parts.append("For applications that use the limiter alone (`RateLimitMiddleware.from_file`).\n")
        parts.append("| setting | default | means |\n|---|---|---|")
        parts += [_setting_row(section, one) for one in dataclasses.fields(section)]
        parts.append("")
    return "\n".join(parts)


def _setting_row(section: type[Any], field: "dataclasses.Field[Any]") -> str:
    about = field.metadata
    default = field.default if field.default is not dataclasses.MISSING else ""
    shown = "" if default in ("", ()) else _toml(default)
    means = [about.get("doc", "")]
    if about.get("choices"):
        means.append("one of " + ", ".join(f"`{choice}`" for choice in about["choices"]))
    bounds = [f"{words} {about[key]:,}" for key, words in _RANGE.items() if about.get(key) is not None]
    if bounds:
        means.append(", ".join(bounds))
    if about.get("example"):
        means.append(f"example: `{about['example']}`")
    if about.get("secret"):
        means.append("a secret")
    hint = get_type_hints(section)[field.name]
    what = _cell("; ".join(part for part in means if part))
    return f"| `{field.name}` ({getattr(hint, '__name__', hint)}) | {shown} | {what} |"


def _toml(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else repr(value).replace("'", '"')
    return f"`{text}`" if not isinstance(value, tuple) else f"`[{', '.join(map(repr, value))}]`".replace("'", '"')


# Commands


def commands_page() -> str:
    """Every command with its arguments and options."""
    parts = ["# Commands\n", MADE, "`frontrow --version`, `frontrow COMMAND --help`.\n"]
    for name, (module, line, extra) in sorted((COMMANDS | GROUPS).items()):
        parts.append(f"## frontrow {name}\n\n{line} Needs `frontrow[{extra}]`.\n")
        parts += _command_parts(f"frontrow {name}", _command(name, module))
    return "\n".join(parts)


def _command(name: str, module: str) -> Any:
    found = importlib.import_module(module)
    if name in GROUPS:
        return typer.main.get_command(found.app)
    single = typer.Typer(add_completion=False)
    single.command(name)(getattr(found, name.replace("-", "_")))
    return typer.main.get_command(single)


def _command_parts(path: str, command: Any) -> Iterator[str]:
    for name, one in sorted(getattr(command, "commands", {}).items()):
        yield f"### {path} {name}\n"
        yield from _command_parts(f"{path} {name}", one)
    if hasattr(command, "commands"):
        return
    if command.help and path.count(" ") > 1:
        yield command.help.replace("\b", "").strip() + "\n"
    shown = [one for one in command.params if one.name != "help" and not getattr(one, "hidden", False)]
    if shown:
        yield "| option | means | default |\n|---|---|---|"
        yield from map(_option_row, shown)
        yield ""


def _option_row(option: Any) -> str:
    if option.param_type_name == "argument":
        name = f"`{option.name.upper()}`"
    else:
        name = ", ".join(f"`{one}`" for one in [*option.opts, *option.secondary_opts])
    default = option.default if not callable(option.default) else ""
    shown = f"`{default}`" if default not in (None, "", (), [], False) else ""
    means = (getattr(option, "help", "") or "") + (f" (`{option.envvar}`)" if isinstance(option.envvar, str) else "")
    return f"| {name} | {_cell(means)} | {shown} |"


# Metrics


async def _families() -> list[Family]:
    with tempfile.TemporaryDirectory() as folder:
        async with open_platform(PlatformSettings(server=ServerSettings(demo=True, folder=folder))) as platform:
            return families(platform)


def metrics_page(found: list[Family]) -> str:
    """Every family of /metrics."""
    rows = []
    for family in sorted(found, key=lambda one: one.name):
        labels = sorted({name for sample in family.samples for name, _ in sample.labels if name != "le"})
        named = ", ".join(f"`{label}`" for label in labels)
        rows.append(f"| `{family.name}` | {family.kind} | {named} | {_cell(family.about)} |")
    head = "| family | type | labels of a fresh server | means |\n|---|---|---|---|"
    intro = "`GET /metrics` of every server. No label or value says anything about a person."
    return "\n".join(["# Metrics\n", MADE, f"{intro}\n", head, *rows, ""])


# The HTTP API


def http_page(document: dict[str, Any], name: str) -> str:
    """The operations of an audience: parameters, bodies, answers."""
    title, beginnings = AUDIENCES[name]
    others = tuple(one for _, more in AUDIENCES.values() for one in more)
    wanted = [
        group
        for group in OPERATION_GROUPS
        if (group.name.startswith(beginnings) if beginnings else not group.name.startswith(others))
    ]
    parts = [f"# {title}\n", MADE, "[All schemas](schemas.md). [Rules that hold everywhere](../../api.md).\n"]
    for group in wanted:
        parts.append(f"## {group.name}\n\n{group.description}\n")
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                if operation["tags"] == [group.name]:
                    parts += _operation_parts(path, method, operation)
    return "\n".join(parts)


def _operation_parts(path: str, method: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"### {operation['operationId']}\n\n`{method.upper()} {path}`: {_text(operation.get('summary', ''))}\n"
    proofs = [" and ".join(f"`{name}`" for name in one) for one in operation.get("security", [])]
    if proofs:
        yield f"Proof: {', or '.join(proofs)}.\n"
    if operation.get("parameters"):
        yield "| parameter | in | type | means |\n|---|---|---|---|"
        for one in operation["parameters"]:
            needed = " (required)" if one.get("required") else ""
            means = _cell(one.get("description") or "")
            yield f"| `{one['name']}`{needed} | {one['in']} | {_type_of(one.get('schema', {}))} | {means} |"
        yield ""
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        needed = "" if operation["requestBody"].get("required") else ", optional"
        yield f"Body (`{kind}`{needed}): {_type_of(content.get('schema', {}))}\n"
    yield "| status | answer |\n|---|---|"
    for status, answer in sorted(operation.get("responses", {}).items()):
        shapes = {_type_of(one.get("schema", {})) for one in answer.get("content", {}).values()}
        yield f"| {status} | {_cell(answer.get('description') or '')} {', '.join(sorted(shapes))} |"
    yield ""


def schemas_page(document: dict[str, Any]) -> str:
    """Every schema with its fields."""
    parts = ["# Schemas of the API\n", MADE]
    for name, schema in sorted(document["components"]["schemas"].items()):
        parts.append(f"## {name}\n")
        if schema.get("description"):
            parts.append(_text(schema["description"]) + "\n")
        if schema.get("properties"):
            parts.append("| field | type | means |\n|---|---|---|")
            parts += [_field_row(schema, key, value) for key, value in schema["properties"].items()]
            parts.append("")
        elif not schema.get("properties") and schema.get("type") != "object":
            parts.append(f"{_type_of({**schema, 'title': ''})}\n")
    return "\n".join(parts)


def _field_row(schema: dict[str, Any], name: str, value: dict[str, Any]) -> str:
    needed = " (required)" if name in schema.get("required", ()) else ""
    means = [value.get("description", "")]
    if value.get("examples"):
        means.append(f"example: `{msgspec.json.encode(value['examples'][0]).decode()}`")
    if value.get("default") not in (None, "", [], {}):
        means.append(f"default: `{msgspec.json.encode(value['default']).decode()}`")
    return f"| `{name}`{needed} | {_type_of(value)} | {_cell('; '.join(part for part in means if part))} |"


def _type_of(schema: dict[str, Any] | bool) -> str:
    """A type in words; a named schema is a link."""
    if isinstance(schema, bool):  # what follows the named items of a tuple
        return "anything" if schema else "nothing"
    if "prefixItems" in schema:
        return f"array of {', '.join(_type_of(one) for one in schema['prefixItems'])}"
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](schemas.md#{name.lower()})"
    several = schema.get("anyOf") or schema.get("oneOf")
    if several:
        return " or ".join(_type_of(one) for one in several)
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"array of {_type_of(schema.get('items', {}))}"
    kind = schema.get("type", "any")
    kind = " or ".join(kind) if isinstance(kind, list) else kind
    bounds = [f"{words} {_number(schema[key])}" for key, words in _BOUNDS.items() if key in schema]
    return kind + (f" ({', '.join(bounds)})" if bounds else "")


def _number(value: Any) -> str:
    return f"{value:,.15g}" if isinstance(value, int | float) else f"{value}"


_BOUNDS: Final = {
    "minimum": "at least",
    "maximum": "at most",
    "minLength": "shortest",
    "maxLength": "longest",
    "maxItems": "at most",
    "format": "format",
}


# The Python API


def python_page() -> str:
    """Directives that mkdocstrings fills in."""
    parts = ["# The Python API\n", MADE]
    for module, about in PYTHON.items():
        parts.append(f"## {module}\n\n{about}\n\n::: {module}\n    options:\n      heading_level: 3\n")
    return "\n".join(parts)


def _cell(text: str) -> str:
    return _text(text).replace("|", "\\|").replace("\n", " ")


def _text(text: str) -> str:
    return text.replace("<", "&lt;").replace(">", "&gt;") if "`" not in text else text
