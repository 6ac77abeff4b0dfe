"""RDA: subtasks first, a judge after every training, and what it saw in what comes next."""

from __future__ import annotations

import pytest

from jaxreward.errors import InvalidSetting
from jaxreward.records import Failure, Seen, Watched
from jaxreward.search import make_strategy
from jaxreward.search.seeding import derive_rng

SUBTASKS = "- reach: come near\n- hold: close the fingers"


def seen(**scores):
    return Watched(subtasks={name: (Seen(score=score, why=f"{name} as such"),) for name, score in scores.items()})


class Search:
    """A search whose results are given by hand."""

    def __init__(self, result, **options):
        self.strategy, self.result = make_strategy("rda", **options), result
        self.state = self.strategy.init()

    def ask(self, n=8):
        return self.strategy.ask(self.state, n, derive_rng(0, "ask", self.state.generation))

    def tell(self, *results):
        self.state = self.strategy.tell(self.state, results)

    def words(self, words="", id="", **more):
        """Answer the requests for words, all alike."""
        requests = self.ask()
        self.tell(*(self._answer(r, words) for r in requests))
        return requests

    def _answer(self, request, words):
        parents = tuple(parent.candidate.id for parent in request.parents)
        if words:
            return self.result(request.id, None, operator=request.operator, parents=parents, words=words)
        failed = self.result(request.id, None, operator=request.operator, parents=parents, stage="declined", source="")
        return failed

    def train(self, *scores, n=8):
        requests = self.ask(n)
        assert len(requests) >= len(scores)
        found = [
            self.result(r.id, mean, operator=r.operator, parents=tuple(p.candidate.id for p in r.parents))
            for r, mean in zip(requests, scores, strict=False)
        ]
        self.tell(*found)
        return requests, found

    def watch(self, *scores):
        """Answer what a judge is asked, in order, with the score of `reach`."""
        requests = self.ask()
        assert {r.operator for r in requests} == {"watch"} and len(requests) == len(scores)
        self.tell(*(self._answer(r, seen(reach=s).as_words()) for r, s in zip(requests, scores, strict=True)))
        return requests

    @property
    def best(self):
        found = self.strategy.best(self.state)
        return found.candidate.id if found else None


def words_of(answer):
    return answer.words if answer is not None else ""


def operators(requests):
    return {request.operator for request in requests}


def test_an_iteration(result):
    search = Search(result, samples=2)
    assert operators(search.words(SUBTASKS)) == {"divide"}
    requests, (one, two) = search.train(0.9, 0.1)
    assert len(requests) == 2 and operators(requests) == {"compose"}
    assert all(words_of(request.plan) == SUBTASKS for request in requests)
    watched = search.watch(0.2, 0.7)
    assert [request.parents[0] for request in watched] == [one, two]
    assert search.best == two.candidate.id, "the judge decides, not success"
    (revise,) = search.words("- reach: come near, and stay\n- hold: close the fingers")
    assert revise.operator == "revise" and revise.parents == (two,)
    assert Watched.read(words_of(revise.watched)) == seen(reach=0.7)
    requests, _ = search.train(0.5, 0.5)
    assert operators(requests) == {"amend"} and len(requests) == 2
    for request in requests:
        assert request.parents == (two,) and "and stay" in words_of(request.plan)
        assert Watched.read(words_of(request.watched)) == seen(reach=0.7)
    search.watch(0.7, 0.1)
    assert search.best == requests[0].id, "among equals success decides"


def test_the_number_of_subtasks_stays(result):
    for words in ("- reach: come near", "- reach: come near\n- grasp: hold", "nothing of the kind"):
        search = Search(result, samples=1)
        search.words(SUBTASKS)
        search.train(0.5)
        search.watch(0.5)
        search.words(words)
        assert words_of(search.ask()[0].plan) == SUBTASKS


def test_programs_that_were_trained_last_are_watched_though_the_budget_is_spent(result):
    search = Search(result, samples=4)
    search.words(SUBTASKS)
    assert not search.strategy.owes_votes(search.state)
    search.train(0.5, 0.5, n=2)
    assert search.strategy.owes_votes(search.state)
    search.watch(0.5, 0.5)
    assert not search.strategy.owes_votes(search.state)


def test_small_generations_make_up_an_iteration(result):
    search = Search(result, samples=3)
    search.words(SUBTASKS)
    for scores in ((0.5, 0.4), (0.3,)):
        requests, _ = search.train(*scores, n=2)
        assert len(requests) == len(scores)
        assert operators(requests) == {"compose"}, "all of an iteration are made from the same"
        search.watch(*scores)
    assert operators(search.words(SUBTASKS)) == {"revise"}
    (first, *_), (better, _) = search.train(0.5, 0.4, n=2)
    search.watch(0.9, 0.2)
    assert search.best == better.candidate.id
    (last,) = search.ask()
    assert first.operator == last.operator == "amend" and last.parents == first.parents


def test_without_a_judge_success_decides(result):
    search = Search(result, samples=2, watch=False)
    search.words(SUBTASKS)
    _, (one, _) = search.train(0.9, 0.1)
    requests = search.ask()
    assert operators(requests) == {"amend"} and requests[0].parents == (one,) and requests[0].watched is None
    assert search.best == one.candidate.id


def test_without_subtasks_programs_reflect_on_what_was_seen(result):
    search = Search(result, samples=2, subtasks=False)
    requests, _ = search.train(0.9, 0.1)
    assert operators(requests) == {"scratch"}
    search.watch(0.2, 0.6)
    requests = search.ask()
    assert operators(requests) == {"reflect"} and Watched.read(words_of(requests[0].watched)) == seen(reach=0.6)


def test_answers_without_subtasks_end_the_attempts(result):
    search = Search(result)
    search.words("I would not know")
    assert operators(search.words("nor now")) == {"divide"}
    assert operators(search.ask()) == {"scratch"}


@pytest.mark.parametrize("operator", ["divide", "watch", "revise"])
def test_what_is_declined_is_done_without(result, operator):
    search = Search(result, samples=1)
    search.words("" if operator == "divide" else SUBTASKS)
    search.train(0.5)
    if operator == "watch":
        search.words("")
        assert not search.strategy.owes_votes(search.state)
        _, (new,) = search.train(0.9)
        assert search.best == new.candidate.id
        return
    search.watch(0.5)
    if operator == "revise":
        search.words("")
    assert operators(search.ask()) == {"amend" if operator == "revise" else "reflect"}


def test_a_judge_who_cannot_be_read_leaves_a_program_without(result):
    search = Search(result, samples=2)
    search.words(SUBTASKS)
    _, (_, two) = search.train(0.9, 0.5)
    requests = search.ask()
    answers = ['{"reach": [{"score": 7.0}]}', seen(reach=0.1).as_words()]
    search.tell(*(search._answer(r, words) for r, words in zip(requests, answers, strict=True)))
    assert search.best == two.candidate.id and not search.state.memory.pending


def test_failed_programs_are_not_watched(result):
    search = Search(result, samples=2)
    search.words(SUBTASKS)
    _, (one, _) = search.train(0.9, None)
    assert [r.parents[0] for r in search.watch(0.3)] == [one]
    requests = search.ask()
    assert operators(requests) == {"compose"} and len(requests) == 1, "the iteration is not complete"


def test_a_failure_to_divide_that_is_no_refusal_is_asked_again(result):
    search = Search(result)
    (request,) = search.ask()
    failure = Failure(stage="reply", message="no JSON")
    search.tell(result(request.id, None, operator="divide").model_copy(update={"failure": failure}))
    assert operators(search.ask()) == {"divide"}


@pytest.mark.parametrize("options", [{"samples": 0}, {"watch": 1}, {"evolve": "observation"}, {"bandit": True}])
def test_wrong_options(options):
    with pytest.raises(InvalidSetting):
        make_strategy("rda", **options)
