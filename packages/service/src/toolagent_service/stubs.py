"""Typed, bodiless activities and child workflows: what a workflow calls instead of their implementation."""

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
    """A stub was run: the worker registered it instead of the implementation."""


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
"""Make the calls of a batch, as far as the budget of the lane goes."""

place = _stub(step_names.PLACE, PlaceRequest, Placement)
"""Find another queue for a call that was not served in time."""

join_call = _stub(step_names.JOIN, JoinRequest, NoneType)
"""Wait for a call that a front door makes."""

call_tool = _stub(step_names.CALL, CallRequest, Finished)
"""Make the call."""

settle = _stub(step_names.SETTLE, SettleRequest, ToolResult)
"""Check the output and record how the call ended. The result comes back without the output, which the workflow has already."""

control_tool = _stub(step_names.CONTROL, ToolControl, ToolRoute)
"""Start, stop or destroy a tool on the host whose queue this is."""

look_at_call = _stub(step_names.LOOK_AT_CALL, LookRequest, CallLook)
"""See how far a call is that somebody else has begun."""

deliver_callback = _stub(step_names.DELIVER_CALLBACK, Callback, CallbackEnd)
"""Post it once."""

note_callback = _stub(step_names.NOTE_CALLBACK, CallbackNote, NoneType)
"""Write down how a delivery ended."""

await_slot = _stub(step_names.AWAIT_SLOT, MakeRequest, Slot)
"""Take the task's turn among those that run at once."""

find_host = _stub(step_names.FIND_HOST, HostStep, Slot)
"""Say where a task is to go on whose host has not taken a step in time."""

enter_stage = _stub(step_names.ENTER_STAGE, StageStep, NoneType)
"""Write down how far the task is."""

inspect_task = _stub(step_names.INSPECT_TASK, TaskStep, Inspected)
"""Look for a tool that does it already, and at the repository if there is one."""

diagnose = _stub(step_names.DIAGNOSE, TaskStep, Diagnosis)
"""Gather what is known of the tool that is to be mended, and lay a copy of its files out."""

lay_out = _stub(step_names.LAY_OUT, TaskStep, NoneType)
"""Give the coding agent a copy of the repository."""

build_candidate = _stub(step_names.BUILD_CANDIDATE, BuildStep, BuildOutcome)
"""Build it without a model."""

brief_agent = _stub(step_names.BRIEF_AGENT, BriefStep, AgentRequest)
"""Write down what the coding agent is to know, and what it may take."""

ask_model = _stub(step_names.ASK_MODEL, ModelAsk, ModelTurnNote)
"""Have one turn of the model."""

answer_turn = _stub(step_names.ANSWER_TURN, AnswerAsk, AnswerNote)
"""Have one turn of the model of a chat; write it down where it is the answer."""

use_tool = _stub(step_names.USE_TOOL, ToolRun, ToolNote)
"""Do one thing that the model wants done."""

verify_candidate = _stub(step_names.VERIFY_CANDIDATE, VerifyStep, Assessed)
"""Ask the candidate everything that the gate asks."""

register_candidate = _stub(step_names.REGISTER_CANDIDATE, RegisterStep, Registered)
"""Make the candidate a version that can be called."""

clear_task = _stub(step_names.CLEAR_TASK, TaskStep, NoneType)
"""End and remove what the task has on this host."""

end_task = _stub(step_names.END_TASK, EndStep, NoneType)
"""Write down how the task ended."""


@activity.defn(name=step_names.OPEN_SESSION)
async def open_session(_step: OpenStep) -> bool | SessionView:
    """Write down that a session begins; False where there are too many.

    The session as it is where it has begun before: its workflow was reset.
    """
    _bodiless()


note_session = _stub(step_names.NOTE_SESSION, SessionStep, NoneType)
"""Write down how far a session is."""

list_launches = _stub(step_names.LIST_LAUNCHES, SessionStep, tuple[JsonValue, ...])
"""Say what other living sessions of the group have launched."""


@activity.defn(name=step_names.PIN_VERSIONS)
async def pin_versions(_group: ToolGroup) -> dict[str, str]:
    """Say which versions of a group's tools are active."""
    _bodiless()


@activity.defn(name=step_names.FIND_GROUP)
async def find_group(_group_id: str) -> ToolGroup | None:
    """The group as the catalog has it now."""
    _bodiless()


recall_chat = _stub(step_names.RECALL_CHAT, ChatStep, ChatRecalled)
"""Read what the archive knows of a chat."""


@activity.defn(name=step_names.BEGIN_TURN)
async def begin_turn(_message: ChatMessage) -> TurnBegun:
    """Write a message down; answer it where rules do."""
    _bodiless()


end_turn = _stub(step_names.END_TURN, TurnEnded, ChatReply)
"""Write the answer down."""

await_task = _stub(step_names.AWAIT_TASK, TaskWatch, TaskOutcome)
"""Look whether a task has ended."""

announce_task = _stub(step_names.ANNOUNCE_TASK, Announcement, int)
"""Say in the chat how a task ended. Returns how many turns it has then."""

rest_chat = _stub(step_names.REST_CHAT, ChatStep, NoneType)
"""Write down that the workflow of a chat ends."""


@activity.defn(name=step_names.LIST_LIVE_HOSTS)
async def list_live_hosts() -> tuple[str, ...]:
    """The hosts that are alive, by id."""
    _bodiless()


maintain_host = _stub(step_names.MAINTAIN_HOST, HostTurn, HostRound)
"""Look after the tools on the host whose queue this is."""


@activity.defn(name=step_names.MAINTAIN_SERVICE)
async def maintain_service() -> ServiceRound:
    """Do what is done once for all hosts."""
    _bodiless()


@activity.defn(name=step_names.SYNC_KNOWHUB)
async def sync_knowhub(_request: SyncRequest) -> KnowHubSync:
    """Have KnowHub's resources and our tools name each other, or see what would be changed."""
    _bodiless()
