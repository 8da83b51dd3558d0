"""Sending must hold nobody up."""

from __future__ import annotations

import multiprocessing
import threading

import pytest

from app.engine.inbox import Inbox, receive
from app.engine.outbox import Outbox
from app.engine.protocol import CountTokens, Quit, TokenCount, decode_message, encode


def test_a_pipe_that_nobody_reads_holds_no_sender_up() -> None:
    near, far = multiprocessing.Pipe()
    outbox = Outbox(far)
    for number in range(20_000):  # many times what a pipe holds
        outbox.put(TokenCount(number, 2**40))
    received = [decode_message(near.recv_bytes()) for _ in range(20_000)]
    assert received == [TokenCount(number, 2**40) for number in range(20_000)]
    outbox.close(30)
    near.close()
    far.close()


def test_a_pipe_that_is_gone_ends_the_sender_quietly() -> None:
    near, far = multiprocessing.Pipe()
    outbox = Outbox(far)
    near.close()
    outbox.put(TokenCount(1, 1))
    outbox.close(30)
    assert "engine sender" not in [thread.name for thread in threading.enumerate()]
    far.close()


def test_what_cannot_be_sent_fails_where_it_was_made() -> None:
    near, far = multiprocessing.Pipe()
    outbox = Outbox(far)
    with pytest.raises(TypeError):
        outbox.put(TokenCount(1, object()))  # type: ignore[arg-type]
    outbox.put(TokenCount(2, 2))
    assert decode_message(near.recv_bytes()) == TokenCount(2, 2)
    outbox.close(30)
    near.close()
    far.close()


def test_the_reader_minds_what_it_can_read_and_ends_the_process_after_quit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    codes: list[int] = []
    monkeypatch.setattr("os._exit", codes.append)
    monkeypatch.setattr("app.engine.inbox.GRACE_SECONDS", 0)
    near, far = multiprocessing.Pipe()
    inbox = Inbox()
    for data in (b"", b"\xc1nonsense", b"\x81\xa4type\xa5Dance", encode(CountTokens(1, "x"))):
        near.send_bytes(data)
    near.send_bytes(encode(Quit()))
    receive(far, inbox)
    assert inbox.question() == CountTokens(1, "x")
    assert inbox.closed
    assert codes == [0]
    near.close()
    far.close()
