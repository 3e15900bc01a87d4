"""Typed stubs of activities, which workflows call instead of the implementations."""

from collections.abc import Awaitable, Callable
from types import NoneType
from typing import Never, TypeVar

from pydantic import JsonValue
from temporalio import activity

from toolagent.contracts.batches import CallLook, LookRequest
from toolagent.contracts.callbacks import Callback, CallbackEnd, CallbackNote
from toolagent.contracts.calls import ToolResult
from toolagent.contracts.chats import ChatMessage, ChatReply
from toolagent.contracts.groups import ToolGroup
from toolagent.contracts.knowhub import KnowHubSync, SyncRequest
from toolagent.contracts.making import MakeRequest
from toolagent.contracts.routes import ToolControl, ToolRoute
from toolagent.contracts.sessions import SessionView
from toolagent_service import step_names
from toolagent_service.contracts.agent import AgentRequest, ModelAsk, ModelTurnNote, ToolNote, ToolRun
from toolagent_service.contracts.chats import (
    Announcement,
    AnswerAsk,
    AnswerNote,
    ChatRecalled,
    ChatStep,
    TaskOutcome,
    TaskWatch,
    TurnBegun,
    TurnEnded,
)
from toolagent_service.contracts.lanes import LaneBatch, LaneEnds
from toolagent_service.contracts.maintenance import HostRound, HostTurn, ServiceRound
from toolagent_service.contracts.making_steps import (
    Assessed,
    BriefStep,
    BuildOutcome,
    BuildStep,
    Diagnosis,
    EndStep,
    HostStep,
    Inspected,
    Registered,
    RegisterStep,
    Slot,
    StageStep,
    TaskStep,
    VerifyStep,
)
from toolagent_service.contracts.sessions import OpenStep, SessionStep
from toolagent_service.contracts.steps import (
    Admission,
    AdmitRequest,
    CallRequest,
    Finished,
    JoinRequest,
    Placement,
    PlaceRequest,
    SettleRequest,
)

A = TypeVar("A")
R = TypeVar("R")


class BodilessError(RuntimeError):
    """A stub ran, because the worker registered it instead of the implementation."""


def _bodiless() -> Never:
    raise BodilessError


def _stub(name: str, given: type[A], result: type[R]) -> Callable[[A], Awaitable[R]]:
    async def bodiless(_given: A) -> R:
        _bodiless()

    bodiless.__annotations__ = {"_given": given, "return": result}  # Temporal reads them
    return activity.defn(name=name)(bodiless)


@activity.defn(name=step_names.ADMIT)
async def admit(_request: AdmitRequest) -> Admission:
    """Decide whether and how a call is made."""
    _bodiless()


make_batch = _stub(step_names.MAKE_BATCH, LaneBatch, LaneEnds)
"""Make the calls of a batch, within the budget of the lane."""

place = _stub(step_names.PLACE, PlaceRequest, Placement)
"""Find another queue for a call that was not served in time."""

join_call = _stub(step_names.JOIN, JoinRequest, NoneType)
"""Wait for a call that a front door makes."""

call_tool = _stub(step_names.CALL, CallRequest, Finished)
"""Make the call."""

settle = _stub(step_names.SETTLE, SettleRequest, ToolResult)
"""Validate the output and record the result. Returns the result without the output, which the workflow already has."""

control_tool = _stub(step_names.CONTROL, ToolControl, ToolRoute)
"""Start, stop or destroy a tool on the host of this queue."""

look_at_call = _stub(step_names.LOOK_AT_CALL, LookRequest, CallLook)
"""Look at a call that was started elsewhere."""

deliver_callback = _stub(step_names.DELIVER_CALLBACK, Callback, CallbackEnd)
"""Post a callback once."""

note_callback = _stub(step_names.NOTE_CALLBACK, CallbackNote, NoneType)
"""Record how a delivery ended."""

await_slot = _stub(step_names.AWAIT_SLOT, MakeRequest, Slot)
"""Wait for permission to run the task."""

find_host = _stub(step_names.FIND_HOST, HostStep, Slot)
"""Choose a host for a task whose host did not take a step in time."""

enter_stage = _stub(step_names.ENTER_STAGE, StageStep, NoneType)
"""Record the stage of the task."""

inspect_task = _stub(step_names.INSPECT_TASK, TaskStep, Inspected)
"""Look for an existing tool, and inspect the repository, if any."""

diagnose = _stub(step_names.DIAGNOSE, TaskStep, Diagnosis)
"""Gather facts about the tool to repair, and copy its files into the workspace."""

lay_out = _stub(step_names.LAY_OUT, TaskStep, NoneType)
"""Copy the repository into the workspace of the coding agent."""

build_candidate = _stub(step_names.BUILD_CANDIDATE, BuildStep, BuildOutcome)
"""Build a candidate without a model."""

brief_agent = _stub(step_names.BRIEF_AGENT, BriefStep, AgentRequest)
"""Write the brief of the coding agent, and set its limits."""

ask_model = _stub(step_names.ASK_MODEL, ModelAsk, ModelTurnNote)
"""Ask the model for one turn."""

answer_turn = _stub(step_names.ANSWER_TURN, AnswerAsk, AnswerNote)
"""Ask the model of a chat for one turn, and store it if it is the answer."""

use_tool = _stub(step_names.USE_TOOL, ToolRun, ToolNote)
"""Run one use of a tool by the model."""

verify_candidate = _stub(step_names.VERIFY_CANDIDATE, VerifyStep, Assessed)
"""Run all checks of the gate on the candidate."""

register_candidate = _stub(step_names.REGISTER_CANDIDATE, RegisterStep, Registered)
"""Register the candidate as a version that can be called."""

clear_task = _stub(step_names.CLEAR_TASK, TaskStep, NoneType)
"""End and remove everything of the task on this host."""

end_task = _stub(step_names.END_TASK, EndStep, NoneType)
"""Record how the task ended."""


@activity.defn(name=step_names.OPEN_SESSION)
async def open_session(_step: OpenStep) -> bool | SessionView:
    """Record that a session begins. False if there are too many.

    If the session has begun before, because its workflow was reset, returns its current state.
    """
    _bodiless()


@activity.defn(name=step_names.NOTE_SESSION)
async def note_session(_step: SessionStep) -> bool | None:
    """Record the state of a session. False if it has no row. Older versions return None."""
    _bodiless()


list_launches = _stub(step_names.LIST_LAUNCHES, SessionStep, tuple[JsonValue, ...])
"""List the launches of other open sessions of the group."""


@activity.defn(name=step_names.PIN_VERSIONS)
async def pin_versions(_group: ToolGroup) -> dict[str, str]:
    """List the active versions of a group's tools."""
    _bodiless()


@activity.defn(name=step_names.FIND_GROUP)
async def find_group(_group_id: str) -> ToolGroup | None:
    """Find the group in the catalog."""
    _bodiless()


recall_chat = _stub(step_names.RECALL_CHAT, ChatStep, ChatRecalled)
"""Read the archive of a chat."""


@activity.defn(name=step_names.BEGIN_TURN)
async def begin_turn(_message: ChatMessage) -> TurnBegun:
    """Store a message, and answer it if rules can."""
    _bodiless()


end_turn = _stub(step_names.END_TURN, TurnEnded, ChatReply)
"""Store the answer."""

await_task = _stub(step_names.AWAIT_TASK, TaskWatch, TaskOutcome)
"""Check whether a task has ended."""

announce_task = _stub(step_names.ANNOUNCE_TASK, Announcement, int)
"""Announce in the chat how a task ended. Returns the number of turns after that."""

rest_chat = _stub(step_names.REST_CHAT, ChatStep, NoneType)
"""Record that the workflow of a chat ends."""


@activity.defn(name=step_names.LIST_LIVE_HOSTS)
async def list_live_hosts() -> tuple[str, ...]:
    """The hosts that are alive, by id."""
    _bodiless()


maintain_host = _stub(step_names.MAINTAIN_HOST, HostTurn, HostRound)
"""Maintain the tools on the host of this queue."""


@activity.defn(name=step_names.MAINTAIN_SERVICE)
async def maintain_service() -> ServiceRound:
    """Do the work that is done once for all hosts."""
    _bodiless()


@activity.defn(name=step_names.SYNC_KNOWHUB)
async def sync_knowhub(_request: SyncRequest) -> KnowHubSync:
    """Synchronise KnowHub's resources with our tools, or plan the changes."""
    _bodiless()
