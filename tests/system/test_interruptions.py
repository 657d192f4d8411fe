"""Ctrl-C is remembered where an exception may get lost, and is left alone elsewhere."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from private_gsd.system.interruptions import InterruptGuard, raising_handler


@pytest.fixture(autouse=True)
def usual_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_is_raised_again() -> None:
    remembered = InterruptGuard()
    with remembered.listening():
        remembered.check()
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        # The exception got lost, as in a destructor; the next check raises it again.
        with pytest.raises(KeyboardInterrupt):
            remembered.check()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        remembered.check()


def test_handlers_of_others_stay() -> None:
    def mine(*_: object) -> None:
        pass

    signal.signal(signal.SIGINT, mine)
    assert raising_handler() is None
    with InterruptGuard().listening():
        assert signal.getsignal(signal.SIGINT) is mine
    assert signal.getsignal(signal.SIGINT) is mine


def test_other_threads_have_no_handler() -> None:
    found: list[object] = []

    def look() -> None:
        found.append(raising_handler())
        with InterruptGuard().listening():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [None, signal.default_int_handler]


def test_an_outer_one_is_the_handler_within() -> None:
    outer, inner = InterruptGuard(), InterruptGuard()
    with outer.listening():
        assert raising_handler() is outer
        with inner.listening():
            assert raising_handler() is outer
