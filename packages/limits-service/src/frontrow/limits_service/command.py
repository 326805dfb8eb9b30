"""`frontrow-limits`: the command of the package. It needs no other library to tell what is missing."""

import argparse
import asyncio
import logging
import os
import secrets
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from frontrow.core.errors import ConfigError, FrontrowError

NEEDED = {"httptools": "httptools", "msgspec": "msgspec", "grpc": "grpcio", "google.protobuf": "protobuf"}
FILE_VARIABLE = "FRONTROW_LIMITS_FILE"


def main(arguments: Sequence[str] | None = None) -> None:
    """The console script."""
    given = make_parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s", stream=sys.stderr)
    try:
        sys.exit(_serve(given, list(sys.argv[1:] if arguments is None else arguments)))
    except FrontrowError as error:
        print(f"frontrow-limits: {error.message}", file=sys.stderr)
        sys.exit(2)


def make_parser() -> argparse.ArgumentParser:
    """The arguments of `frontrow-limits`."""
    parser = argparse.ArgumentParser(prog="frontrow-limits", description="Rate limits for every language.")
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", help="serve limits over HTTP and Envoy's rate limit protocol")
    serve.add_argument("file", nargs="?", help=f"a TOML file with rules (or {FILE_VARIABLE})")
    serve.add_argument("--http", help='where to listen for HTTP, like 127.0.0.1:8071, or "off"')
    serve.add_argument("--grpc", help='where to listen for gRPC, like 127.0.0.1:8081, or "off"')
    serve.add_argument("--workers", type=int, help="processes; more than one needs Redis")
    serve.add_argument("--check", action="store_true", help="check the file and end")
    serve.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    return parser


def _serve(given: argparse.Namespace, arguments: list[str]) -> int:
    missing = [package for module, package in NEEDED.items() if not _has(module)]
    if missing:
        raise ConfigError(f"{', '.join(missing)} is missing: pip install 'frontrow-limits[serve]'")
    from frontrow.limits_service.service_config import load_service_config

    file = given.file or os.environ.get(FILE_VARIABLE)
    if not file:
        raise ConfigError(f"name a TOML file with rules, or set {FILE_VARIABLE}=limits.toml")
    overrides: dict[str, Any] = {}
    for name in ("http", "grpc", "workers"):
        value = getattr(given, name)
        if value is not None and given.worker is None:  # a worker gets the addresses from its parent
            overrides[name] = value
    config = load_service_config(file, overrides=overrides)
    if given.check:
        print(f"{file}: {len(config.rules())} rules that count, {len(config.domains.limits())} limits of descriptors")
        return 0
    if config.settings.workers > 1 and given.worker is None:
        from frontrow.limits_service.workers import Workers

        return Workers(config.settings, arguments).run(_say_listening)
    return _run_one(config, given.worker)


def _run_one(config: Any, worker: int | None) -> int:
    from frontrow.limits_service.server import Server, WorkerPlace
    from frontrow.limits_service.workers import SECRET_VARIABLE

    folder = os.environ.get("FRONTROW_WORKER_FOLDER") if worker is not None else None
    secret = os.environ.get(SECRET_VARIABLE, "") if worker is not None else ""
    place = WorkerPlace(
        worker or 1,
        bytes.fromhex(secret) or secrets.token_bytes(16),
        Path(folder) if folder else None,
        shares_ports=worker is not None,
    )

    async def run() -> None:
        server = Server(config, place)
        await server.run(_say_listening, _end_of_input() if worker is not None else None)

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(run())
    return 0


def _say_listening(addresses: str) -> None:
    print(f"listening on {addresses}" if not addresses.startswith("listening") else addresses, flush=True)


async def _end_of_input() -> None:
    """Until the parent is gone."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), ended.set)
    await ended.wait()
    loop.remove_reader(sys.stdin.fileno())


def _loop_factory() -> Any:
    if find_spec("uvloop") is None:
        return None
    import uvloop

    return uvloop.new_event_loop


def _has(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


if __name__ == "__main__":
    main()
