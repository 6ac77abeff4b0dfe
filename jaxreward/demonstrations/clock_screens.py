"""Episodes on the screens of a made-up phone, as text: three things to do with its clock, and other applications.

They stand in for the episodes that GRACE (5.1, Android) takes from AndroidControl: the same three goals and the same
kind of state, the XML view hierarchy of a screen, at most a few kilobytes long. No emulator and no recording is behind
them: every screen is written by this file, and a seed varies its texts, numbers, sizes and ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, get_args
from xml.etree import ElementTree

import numpy as np

from jaxreward.demonstrations.texts import TextEpisode

Goal = Literal["timer", "stopwatch-running", "stopwatch-paused"]
"""What an expert does: enters six hours as a timer; starts the stopwatch; starts and pauses it."""

GOALS: tuple[Goal, ...] = get_args(Goal)

Widget = tuple[str, str, str, str]
"""Class, resource id, text and description of a node; one whose class ends in `*` is selected, or checked."""

Step = tuple[str, str]
"""An action in words, and the screen after it."""

_TABS = ("Alarm", "Clock", "Timer", "Stopwatch")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MEETINGS = ("Dentist", "Lunch with Ana", "Team meeting", "Piano lesson", "Call the bank", "Yoga", "Parents' evening")
_SETTINGS = ("Network & internet", "Connected devices", "Apps", "Notifications", "Battery", "Storage", "Display")


def clock_episodes(goal: Goal, count: int, seed: int = 0) -> tuple[TextEpisode, ...]:
    """Episodes of an expert that end as soon as the goal is reached.

    Raises:
        KeyError: no such goal.
    """
    play = {"timer": _enter_timer, "stopwatch-running": _start_stopwatch, "stopwatch-paused": _pause_stopwatch}[goal]
    return _episodes(lambda phone: _through(phone, play), count, seed)


def other_episodes(goal: Goal, count: int, seed: int = 0) -> tuple[TextEpisode, ...]:
    """Episodes in which a goal is never reached: in the calendar, the calculator, the settings and other tabs of the
    clock, and what an expert of the other goals does, on time or with other numbers. They take turns."""
    others = [_other_timer, _reset_stopwatch, _alarms]
    if goal != "timer":
        others.append(_enter_timer)
    if goal == "stopwatch-running":
        others.append(_only_paused)
    if goal == "stopwatch-paused":
        others.append(_start_stopwatch)
    plays: list[Callable[[_Phone], Iterator[Step]]] = [_calendar, _calculator, _settings, *others]
    turn = iter(range(count))

    def play(phone: _Phone) -> Iterator[Step]:
        chosen = plays[next(turn) % len(plays)]
        return _through(phone, chosen) if chosen in others else chosen(phone)

    return _episodes(play, count, seed + 1_000_003)


class _Phone:
    """What stays the same in an episode: size of the screen, ids, the time of day."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.width, self.height = ((1080, 2400), (1440, 3120), (1080, 1920))[int(rng.integers(3))]
        self.minute, self.battery = int(rng.integers(24 * 60)), int(rng.integers(5, 100))
        self.window = int(rng.integers(1000, 9999))

    def number(self, low: int, high: int) -> int:
        """An integer in [low, high]."""
        return int(self.rng.integers(low, high + 1))

    def screen(self, package: str, widgets: list[Widget]) -> str:
        """The view hierarchy of a screen."""
        self.minute += self.number(0, 1)
        root = ElementTree.Element("hierarchy", {"rotation": "0", "window": str(self.window)})
        status = [
            ("TextView", "clock", f"{self.minute // 60 % 24}:{self.minute % 60:02d}", ""),
            ("ImageView", "battery", "", f"Battery {self.battery} percent"),
        ]
        rows = [("com.example.systemui", *w) for w in status] + [(package, *w) for w in widgets]
        high = self.height // (len(rows) + 1)
        for k, (owner, kind, name, text, description) in enumerate(rows):
            left, top = self.number(0, 40), k * high + self.number(0, high // 4)
            ElementTree.SubElement(root, "node", {
                "index": str(k), "text": text, "resource-id": f"{owner}:id/{name}",
                "class": f"android.widget.{kind.rstrip('*')}", "content-desc": description,
                "clickable": str("Button" in kind).lower(), "selected": str(kind.endswith("*")).lower(),
                "bounds": f"[{left},{top}][{self.width - left},{top + high}]",
            })  # fmt: skip
        return ElementTree.tostring(root, encoding="unicode")

    def clock(self, tab: str, widgets: list[Widget]) -> str:
        """A tab of the clock."""
        tabs = [("Button*" if name == tab else "Button", f"tab_menu_{name.lower()}", "", name) for name in _TABS]
        return self.screen("com.example.deskclock", [("TextView", "action_bar_title", tab, ""), *widgets, *tabs])


def _episodes(play: Callable[[_Phone], Iterator[Step]], count: int, seed: int) -> tuple[TextEpisode, ...]:
    found = list[TextEpisode]()
    for k in range(count):
        phone = _Phone(np.random.default_rng([seed, k]))
        first = phone.screen("com.example.launcher", [
            *(("Button", f"icon_{phone.number(0, 99)}", name, name) for name in ("Clock", "Calendar", "Calculator")),
            ("TextView", "date", _DAYS[phone.number(0, 6)], ""),
        ])  # fmt: skip
        steps = list(play(phone))
        found.append(TextEpisode((first, *(screen for _, screen in steps)), tuple(action for action, _ in steps)))
    return tuple(found)


def _through(phone: _Phone, play: Callable[[_Phone], Iterator[Step]]) -> Iterator[Step]:
    """Into the clock, which shows the tab that was open last, and on."""
    if phone.rng.random() < 0.5:
        yield "tap Clock", _alarm_tab(phone)
    else:
        yield "tap Clock", _clock_tab(phone)
    yield from play(phone)


# ---- the clock


def _alarm_tab(phone: _Phone) -> str:
    alarms = list[Widget]()
    for k in range(phone.number(1, 3)):
        time = f"{phone.number(1, 12)}:{phone.number(0, 59):02d} {('AM', 'PM')[phone.number(0, 1)]}"
        alarms += [("TextView", f"digital_clock_{k}", time, ""), ("Switch*", f"onoff_{k}", "", "Alarm on")]
    return phone.clock("Alarm", [*alarms, ("Button", "fab", "", "Add alarm")])


def _clock_tab(phone: _Phone) -> str:
    time = f"{phone.minute // 60 % 24}:{phone.minute % 60:02d}"
    city = ("Berlin", "Lagos", "Lima", "Osaka")[phone.number(0, 3)]
    return phone.clock("Clock", [("TextView", "digital_clock", time, ""), ("TextView", "city_name", city, ""),
                                 ("Button", "fab", "", "Cities")])  # fmt: skip


def _timer_tab(phone: _Phone, digits: str) -> str:
    shown = digits.zfill(6)
    time = f"{shown[:2]}h {shown[2:4]}m {shown[4:]}s"
    keys = [("Button", f"timer_setup_digit_{k}", str(k), "") for k in range(10)]
    start = [("Button", "fab", "", "Start")] if digits.strip("0") else []
    return phone.clock("Timer", [("TextView", "timer_setup_time", time, time), *keys, *start])


def _typed(phone: _Phone, digits: str) -> Iterator[Step]:
    yield "tap Timer", _timer_tab(phone, "")
    for k, digit in enumerate(digits):
        yield f"tap {digit}", _timer_tab(phone, digits[: k + 1])


def _enter_timer(phone: _Phone) -> Iterator[Step]:
    yield from _typed(phone, "60000")


def _other_timer(phone: _Phone) -> Iterator[Step]:
    yield from _typed(phone, ("600", "6000", "10000", "50000", "160000", "3000", "60")[phone.number(0, 6)])


def _stopwatch_tab(phone: _Phone, seconds: int, running: bool) -> str:
    time = f"{seconds // 60}:{seconds % 60:02d}" if seconds >= 60 else str(seconds)
    buttons: list[Widget] = [("Button", "fab", "", "Pause" if running else "Start")]
    if running:
        buttons.append(("Button", "right_button", "Lap", "Lap"))
    elif seconds:
        buttons += [("Button", "left_button", "Reset", "Reset"), ("Button", "right_button", "Share", "Share")]
    hundredths = f"{phone.number(0, 99):02d}" if seconds else "00"
    return phone.clock("Stopwatch", [("TextView", "stopwatch_time_text", time, ""),
                                     ("TextView", "stopwatch_hundredths_text", hundredths, ""), *buttons])  # fmt: skip


def _start_stopwatch(phone: _Phone) -> Iterator[Step]:
    yield "tap Stopwatch", _stopwatch_tab(phone, 0, False)
    yield "tap Start", _stopwatch_tab(phone, phone.number(1, 5), True)


def _pause_stopwatch(phone: _Phone) -> Iterator[Step]:
    yield from _start_stopwatch(phone)
    yield "tap Pause", _stopwatch_tab(phone, phone.number(6, 300), False)


def _only_paused(phone: _Phone) -> Iterator[Step]:
    """A stopwatch that somebody left paused."""
    yield "tap Stopwatch", _stopwatch_tab(phone, phone.number(6, 300), False)


def _reset_stopwatch(phone: _Phone) -> Iterator[Step]:
    yield "tap Stopwatch", _stopwatch_tab(phone, 0, False)
    yield "tap Alarm", _alarm_tab(phone)


def _alarms(phone: _Phone) -> Iterator[Step]:
    yield "tap Alarm", _alarm_tab(phone)
    yield "tap Add alarm", phone.screen("com.example.deskclock", [
        ("TextView", "hours", str(phone.number(1, 12)), ""), ("TextView", "minutes", f"{phone.number(0, 59):02d}", ""),
        ("Button", "cancel_button", "Cancel", ""), ("Button", "ok_button", "OK", ""),
    ])  # fmt: skip


# ---- other applications


def _calendar(phone: _Phone) -> Iterator[Step]:
    for action in ("tap Calendar", "swipe left", "tap Today")[: phone.number(1, 3)]:
        meetings = [("TextView", f"event_{phone.number(0, 999)}", _MEETINGS[phone.number(0, 6)], "")
                    for _ in range(phone.number(1, 4))]  # fmt: skip
        day = ("TextView", "day", f"{_DAYS[phone.number(0, 6)]} {phone.number(1, 28)}", "")
        yield action, phone.screen("com.example.calendar", [day, *meetings, ("Button", "fab", "", "New event")])


def _calculator(phone: _Phone) -> Iterator[Step]:
    keys = [("Button", f"digit_{k}", str(k), str(k)) for k in range(10)]
    formula = ""
    yield "tap Calculator", phone.screen("com.example.calculator", [("EditText", "formula", "", ""), *keys])
    for _ in range(phone.number(1, 4)):
        digit = str(phone.number(0, 9))
        formula += digit
        yield f"tap {digit}", phone.screen("com.example.calculator", [("EditText", "formula", formula, ""), *keys])


def _settings(phone: _Phone) -> Iterator[Step]:
    chosen = phone.rng.permutation(len(_SETTINGS))[:5]
    rows: list[Widget] = [("TextView", "title", _SETTINGS[k], "") for k in chosen]
    yield "open Settings", phone.screen("com.example.settings", [("TextView", "search", "Search settings", ""), *rows])
    name, switch = _SETTINGS[chosen[0]], ("Switch*", "Switch")[phone.number(0, 1)]
    inside: list[Widget] = [("TextView", "title", name, ""), (switch, "switch_widget", "", f"Use {name}")]
    yield f"tap {name}", phone.screen("com.example.settings", inside)
