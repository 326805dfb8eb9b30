"""Wallet passes as files, as phones take them."""

from typing import Final

from litestar import Response

from frontrow.boxoffice.tickets.wallet_passes import AppleFile

PRIVATE: Final = {"cache-control": "private, no-store"}


def apple_answer(file: AppleFile, name: str) -> Response[bytes]:
    """The file, as phones take it. `name` is an id."""
    headers = PRIVATE | {"content-disposition": f'attachment; filename="{name}.{file.ending}"'}
    return Response(file.body, headers=headers, media_type=file.media_type)
