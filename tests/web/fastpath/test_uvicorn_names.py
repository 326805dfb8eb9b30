"""Canary: the fast path knows the uvicorn that is installed, and says in a sentence when it does not."""

import ast
import inspect
import re
import tomllib
from pathlib import Path

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import Server

from frontrow.core.errors import ConfigError
from frontrow.web.fastpath import connection_flow, protocol, uvicorn_names
from frontrow.web.fastpath.pending_replies import PendingReply
from frontrow.web.fastpath.protocol import FastPathProtocol, fast_path
from frontrow.web.guard import guarded_protocol

ROOT = Path(__file__).parents[3]


def test_uvicorn_has_every_name_that_the_fast_path_uses() -> None:
    changed = uvicorn_names.changed_names()
    assert not changed, (
        f"uvicorn {uvicorn.__version__} has no {', '.join(changed)}: read its changes and adapt "
        "web/fastpath/protocol.py and web/fastpath/uvicorn_names.py, or keep the older series in pyproject.toml"
    )


def test_uvicorn_is_of_the_series_that_pyproject_allows() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (wanted,) = [one for one in project["optional-dependencies"]["room"] if one.startswith("uvicorn")]
    major, minor = uvicorn.__version__.split(".")[:2]
    assert wanted == f"uvicorn>={major}.{minor},<{major}.{int(minor) + 1}"


def test_a_uvicorn_without_one_of_the_names_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uvicorn_names, "CALLED", uvicorn_names.CALLED | {"start_asgi_task": ["cycle"]})
    with pytest.raises(
        ConfigError, match=r"which has no HttpToolsProtocol.start_asgi_task\(cycle\); set server.hot_lane"
    ):
        fast_path({})


def test_the_list_names_what_the_class_overrides_calls_and_reads() -> None:
    overridden = {name for name in vars(FastPathProtocol) if hasattr(HttpToolsProtocol, name)}
    assert {name for name in overridden if not name.startswith("__")} == set(uvicorn_names.OVERRIDDEN)
    used = attributes_of_self(protocol)
    inherited = {name for name in used if name in uvicorns_own() and name not in vars(FastPathProtocol)}
    assert inherited - {"url"} == set(uvicorn_names.CALLED) | set(uvicorn_names.CONNECTION)
    assert {"disconnected", "keep_alive", "message_event", "response_complete"} <= set(dir(PendingReply))
    assert "uvicorn.protocols" in inspect.getsource(connection_flow)


def test_nothing_else_of_the_project_imports_uvicorns_inner_modules() -> None:
    inner = re.compile(r"from uvicorn\.(?!config\b|server\b)|import uvicorn\.")
    sources = (ROOT / "src/frontrow").rglob("*.py")
    found = {path.name for path in sources if inner.search(path.read_text())}
    assert found == {"protocol.py", "connection_flow.py", "uvicorn_names.py", "guarded_protocol.py"}
    imported = re.findall(r"from uvicorn\.\S+ import .+", inspect.getsource(guarded_protocol))
    assert "from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol" in imported
    assert len(imported) == 3


def test_the_server_keeps_its_signals_where_we_look() -> None:
    server = Server(uvicorn.Config(lambda scope: None, log_config=None))  # type: ignore[arg-type, return-value]
    assert server._captured_signals == []
    assert list(inspect.signature(Server.handle_exit).parameters) == ["self", "sig", "frame"]


def attributes_of_self(module: object) -> set[str]:
    """The attributes of `self` that a module names."""
    tree = ast.parse(inspect.getsource(module))  # type: ignore[arg-type]
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    }


def uvicorns_own() -> set[str]:
    """The methods of uvicorn's protocol, and the attributes that it sets."""
    return set(vars(HttpToolsProtocol)) | set(HttpToolsProtocol.__init__.__code__.co_names) | {"url"}
