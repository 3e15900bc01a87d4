"""Finding the script that a `*.tool.json` names, and the folder that goes with it."""

from dataclasses import dataclass
from pathlib import Path

from toolagent.contracts.tool_files import ExternalScript

__all__ = ["NoScriptError", "Script", "find_script"]


class NoScriptError(ValueError):
    """The text says what is wrong and what to do."""


@dataclass(frozen=True, slots=True)
class Script:
    """`name` lies in `folder`, which is all that the script gets to see of the tool."""

    folder: Path
    name: str


def find_script(handler: ExternalScript, beside: Path, script_root: Path | None, shared: tuple[Path, ...]) -> Script:
    """Below the folder of its file; where nothing is there, below the script root. Blocks. Raises NoScriptError.

    `shared` are folders that hold many tools: a script right in one of them would be given all the others.
    """
    bases = [base for base in (beside, script_root) if base is not None]
    found = next(((base, base / handler.script_path) for base in bases if _is_there(base / handler.script_path)), None)
    if found is None:
        places = " nor ".join(f"in {str(base)!r}" for base in bases)
        raise NoScriptError(f"There is no file {handler.script_path!r} {places}.")
    base, path = found
    try:
        real = path.resolve(strict=True)
    except (OSError, RuntimeError) as error:  # a RuntimeError: it leads in a circle
        raise NoScriptError(f"{handler.script_path!r} is a link that leads nowhere, or in a circle.") from error
    if not real.is_relative_to(base.resolve()):
        raise NoScriptError(f"{handler.script_path!r} leads out of {str(base)!r} by a link. Put the script itself there.")
    if not real.is_file():
        raise NoScriptError(f"{handler.script_path!r} is no file.")
    if real.parent in {folder.resolve() for folder in shared}:
        raise NoScriptError(f"{path.name!r} lies among other tools, and everything beside a script is given to it: give it a folder.")
    return Script(real.parent, real.name)


def _is_there(path: Path) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        raise NoScriptError(f"The script cannot be looked at: {error}.") from error
    return True
