"""The private servers the tests stand on: real, on free ports, gone afterwards."""

import socket

import psycopg
import pytest
import redis

from frontrow.core.redis_url import connect, connect_sync, disconnect, disconnect_sync
from tests.support.servers import Cluster, Sentinel, Valkey, free_port


def test_a_real_redis_protocol_server_answers(redis_url: str) -> None:
    with redis.Redis.from_url(redis_url) as client:
        assert client.set("k", "v")
        assert client.get("k") == b"v"


def test_every_postgresql_of_this_machine_answers(every_postgres_url: str) -> None:
    with psycopg.connect(every_postgres_url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_real_postgresql_answers(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        row = connection.execute("SELECT 1").fetchone()
    assert row == (1,)


async def test_every_kind_of_redis_url_reaches_a_server(
    own_valkey: Valkey, redis_cluster: Cluster, redis_sentinel: Sentinel
) -> None:
    for url in (own_valkey.url, own_valkey.unix_url, redis_cluster.url, redis_sentinel.url):
        client = connect(url)
        assert await client.set("a", "1")
        await disconnect(client)
        blocking = connect_sync(url)
        assert blocking.get("a") == b"1"
        disconnect_sync(blocking)


def test_a_killed_server_can_be_started_again(own_valkey: Valkey) -> None:
    own_valkey.kill()
    own_valkey.start()
    assert own_valkey.command("PING") == b"+PONG\r\n"


def test_a_chosen_port_is_for_our_server_and_for_nobodys_connection() -> None:
    port = free_port()
    with socket.socket() as anybody, pytest.raises(OSError, match="in use"):
        anybody.bind(("127.0.0.1", port))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    for _ in range(2):
        with socket.create_server(("127.0.0.1", port)), socket.create_connection(("127.0.0.1", port)):
            pass


def test_a_port_that_somebody_took_meanwhile_is_not_insisted_on() -> None:
    server = Valkey()
    with socket.create_server(("127.0.0.1", server.port)), server:
        assert server.command("PING") == b"+PONG\r\n"
