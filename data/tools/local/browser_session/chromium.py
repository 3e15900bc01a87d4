"""The Chromium of this machine: finds it, prepares its start, and kills its processes."""

import contextlib
import json
import os
import shutil
import signal
from pathlib import Path

from failures import chromium_missing

BINARY = Path("/usr/lib/chromium/chromium")
"""Debian's binary. Debian's script in /usr/bin reads /etc/chromium.d, which does not exist in a sandbox."""

ARGUMENTS = [
    # The tool's sandbox refuses the namespaces that Chromium's own sandbox needs.
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-quic",
    "--disable-crash-reporter",
    # All traffic of the browser must go through its proxy.
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--renderer-process-limit=4",
]

PREFERENCES = {
    "autofill": {"profile_enabled": False, "credit_card_enabled": False},
    "credentials_enable_service": False,
    "safebrowsing": {"enabled": False},
    "search": {"suggest_enabled": False},
    "translate": {"enabled": False},
}
"""Switches off the features that send addresses and texts to Chromium's makers."""


def find() -> str:
    """The program that CHROMIUM names, else Debian's, else the first on PATH. Raises Failure."""
    named = os.environ.get("CHROMIUM")
    found = named if named else str(BINARY) if BINARY.exists() else shutil.which("chromium")
    if found is None or not os.access(found, os.X_OK):
        raise chromium_missing(named or f"{BINARY} and chromium on PATH")
    return found


def prepare(profile: Path) -> None:
    """Fills the empty folder of a new profile."""
    for name in ("tmp", "Default"):
        (profile / name).mkdir()
    (profile / "Default" / "Preferences").write_text(json.dumps(PREFERENCES), "utf-8")


def environment(profile: Path) -> dict[str, str]:
    """Nothing from our own environment, and a HOME that is removed with the profile. All sessions share only the cache of fonts."""
    return {
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "HOME": str(profile),
        "TMPDIR": str(profile / "tmp"),
        "XDG_CACHE_HOME": str(Path.home() / ".cache"),
        "FONTCONFIG_FILE": str(Path(__file__).with_name("fonts.conf")),
    }


def processes_of(profile: Path) -> list[int]:
    """The ids of the processes that run on this profile."""
    wanted = f"--user-data-dir={profile}".encode()
    found: list[int] = []
    for entry in os.scandir("/proc"):
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and wanted in Path(entry.path, "cmdline").read_bytes().split(b"\0"):
                found.append(int(entry.name))
    return found


def kill_processes_of(profile: Path) -> None:
    for pid in processes_of(profile):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
