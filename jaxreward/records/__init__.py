"""The data that crosses a process boundary or the disk, as frozen pydantic records.

Device code (tasks, training) works on pytrees and never stores a record; host code (search,
proposers, runs, reports) passes records and nothing else. Unknown keys are errors.
"""

from __future__ import annotations

from jaxreward.records.base import Record
from jaxreward.records.candidate import Candidate, Evolve, ExampleChoice, Exchange, Proposal, Request, Result
from jaxreward.records.evidence import Evidence, FilmedEpisode
from jaxreward.records.feedback import ACCURACY, Feedback, TermCurve
from jaxreward.records.function_library import FunctionLibrary, SharedFunction
from jaxreward.records.instruction import Instruction, Seen, Subtask, Watched, read_subtasks, write_subtasks
from jaxreward.records.measure import ALIGNMENT, SUCCESS, Measure, Score, normalised
from jaxreward.records.program import TRAINED_STAGES, Failure, Notice, ProgramSummary, Stage, Verdict
from jaxreward.records.ratings import RatedProgram, Rating, Ratings
from jaxreward.records.subgoals import Subgoal, Subgoals
from jaxreward.records.task_card import TaskCard
from jaxreward.records.vocabulary import Fragment, Vocabulary

__all__ = [
    "ACCURACY",
    "ALIGNMENT",
    "SUCCESS",
    "TRAINED_STAGES",
    "Candidate",
    "Evidence",
    "Evolve",
    "ExampleChoice",
    "Exchange",
    "Failure",
    "Feedback",
    "FilmedEpisode",
    "Fragment",
    "FunctionLibrary",
    "Instruction",
    "Measure",
    "Notice",
    "ProgramSummary",
    "Proposal",
    "RatedProgram",
    "Rating",
    "Ratings",
    "Record",
    "Request",
    "Result",
    "Score",
    "Seen",
    "SharedFunction",
    "Stage",
    "Subgoal",
    "Subgoals",
    "Subtask",
    "TaskCard",
    "TermCurve",
    "Verdict",
    "Vocabulary",
    "Watched",
    "normalised",
    "read_subtasks",
    "write_subtasks",
]
