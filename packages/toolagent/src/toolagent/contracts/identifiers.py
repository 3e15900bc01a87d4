"""Types of fields: ids and names, with their patterns, and bounded texts and numbers."""

from typing import Annotated

from pydantic import Field, StringConstraints

__all__ = [
    "CALL_ID_PATTERN",
    "ENVIRONMENT_NAME",
    "FILE_ID_PATTERN",
    "HEADER_NAME",
    "OWNED_VARIABLES",
    "SECRET_IN_A_HEADER",
    "SECRET_PATTERN",
    "TOOL_ID_LENGTH",
    "TOOL_ID_PATTERN",
    "AtLeastOne",
    "CallId",
    "EnvironmentName",
    "FileId",
    "GroupId",
    "HeaderName",
    "NonEmpty",
    "SecretName",
    "ShortText",
    "ToolId",
    "UpToADay",
]

TOOL_ID_LENGTH = 128
TOOL_ID_PATTERN = r"^([a-z][a-z0-9_-]*:)?[a-z][a-z0-9_-]*$"
CALL_ID_PATTERN = r"^call-[A-Za-z0-9_-]{8,80}$"
FILE_ID_PATTERN = r"^file_[0-9a-f]{32}$"
ENVIRONMENT_NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"
HEADER_NAME = r"^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$"
SECRET_PATTERN = r"^secret:[A-Z][A-Z0-9_]*$"  # noqa: S105 - a name's form, not a secret
SECRET_IN_A_HEADER = r"((?:[A-Za-z][A-Za-z0-9-]* )?)(secret:[A-Z][A-Z0-9_]*)"  # noqa: S105 - a form too
"""The whole value of a header that names a secret: an optional scheme, and the name."""

ToolId = Annotated[str, StringConstraints(pattern=TOOL_ID_PATTERN, max_length=TOOL_ID_LENGTH)]
GroupId = Annotated[str, StringConstraints(pattern=TOOL_ID_PATTERN, max_length=TOOL_ID_LENGTH)]
CallId = Annotated[str, StringConstraints(pattern=CALL_ID_PATTERN)]
FileId = Annotated[str, StringConstraints(pattern=FILE_ID_PATTERN)]
SecretName = Annotated[str, StringConstraints(pattern=SECRET_PATTERN)]
HeaderName = Annotated[str, Field(pattern=HEADER_NAME)]
NonEmpty = Annotated[str, Field(min_length=1)]
ShortText = Annotated[str, Field(min_length=1, max_length=200)]
AtLeastOne = Annotated[int, Field(ge=1)]
UpToADay = Annotated[float, Field(gt=0, le=86_400)]
"""Seconds."""
EnvironmentName = Annotated[str, Field(pattern=ENVIRONMENT_NAME, max_length=128)]

OWNED_VARIABLES = frozenset(
    {
        "PATH", "HOME", "PORT", "TMPDIR", "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONDONTWRITEBYTECODE", "NODE_OPTIONS",
        "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
    }
)  # fmt: skip
"""Variables that the sandbox sets itself. Those that begin with `TOOL_AGENT_` or `LD_` are reserved too."""
