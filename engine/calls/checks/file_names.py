"""Checks whether the files in the parameters exist and are permitted."""

from engine.calls.checks.asked import Asked, Check, Sources
from toolagent.contracts.calls import ErrorType
from toolagent.core.schemas import FILE_PATH, mentions_format


async def _check(asked: Asked, sources: Sources) -> Asked:
    if mentions_format(schema := asked.manifest.input_schema, FILE_PATH):
        await sources.files.check(schema, asked.params)
    return asked


CHECK = Check("file_names", "parameters of the format `file-path`", _check, (ErrorType.VALIDATION_ERROR, ErrorType.SECURITY_ERROR))
