"""Documents of the console as text: JSON with the version of its kind. An older server never misreads a newer one."""

from typing import Any, TypeVar

import msgspec

from frontrow.waitingroom.console.model.errors import NewerVersion

Document = TypeVar("Document", bound=msgspec.Struct)


def write_document(document: msgspec.Struct, version: int) -> str:
    """The document as JSON with `v`."""
    fields: dict[str, Any] = {"v": version, **msgspec.to_builtins(document)}
    return msgspec.json.encode(fields).decode()


def read_document(kind: type[Document], text: str, version: int) -> Document:
    """The document, if this server knows its version. Raises NewerVersion."""
    fields = msgspec.json.decode(text, type=dict[str, Any])
    found = fields.pop("v", 0)
    if type(found) is not int or not 1 <= found <= version:
        raise NewerVersion(f"this was written by a newer server (version {found}); update this one to change it")
    return msgspec.convert(fields, kind)
