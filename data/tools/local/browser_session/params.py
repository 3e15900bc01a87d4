"""The params of each action."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

HOST = r"^(\*|(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?$"

Host = Annotated[str, Meta(pattern=HOST, max_length=255)]
SessionId = Annotated[str, Meta(pattern="^bs-[0-9a-f]{16}$")]
Selector = Annotated[str, Meta(min_length=1, max_length=2000)]
Wait = Annotated[float, Meta(ge=1, le=60)]


class Params(Struct, forbid_unknown_fields=True):
    """Params without unknown fields."""


class InSession(Params):
    session_id: SessionId


class OnElement(InSession):
    selector: Selector


class Launch(Params):
    allowed_hosts: Annotated[list[Host], Meta(min_length=1, max_length=100)]
    width: Annotated[int, Meta(ge=320, le=3840)] = 1280
    height: Annotated[int, Meta(ge=240, le=2160)] = 720
    locale: Annotated[str, Meta(pattern="^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$")] = "en-US"
    idle_timeout_s: Annotated[float, Meta(ge=30, le=86_400)] = 1800


class Navigate(InSession):
    url: Annotated[str, Meta(pattern="^[Hh][Tt][Tt][Pp][Ss]?://", max_length=8000)]
    wait_until: Literal["commit", "domcontentloaded", "load", "networkidle"] = "load"
    timeout_s: Wait = 30


class Click(OnElement):
    timeout_s: Wait = 10


class Type(OnElement):
    text: Annotated[str, Meta(max_length=100_000)]
    clear: bool = True
    submit: bool = False
    timeout_s: Wait = 10


class Text(InSession):
    selector: Selector = "body"
    max_chars: Annotated[int, Meta(ge=1, le=200_000)] = 20_000
    timeout_s: Wait = 10


class Screenshot(InSession):
    selector: Selector | None = None
    full_page: bool = False
    format: Literal["png", "jpeg"] = "png"
    timeout_s: Wait = 20


class Pdf(InSession):
    format: Literal["A3", "A4", "A5", "Letter", "Legal"] = "A4"
    landscape: bool = False
    timeout_s: Wait = 30


class Stop(InSession):
    """Names the session only."""


class Listing(Params):
    """Takes nothing."""
