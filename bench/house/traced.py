"""Runs a module of ours and notes which files work: `python traced.py FOLDER -m workers up`.

SIGUSR1 forgets what was noted; SIGUSR2 writes it to `FOLDER/files`, one path a line.
"""

import runpy
import signal
import sys
import threading
from pathlib import Path
from types import FrameType


def main() -> None:
    _, folder, _, module, *rest = sys.argv
    seen: set[str] = set()

    def note(frame: FrameType, _event: str, _argument: object) -> None:
        seen.add(frame.f_code.co_filename)

    def forget(*_: object) -> None:
        seen.clear()

    def write(*_: object) -> None:
        (Path(folder) / "part").write_text("\n".join(sorted(seen)))
        (Path(folder) / "part").rename(Path(folder) / "files")

    signal.signal(signal.SIGUSR1, forget)
    signal.signal(signal.SIGUSR2, write)
    threading.settrace(note)
    sys.settrace(note)
    sys.argv = [module, *rest]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
