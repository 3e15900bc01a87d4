"""Whether the files are there that the parameters name, and may be named."""

from engine.calls.checks.asked import Asked, Check, Refused, Sources
from engine.calls.file_parameters import FileRefused
from toolagent.contracts.calls import ErrorType

__all__ = ["CHECK"]


async def _check(asked: Asked, sources: Sources) -> Asked:
    try:
        await sources.files.check(asked.manifest.input_schema, asked.params)
    except FileRefused as refusal:
        raise Refused(refusal.error, refusal.issues) from refusal
    return asked


CHECK = Check("file_names", "parameters of the format `file-path`", _check, (ErrorType.VALIDATION_ERROR, ErrorType.SECURITY_ERROR))
