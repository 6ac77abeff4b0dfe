"""Options from the words of a command line, their help and their completion."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import pytest

from jaxreward.cli import main
from jaxreward.commands.completion import script
from jaxreward.commands.help import page_lines
from jaxreward.commands.options import options_of
from jaxreward.commands.resolve import parse
from jaxreward.commands.table import SUMMARIES, commands_of
from jaxreward.config import Arg
from jaxreward.errors import UserError

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Oven:
    """An oven."""

    heat: float = 180.0
    """Its heat."""
    fan: bool = True
    """Blow."""


@dataclass(frozen=True)
class Bakery:
    """Bake. With settings of every kind."""

    bread: Annotated[str, Arg(positional="BREAD")] = ""
    """What to bake."""
    loaves: Annotated[int, Arg(short="-n")] = 3
    """How many. More take longer."""
    wait_s: float | None = None
    """How long to wait."""
    mood: str | None = None
    """How the baker is."""
    sizes: tuple[int, ...] = ()
    """How large."""
    shape: Literal["round", "long"] = "round"
    """How it looks."""
    flour: tuple[str, ...] = ("rye",)
    """What is in it."""
    seed: Annotated[tuple[str, ...], Arg(adds=True)] = ("none",)
    """What is on it."""
    option: Annotated[tuple[str, ...], Arg(keyed=True)] = ("salt=1", "sugar=0")
    """Each is KEY=VALUE."""
    out: Path = Path("shelf")
    """Folder where it goes."""
    quick: Annotated[bool, Arg(short="-q")] = False
    """Hurry."""
    oven: Oven = field(default_factory=Oven)
    """The oven."""
    second: Annotated[Oven, Arg(flat=True)] = field(default_factory=lambda: Oven(heat=90.0))
    """Another one."""
    secret: Annotated[str, Arg(hidden=True)] = "hidden"
    """Not for people."""


def bake(words: str, base: Bakery | None = None) -> Bakery:
    return parse(Bakery, base, shlex.split(words), "bake.py")


@pytest.mark.parametrize(
    ("words", "name", "value"),
    [
        ("--loaves 5", "loaves", 5),
        ("--loaves=5", "loaves", 5),
        ("--loaves 1e6", "loaves", 1_000_000),
        ("--loaves 2,000", "loaves", 2000),
        ("--loaves 2_000", "loaves", 2000),
        ("--loaves -4", "loaves", -4),
        ("--wait-s 2.5", "wait_s", 2.5),
        ("--wait_s inf", "wait_s", float("inf")),
        ("--wait-s 3 --wait-s none", "wait_s", None),
        ("--wait-s -1e-3", "wait_s", -0.001),
        ("--mood none", "mood", "none"),
        ("--sizes 1 -2 3e2", "sizes", (1, -2, 300)),
        ("-n5", "loaves", 5),
        ("-qn5", "loaves", 5),
        ("-- -odd", "bread", "-odd"),
        ("--shape long", "shape", "long"),
        ("--flour oat rice", "flour", ("oat", "rice")),
        ("--flour oat --flour rice", "flour", ("rice",)),
        ("--flour oat --flour", "flour", ()),
        ("--seed oat --seed rice nut", "seed", ("oat", "rice", "nut")),
        ("--option salt=2 --option=nuts=1", "option", ("sugar=0", "salt=2", "nuts=1")),
        ("--out a/b", "out", Path("a/b")),
        ("-q", "quick", True),
        ("--quick --no-quick", "quick", False),
        ("--oven.heat 200", "oven", Oven(heat=200.0)),
        ("--oven.no-fan", "oven", Oven(fan=False)),
        ("--heat 80", "second", Oven(heat=80.0)),
        ("rolls --loaves 2", "bread", "rolls"),
        ("--loaves 2 rolls", "bread", "rolls"),
        ("", "secret", "hidden"),
    ],
)
def test_options_given_are_set(words, name, value):
    assert getattr(bake(words), name) == value


def test_options_not_given_keep_their_values():
    base = Bakery(loaves=9, oven=Oven(heat=1.0), flour=("corn",))
    assert bake("--oven.no-fan", base) == Bakery(loaves=9, oven=Oven(heat=1.0, fan=False), flour=("corn",))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--loave 5", "there is no option --loave; did you mean --loaves?"),
        ("--zzz red", "there is no option --zzz; bake.py --help lists what there is"),
        ("--secret x", "there is no option --secret"),
        ("--loaves", "--loaves needs a value"),
        ("--loaves --quick", "--loaves needs a value"),
        ("--loaves 2.5", "--loaves must be a whole number, not '2.5'"),
        ("--loaves inf", "--loaves must be a whole number, not 'inf'"),
        ("--loaves none", "--loaves must be a whole number, not 'none'"),
        ("--loaves 1,5", "--loaves must be a whole number, not '1,5'"),
        ("--sizes 64,64", "--sizes must be a whole number, not '64,64'; put blanks between several"),
        ("--sizes 1,000", "put blanks between several"),
        ("--out=", "--out needs a value"),
        ("--wait-s long", "--wait-s must be a number, not 'long'"),
        ("--shape lang", "--shape must be one of round, long, not 'lang'; did you mean long?"),
        ("--quick=yes", "--quick takes no value"),
        ("-x", "there is no option -x"),
        ("rolls buns", "there is no place for 'buns' here"),
    ],
)
def test_a_user_error_is_one_sentence(words, says):
    with pytest.raises(UserError) as raised:
        bake(words)
    assert says in str(raised.value)


def test_help_of_settings_without_a_page(capsys):
    with pytest.raises(SystemExit) as left:
        bake("--help")
    text = capsys.readouterr().out
    assert left.value.code == 0
    assert "usage: bake.py [BREAD] [options]" in text and "Bake. With settings of every kind." in text
    assert "--wait-s SECONDS" in text and "--shape round|long" in text and "How it looks. [round]" in text
    assert "--oven.heat X" in text and "[180]" in text and "--heat X" in text and "[90]" in text
    assert "--oven.fan" in text and "Blow. [on; --oven.no-fan turns it off]" in text and "secret" not in text


# ---- the pages


PAGES = {name: command for first in SUMMARIES for name, command in commands_of(first).items()}


def test_every_command_has_a_page():
    assert {name.partition(" ")[0] for name in PAGES} == set(SUMMARIES)


@pytest.mark.parametrize("command", PAGES)
def test_the_first_page_fits_a_terminal_of_80_x_24(command):
    lines = page_lines(PAGES[command], "", None, 80)
    assert len(lines) <= 24 and max(map(len, lines)) <= 80


@pytest.mark.parametrize("words", [[], ["--help"], ["runs"]])
def test_so_does_the_list_of_commands(words, capsys):
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 80


@pytest.mark.parametrize("command", PAGES)
def test_the_topics_have_every_option_once(command):
    page = PAGES[command]
    assert all(option.text.endswith(".") for option in options_of(page.settings)), "every option says what it means"
    if page.topics:
        listed = [option.path for topic in page.topics for option in page.options(topic)]
        assert sorted(listed) == sorted(option.path for option in options_of(page.settings))
        assert {option.path for option in page.options()} <= set(listed) and len(page.options()) == len(page.main)


@pytest.mark.parametrize("command", PAGES)
def test_the_examples_of_a_page_are_its_command(command):
    for example in PAGES[command].examples:
        words = example.partition(" >> ")[0].removeprefix(command).split()
        assert example.startswith(command)
        parse(PAGES[command].settings, None, words, command)


def test_help_tells_the_defaults_of_the_task_with_their_units(capsys):
    for words, says in (
        (["evolve", "--help"], "[200,000 steps]"),
        (["evolve", "--task", "ant", "--help"], "[400,000 steps]"),
        (["evolve", "--help", "llm"], "[180 s]"),
        (["evolve", "-h", "budget"], "[10 USD]"),
        (["evolve", "--preset", "paper-budget", "--help", "training"], "[500,000 steps]"),
        (["evolve", "--help", "all"], "--ppo.no-reset-memory turns it off"),
        (["evolve", "--help=llm"], "[180 s]"),
        (["--help", "film"], "usage: jaxreward film"),
        (["film", "--help", str(ROOT / "interfaces" / "hopper" / "expert.py")], "usage: jaxreward film"),
        (["film", str(ROOT / "interfaces" / "hopper" / "expert.py"), "--help", "ppo"], "[30]"),
        (["compare", "--tasks", "hopper", "--help", "ppo"], "[30]"),
        (["evolve", "--task", "hopper", "--help"], "[1 seed]"),
        (["tell", "--help"], "answer the requests of `jaxreward ask`"),
        (["runs", "tail", "--help"], "-f, --follow"),
        (["prompt", "--help"], "usage: jaxreward prompt show"),
        (["--help"], "completion"),
    ):
        try:
            status = main(words)
        except SystemExit as left:
            status = left.code
        assert status == 0 and says in capsys.readouterr().out, words
    assert main(["evolve", "--help", "trainin"]) == 2
    assert "did you mean 'training'?" in capsys.readouterr().err


@pytest.mark.parametrize("columns", ["5", "25", "40"])
def test_a_narrow_terminal_has_help_too(columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    with pytest.raises(SystemExit):
        main(["runs", "tail", "--help"])
    assert max(map(len, capsys.readouterr().out.splitlines()[3:-1])) <= max(30, int(columns))


def test_the_last_of_two_flags_counts_for_the_defaults_too(capsys, tmp_path):
    (tmp_path / "a.toml").write_text("candidates = 3\n")
    (tmp_path / "b.toml").write_text("candidates = 5\nsteps = 1e5\nmax_usd = 2.0\n[llm]\nretries = 1\n")
    configs = ["--config", str(tmp_path / "a.toml"), "--config", str(tmp_path / "b.toml")]
    said = ["--proposer", "llm", "--model", "openai/x", "--price", "openai/x=1,1"]
    words = ["evolve", "--task", "hopper", "--task", "xland-easy", *configs, *said, "--dry-run", "--json"]
    assert main(words) == 0
    settings = json.loads(capsys.readouterr().out.splitlines()[-1])["settings"]
    assert (settings["task"], settings["seeds"], settings["candidates"], settings["steps"]) == (
        "xland-easy", 2, 5, 100_000
    )  # fmt: skip
    assert (settings["llm"]["max_usd"], settings["llm"]["retries"]) == (2.0, 1), "flat as on a command line, or a table"
    assert main(["evolve", "--config", "--dry-run"]) == 2
    assert "--config needs a value" in capsys.readouterr().err


def test_options_without_effect_are_refused(capsys):
    for words in (["ask", "--track", "wandb"], ["tell", "--wait-s", "30"], ["tell", "--name", "x", "--preset=quick"]):
        assert main(words) == 2 and "has no use for --" in capsys.readouterr().err


def test_a_misspelt_config_option_gets_a_suggestion(capsys):
    assert main(["evolve", "--confg", "x.toml"]) == 2
    assert "did you mean --config?" in capsys.readouterr().err
    assert main(["evolve", "--steps", "1e5", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["settings"]["steps"] == 100_000


# ---- completion


COMPLETED = [
    ("jaxreward ev", {"evolve"}),
    ("jaxreward runs ", {"list", "show", "tail", "compare", "fetch", "track"}),
    ("jaxreward evolve --ta", {"--task", "--task-arg"}),
    ("jaxreward evolve --task xland-", {"xland-easy", "xland-medium", "xland-hard"}),
    ("jaxreward evolve --baselines sparse ", {"sparse", "dense", "best-of-n"}),
    ("jaxreward evolve --ppo.learn", {"--ppo.learning-rate"}),
    ("jaxreward evolve --preset ", {"quick", "paper-budget", "paper"}),
    ("jaxreward evolve --help l", {"llm"}),
    ("jaxreward export mine.py --to g", {"gymnasium"}),
    ("jaxreward runs tail --fol", {"--follow"}),
    ("jaxreward tasks panda-t", {"panda-tracking"}),
]
_BASH = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
$(complete -p jaxreward | sed 's/.*-F \\([^ ]*\\).*/\\1/')
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("completion")
    for shell in ("bash", "fish"):
        (folder / shell).write_text(script(shell))
    return folder


@pytest.mark.parametrize(("line", "words"), COMPLETED)
def test_bash_completes(line, words, scripts):
    typed = line.split(" ")
    found = subprocess.run(
        ["bash", "-c", _BASH, "bash", str(scripts / "bash"), *typed], capture_output=True, text=True, check=True
    )  # fmt: skip
    assert set(found.stdout.split()) == words


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish here")
@pytest.mark.parametrize(
    ("line", "words"), [c for c in COMPLETED if "sparse" not in c[0]]
)  # a second value is not listed
def test_fish_completes(line, words, scripts):
    order = f"source {scripts / 'fish'}; complete --do-complete {shlex.quote(line)}"
    found = subprocess.run(["fish", "--no-config", "-c", order], capture_output=True, text=True, check=True)
    assert words <= {row.split("\t")[0] for row in found.stdout.splitlines()}


def test_completion_wants_a_shell(capsys):
    assert main(["completion"]) == 2 and "say which shell" in capsys.readouterr().err
    assert main(["completion", "bsh"]) == 2 and "did you mean bash?" in capsys.readouterr().err
    assert main(["completion", "bash"]) == 0 and "complete" in capsys.readouterr().out
