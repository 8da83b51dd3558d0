"""What the engine has been told and has not done yet."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from dataclasses import dataclass
from multiprocessing.connection import Connection

import msgspec

from app.engine.protocol import Command, Question, Quit, Stop, Work, decode_command

GRACE_SECONDS = 1.0
"""How long an engine that is to end may take over doing so in an orderly way."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Job:
    """Work on the models, numbered in the order in which it was asked for."""

    number: int
    command: Work


class Inbox:
    """Commands by when they matter: Stop and Quit at once, questions between passes, jobs in turn.

    One thread puts, another takes.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._jobs: deque[Job] = deque()
        self._questions: deque[Question] = deque()
        self._last = 0
        self._stopped = 0
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether Quit has come."""
        return self._closed

    @property
    def empty(self) -> bool:
        """Whether nothing waits to be done, Quit included."""
        with self._changed:
            return not (self._closed or self._questions or self._jobs)

    def put(self, command: Command) -> None:
        """Takes in a command. A Stop is for the jobs before it, and for none that follows."""
        with self._changed:
            if isinstance(command, Stop):
                self._stopped = self._last
            elif isinstance(command, Quit):
                self._closed = True
            elif isinstance(command, Question):
                self._questions.append(command)
            else:
                self._last += 1
                self._jobs.append(Job(self._last, command))
            self._changed.notify()

    def next(self) -> Job | Question | None:
        """Waits for a question or a job; None once Quit has come."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._questions or self._jobs)
            if self._closed:
                return None
            return self._questions.popleft() if self._questions else self._jobs.popleft()

    def question(self) -> Question | None:
        """The next question, if one waits."""
        with self._changed:
            return self._questions.popleft() if self._questions else None

    def stopped(self, job: Job) -> bool:
        """Whether this job has been told to end."""
        return self._closed or job.number <= self._stopped


def receive(connection: Connection, inbox: Inbox) -> None:
    """Puts what arrives into the inbox; at Quit, or once the other side is gone, ends the process.

    It runs in a thread of its own: even an engine that is deep in a library's code ends.
    """
    while not inbox.closed:
        try:
            data = connection.recv_bytes()
        except (EOFError, OSError):
            _log.info("the other side of the pipe is gone")
            data = None
        command = Quit() if data is None else _decoded(data)
        if command is not None:
            inbox.put(command)
    time.sleep(GRACE_SECONDS)
    _log.warning("the engine was still at work and is ended")
    os._exit(0)


def _decoded(data: bytes) -> Command | None:
    """The command in these bytes; None for what is none, which the log tells of."""
    try:
        return decode_command(data)
    except msgspec.DecodeError as error:
        _log.warning("a command that cannot be read is ignored: %s", error)
        return None
