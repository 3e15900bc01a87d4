"""Runs a module of ours and notes which functions work: `python traced.py FOLDER -m workers up`.

SIGUSR2 writes what was noted since the last time to `FOLDER/functions`, one a line: its name, its first line, its file.
"""

import runpy
import signal
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType


def main() -> None:
    _, folder, _, module, *rest = sys.argv
    seen: set[CodeType] = set()

    def note(frame: FrameType, _event: str, _argument: object) -> None:
        seen.add(frame.f_code)

    def write(*_: object) -> None:
        lines = (f"{code.co_name} {code.co_firstlineno} {code.co_filename}" for code in seen.copy())
        (Path(folder) / "part").write_text("\n".join(lines))
        seen.clear()
        (Path(folder) / "part").rename(Path(folder) / "functions")

    signal.signal(signal.SIGUSR2, write)
    threading.settrace(note)
    sys.settrace(note)
    sys.argv = [module, *rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
