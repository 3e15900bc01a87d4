"""Typed, bodiless activities and child workflows: what a workflow calls instead of their implementation."""

from typing import Never

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
from toolagent_service import step_names
from toolagent_service.contracts.agent import AgentRequest, ModelAsk, ModelTurnNote, ToolNote, ToolRun
from toolagent_service.contracts.chats import Announcement, ChatRecalled, ChatStep, TaskOutcome, TaskWatch, TurnBegun, TurnEnded
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


class BodilessError(RuntimeError):
    """A stub was run: the worker registered it instead of the implementation."""


def _bodiless() -> Never:
    raise BodilessError


@activity.defn(name=step_names.ADMIT)
async def admit(_request: AdmitRequest) -> Admission:
    """Decide whether and how a call is made."""
    _bodiless()


@activity.defn(name=step_names.MAKE_BATCH)
async def make_batch(_batch: LaneBatch) -> LaneEnds:
    """Make the calls of a batch, as far as the budget of the lane goes."""
    _bodiless()


@activity.defn(name=step_names.PLACE)
async def place(_request: PlaceRequest) -> Placement:
    """Find another queue for a call that was not served in time."""
    _bodiless()


@activity.defn(name=step_names.JOIN)
async def join_call(_request: JoinRequest) -> None:
    """Wait for a call that a front door makes."""
    _bodiless()


@activity.defn(name=step_names.CALL)
async def call_tool(_request: CallRequest) -> Finished:
    """Make the call."""
    _bodiless()


@activity.defn(name=step_names.SETTLE)
async def settle(_request: SettleRequest) -> ToolResult:
    """Check the output and record how the call ended. The result comes back without the output, which the workflow has already."""
    _bodiless()


@activity.defn(name=step_names.CONTROL)
async def control_tool(_control: ToolControl) -> ToolRoute:
    """Start, stop or destroy a tool on the host whose queue this is."""
    _bodiless()


@activity.defn(name=step_names.LOOK_AT_CALL)
async def look_at_call(_request: LookRequest) -> CallLook:
    """See how far a call is that somebody else has begun."""
    _bodiless()


@activity.defn(name=step_names.DELIVER_CALLBACK)
async def deliver_callback(_callback: Callback) -> CallbackEnd:
    """Post it once."""
    _bodiless()


@activity.defn(name=step_names.NOTE_CALLBACK)
async def note_callback(_note: CallbackNote) -> None:
    """Write down how a delivery ended."""
    _bodiless()


@activity.defn(name=step_names.AWAIT_SLOT)
async def await_slot(_step: MakeRequest) -> Slot:
    """Take the task's turn among those that run at once."""
    _bodiless()


@activity.defn(name=step_names.FIND_HOST)
async def find_host(_step: HostStep) -> Slot:
    """Say where a task is to go on whose host has not taken a step in time."""
    _bodiless()


@activity.defn(name=step_names.ENTER_STAGE)
async def enter_stage(_step: StageStep) -> None:
    """Write down how far the task is."""
    _bodiless()


@activity.defn(name=step_names.INSPECT_TASK)
async def inspect_task(_step: TaskStep) -> Inspected:
    """Look for a tool that does it already, and at the repository if there is one."""
    _bodiless()


@activity.defn(name=step_names.DIAGNOSE)
async def diagnose(_step: TaskStep) -> Diagnosis:
    """Gather what is known of the tool that is to be mended, and lay a copy of its files out."""
    _bodiless()


@activity.defn(name=step_names.LAY_OUT)
async def lay_out(_step: TaskStep) -> None:
    """Give the coding agent a copy of the repository."""
    _bodiless()


@activity.defn(name=step_names.BUILD_CANDIDATE)
async def build_candidate(_step: BuildStep) -> BuildOutcome:
    """Build it without a model."""
    _bodiless()


@activity.defn(name=step_names.BRIEF_AGENT)
async def brief_agent(_step: BriefStep) -> AgentRequest:
    """Write down what the coding agent is to know, and what it may take."""
    _bodiless()


@activity.defn(name=step_names.ASK_MODEL)
async def ask_model(_step: ModelAsk) -> ModelTurnNote:
    """Have one turn of the model."""
    _bodiless()


@activity.defn(name=step_names.USE_TOOL)
async def use_tool(_step: ToolRun) -> ToolNote:
    """Do one thing that the model wants done."""
    _bodiless()


@activity.defn(name=step_names.VERIFY_CANDIDATE)
async def verify_candidate(_step: VerifyStep) -> Assessed:
    """Ask the candidate everything that the gate asks."""
    _bodiless()


@activity.defn(name=step_names.REGISTER_CANDIDATE)
async def register_candidate(_step: RegisterStep) -> Registered:
    """Make the candidate a version that can be called."""
    _bodiless()


@activity.defn(name=step_names.CLEAR_TASK)
async def clear_task(_step: TaskStep) -> None:
    """End and remove what the task has on this host."""
    _bodiless()


@activity.defn(name=step_names.END_TASK)
async def end_task(_step: EndStep) -> None:
    """Write down how the task ended."""
    _bodiless()


@activity.defn(name=step_names.OPEN_SESSION)
async def open_session(_step: OpenStep) -> bool:
    """Write down that a session begins; False where there are too many."""
    _bodiless()


@activity.defn(name=step_names.NOTE_SESSION)
async def note_session(_step: SessionStep) -> None:
    """Write down how far a session is."""
    _bodiless()


@activity.defn(name=step_names.LIST_LAUNCHES)
async def list_launches(_step: SessionStep) -> tuple[JsonValue, ...]:
    """Say what other living sessions of the group have launched."""
    _bodiless()


@activity.defn(name=step_names.PIN_VERSIONS)
async def pin_versions(_group: ToolGroup) -> dict[str, str]:
    """Say which versions of a group's tools are active."""
    _bodiless()


@activity.defn(name=step_names.FIND_GROUP)
async def find_group(_group_id: str) -> ToolGroup | None:
    """The group as the catalog has it now."""
    _bodiless()


@activity.defn(name=step_names.RECALL_CHAT)
async def recall_chat(_step: ChatStep) -> ChatRecalled:
    """Read what the archive knows of a chat."""
    _bodiless()


@activity.defn(name=step_names.BEGIN_TURN)
async def begin_turn(_message: ChatMessage) -> TurnBegun:
    """Write a message down; answer it where rules do."""
    _bodiless()


@activity.defn(name=step_names.END_TURN)
async def end_turn(_step: TurnEnded) -> ChatReply:
    """Write the answer down."""
    _bodiless()


@activity.defn(name=step_names.AWAIT_TASK)
async def await_task(_watch: TaskWatch) -> TaskOutcome:
    """Look whether a task has ended."""
    _bodiless()


@activity.defn(name=step_names.ANNOUNCE_TASK)
async def announce_task(_step: Announcement) -> int:
    """Say in the chat how a task ended. Returns how many turns it has then."""
    _bodiless()


@activity.defn(name=step_names.REST_CHAT)
async def rest_chat(_step: ChatStep) -> None:
    """Write down that the workflow of a chat ends."""
    _bodiless()


@activity.defn(name=step_names.LIST_LIVE_HOSTS)
async def list_live_hosts() -> tuple[str, ...]:
    """The hosts that are alive, by id."""
    _bodiless()


@activity.defn(name=step_names.MAINTAIN_HOST)
async def maintain_host(_turn: HostTurn) -> HostRound:
    """Look after the tools on the host whose queue this is."""
    _bodiless()


@activity.defn(name=step_names.MAINTAIN_SERVICE)
async def maintain_service() -> ServiceRound:
    """Do what is done once for all hosts."""
    _bodiless()


@activity.defn(name=step_names.SYNC_KNOWHUB)
async def sync_knowhub(_request: SyncRequest) -> KnowHubSync:
    """Have KnowHub's resources and our tools name each other, or see what would be changed."""
    _bodiless()
