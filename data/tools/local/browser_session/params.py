"""What each action takes."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

__all__ = ["Click", "Launch", "Listing", "Navigate", "Pdf", "Screenshot", "Stop", "Text", "Type"]

HOST = r"^(\*|(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?$"

Host = Annotated[str, Meta(pattern=HOST, max_length=255)]
SessionId = Annotated[str, Meta(pattern="^bs-[0-9a-f]{16}$")]
Selector = Annotated[str, Meta(min_length=1, max_length=2000)]
Wait = Annotated[float, Meta(ge=1, le=60)]


class Launch(Struct, forbid_unknown_fields=True):
    allowed_hosts: Annotated[list[Host], Meta(min_length=1, max_length=100)]
    width: Annotated[int, Meta(ge=320, le=3840)] = 1280
    height: Annotated[int, Meta(ge=240, le=2160)] = 720
    locale: Annotated[str, Meta(pattern="^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$")] = "en-US"
    idle_timeout_s: Annotated[float, Meta(ge=30, le=86_400)] = 1800


class Navigate(Struct, forbid_unknown_fields=True):
    session_id: SessionId
    url: Annotated[str, Meta(pattern="^[Hh][Tt][Tt][Pp][Ss]?://", max_length=8000)]
    wait_until: Literal["commit", "domcontentloaded", "load", "networkidle"] = "load"
    timeout_s: Wait = 30


class Click(Struct, forbid_unknown_fields=True):
    session_id: SessionId
    selector: Selector
    timeout_s: Wait = 10


class Type(Struct, forbid_unknown_fields=True):
    session_id: SessionId
    selector: Selector
    text: Annotated[str, Meta(max_length=100_000)]
    clear: bool = True
    submit: bool = False
    timeout_s: Wait = 10


class Text(Struct, forbid_unknown_fields=True):
    session_id: SessionId
    selector: Selector = "body"
    max_chars: Annotated[int, Meta(ge=1, le=200_000)] = 20_000
    timeout_s: Wait = 10


class Screenshot(Struct, forbid_unknown_fields=True):
    session_id: SessionId
    selector: Selector | None = None
    full_page: bool = False
    format: Literal["png", "jpeg"] = "png"
    timeout_s: Wait = 20


class Pdf(Struct, forbid_unknown_fields=True):
    session_id: SessionId
    format: Literal["A3", "A4", "A5", "Letter", "Legal"] = "A4"
    landscape: bool = False
    timeout_s: Wait = 30


class Stop(Struct, forbid_unknown_fields=True):
    session_id: SessionId


class Listing(Struct, forbid_unknown_fields=True):
    pass
