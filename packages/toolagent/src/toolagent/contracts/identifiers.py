"""How tools, groups, calls and files are named, everywhere: columns, URLs, folders, workflow ids."""

from typing import Annotated

from pydantic import StringConstraints

__all__ = ["CALL_ID_PATTERN", "FILE_ID_PATTERN", "SECRET_PATTERN", "TOOL_ID_PATTERN", "CallId", "FileId", "GroupId", "SecretName", "ToolId"]

TOOL_ID_PATTERN = r"^([a-z][a-z0-9_-]*:)?[a-z][a-z0-9_-]*$"
CALL_ID_PATTERN = r"^call-[A-Za-z0-9_-]{8,80}$"
FILE_ID_PATTERN = r"^file_[0-9a-f]{32}$"
SECRET_PATTERN = r"^secret:[A-Z][A-Z0-9_]*$"  # noqa: S105 - a name's form, not a secret

ToolId = Annotated[str, StringConstraints(pattern=TOOL_ID_PATTERN, max_length=128)]
GroupId = Annotated[str, StringConstraints(pattern=TOOL_ID_PATTERN, max_length=128)]
CallId = Annotated[str, StringConstraints(pattern=CALL_ID_PATTERN)]
FileId = Annotated[str, StringConstraints(pattern=FILE_ID_PATTERN)]
SecretName = Annotated[str, StringConstraints(pattern=SECRET_PATTERN)]
