"""Typed, bodiless activities and child workflows: what a workflow calls instead of their implementation."""

from typing import Never

from temporalio import activity

from toolagent.client import names
from toolagent.contracts.batches import CallLook, LookRequest
from toolagent.contracts.callbacks import Callback, CallbackEnd, CallbackNote
from toolagent.contracts.calls import ToolResult
from toolagent.contracts.routes import ToolControl, ToolRoute
from toolagent.contracts.steps import Admission, AdmitRequest, CallOutcome, CallRequest, Placement, PlaceRequest, SettleRequest

__all__ = ["admit", "call_tool", "control_tool", "deliver_callback", "look_at_call", "note_callback", "place", "settle"]


class BodilessError(RuntimeError):
    """A stub was run: the worker registered it instead of the implementation."""


def _bodiless() -> Never:
    raise BodilessError


@activity.defn(name=names.ADMIT)
async def admit(_request: AdmitRequest) -> Admission:
    """Decide whether and how a call is made."""
    _bodiless()


@activity.defn(name=names.PLACE)
async def place(_request: PlaceRequest) -> Placement:
    """Find another queue for a call that was not served in time."""
    _bodiless()


@activity.defn(name=names.CALL)
async def call_tool(_request: CallRequest) -> CallOutcome:
    """Make the call."""
    _bodiless()


@activity.defn(name=names.SETTLE)
async def settle(_request: SettleRequest) -> ToolResult:
    """Check the output and record how the call ended. The result comes back without the output, which the workflow has already."""
    _bodiless()


@activity.defn(name=names.CONTROL)
async def control_tool(_control: ToolControl) -> ToolRoute:
    """Start, stop or destroy a tool on the host whose queue this is."""
    _bodiless()


@activity.defn(name=names.LOOK_AT_CALL)
async def look_at_call(_request: LookRequest) -> CallLook:
    """See how far a call is that somebody else has begun."""
    _bodiless()


@activity.defn(name=names.DELIVER_CALLBACK)
async def deliver_callback(_callback: Callback) -> CallbackEnd:
    """Post it once."""
    _bodiless()


@activity.defn(name=names.NOTE_CALLBACK)
async def note_callback(_note: CallbackNote) -> None:
    """Write down how a delivery ended."""
    _bodiless()
