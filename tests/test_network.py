"""The suite's promise that nothing leaves this machine."""

import asyncio
import socket

import pytest

# TEST-NET-1 and an unregistrable name: nobody is there, should the guard fail.
OUTSIDE_ADDRESS = ("192.0.2.1", 9)
OUTSIDE_NAME = "memseal.invalid"


def test_connect_to_another_machine_is_refused(refused_connections: list[str]) -> None:
    with socket.socket() as plain, pytest.raises(AssertionError, match=r"socket\.connect"):
        plain.connect(OUTSIDE_ADDRESS)
    assert len(refused_connections) == 1
    refused_connections.clear()


def test_datagram_to_another_machine_is_refused(refused_connections: list[str]) -> None:
    with (
        socket.socket(type=socket.SOCK_DGRAM) as plain,
        pytest.raises(AssertionError, match=r"socket\.sendto"),
    ):
        plain.sendto(b"", OUTSIDE_ADDRESS)
    refused_connections.clear()


def test_name_of_another_machine_is_not_looked_up(refused_connections: list[str]) -> None:
    with pytest.raises(AssertionError, match=OUTSIDE_NAME):
        socket.create_connection((OUTSIDE_NAME, 9))
    refused_connections.clear()


def test_refusal_that_the_code_swallowed_fails_its_test(
    pytester: pytest.Pytester, refused_connections: list[str]
) -> None:
    pytester.makeconftest("from tests.conftest import refused_connections")
    pytester.makepyfile(
        """
        import contextlib, socket

        def test_swallows():
            with contextlib.suppress(AssertionError), socket.socket() as plain:
                plain.connect(("192.0.2.1", 9))
        """
    )
    pytester.runpytest("-o", "asyncio_default_fixture_loop_scope=function").assert_outcomes(passed=1, errors=1)
    refused_connections.clear()


async def test_connection_on_this_machine_goes_through() -> None:
    answered = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answered.set()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        _, writer = await asyncio.open_connection("localhost", port)
        await answered.wait()
        writer.close()
