"""Signals become a flag with a reason and an exit code."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from jaxreward.runs import REQUEUE_EXIT_CODE, StopSignal
from jaxreward.runs.signals import SCHEDULER


def send(number):
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_scheduler_asks_to_stop_and_to_requeue(number):
    with StopSignal() as stop:
        assert not stop.requested and stop.exit_code == 0
        send(number)
        assert stop.requested and stop.reason == number.name
    assert stop.exit_code == REQUEUE_EXIT_CODE == os.EX_TEMPFAIL


def test_the_first_interrupt_asks_and_the_second_insists():
    with StopSignal() as stop:
        send(signal.SIGINT)
        assert stop.reason == "SIGINT" and stop.exit_code == 130
        with pytest.raises(KeyboardInterrupt):
            send(signal.SIGINT)


def test_a_scheduler_outranks_an_interrupt():
    with StopSignal() as stop:
        send(signal.SIGINT)
        send(signal.SIGTERM)
        assert stop.reason == "SIGTERM" and stop.exit_code == REQUEUE_EXIT_CODE


def test_former_handlers_return():
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)]
    with pytest.raises(RuntimeError), StopSignal():
        raise RuntimeError
    assert before == [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)]


def test_outside_the_main_thread_nothing_is_watched():
    seen = []

    def work():
        with StopSignal() as stop:
            seen.append(stop.requested)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [False]


def test_a_signal_before_the_search_is_remembered():
    """One that watches from the start of a command hands on its signal to that which stops the search."""
    with StopSignal(SCHEDULER) as early:
        os.kill(os.getpid(), signal.SIGUSR1)
        with StopSignal() as stop:
            assert early.requested and stop.requested and stop.exit_code == REQUEUE_EXIT_CODE
        with StopSignal() as again:
            os.kill(os.getpid(), signal.SIGTERM)
            assert again.reason == "SIGTERM"
        assert early.reason == "SIGUSR1"
