"""Whether the files that the parameters name exist and may be named."""

from engine.calls.checks.asked import Asked, Check, Sources
from toolagent.contracts.calls import ErrorType


async def _check(asked: Asked, sources: Sources) -> Asked:
    await sources.files.check(asked.manifest.input_schema, asked.params)
    return asked


CHECK = Check("file_names", "parameters of the format `file-path`", _check, (ErrorType.VALIDATION_ERROR, ErrorType.SECURITY_ERROR))
