"""Reads deploy/compose.yaml and its env file as Docker Compose does: what a container's environment is."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path("deploy")
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
_VARIABLE = re.compile(r"\$\{(\w+)(?::\?([^}]*))?\}")


class Missing(Exception):
    """A variable that must be set is not."""


def read_env(path: Path) -> dict[str, str]:
    """The lines of an env file, empty values too."""
    lines = (line.strip() for line in path.read_text().splitlines())
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {name: value for name, _, value in pairs}


def filled(text: str, known: Mapping[str, str]) -> str:
    """A text of the compose file with its variables put in."""

    def value(found: re.Match[str]) -> str:
        given = known.get(found[1], "")
        if found[2] is not None and not given:
            raise Missing(f"{found[1]}: {found[2]}")
        return given

    return _VARIABLE.sub(value, text)


def environment(service: str, env_file: Mapping[str, str]) -> dict[str, str]:
    """What a container of this service is started with, besides its image's own."""
    described = COMPOSE["services"][service]
    own = {name: filled(str(value), env_file) for name, value in described.get("environment", {}).items()}
    return ({} if "env_file" not in described else dict(env_file)) | own


def image_environment() -> dict[str, str]:
    """The ENV line of the Dockerfile."""
    line = next(line for line in (DEPLOY / "Dockerfile").read_text().splitlines() if line.startswith("ENV "))
    return dict(pair.split("=", 1) for pair in line.split()[1:])  # type: ignore[misc]
