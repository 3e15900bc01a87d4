"""Builds wheels from the source of a few modules.

The same release gives the same bytes each time.
"""

import base64
import hashlib
import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass

from packaging.version import Version

from toolagent.testing.servers.index_packages import IndexedPackage, Release

__all__ = ["Wheel", "wheel_of"]

_WHEEL = "Wheel-Version: 1.0\nGenerator: toolagent.testing\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@dataclass(frozen=True)
class Wheel:
    """`metadata` is its file METADATA, which the index also serves beside it (PEP 658)."""

    filename: str
    content: bytes
    metadata: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def metadata_sha256(self) -> str:
        return hashlib.sha256(self.metadata).hexdigest()


def wheel_of(package: IndexedPackage, release: Release) -> Wheel:
    stem = f"{package.normal_name.replace('-', '_')}-{Version(release.version)}"
    described = f"{stem}.dist-info"
    metadata = _metadata(package, release).encode()
    files = {path: source.encode() for path, source in _modules(package, release).items()}
    files |= {f"{described}/METADATA": metadata, f"{described}/WHEEL": _WHEEL.encode()}
    if release.console_scripts:
        commands = "".join(f"{name} = {target}\n" for name, target in release.console_scripts.items())
        files[f"{described}/entry_points.txt"] = f"[console_scripts]\n{commands}".encode()
    record = f"{described}/RECORD"
    files[record] = _record(files, record).encode()
    return Wheel(f"{stem}-py3-none-any.whl", _zipped(files), metadata)


def _modules(package: IndexedPackage, release: Release) -> Mapping[str, str]:
    name = package.normal_name.replace("-", "_")
    return release.modules or {f"{name}.py": f'"""{package.summary or package.name}"""\n\n__version__ = "{release.version}"\n'}


def _metadata(package: IndexedPackage, release: Release) -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {package.name}", f"Version: {Version(release.version)}"]
    lines += [f"Summary: {' '.join(package.summary.split())}"] if package.summary else []
    lines += [f"Requires-Python: {release.requires_python}"] if release.requires_python else []
    lines += [f"Requires-Dist: {requirement}" for requirement in release.requires]
    return "\n".join(lines) + "\n"


def _record(files: Mapping[str, bytes], record: str) -> str:
    hashes = {path: base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode() for path, content in files.items()}
    return "".join(f"{path},sha256={hashes[path]},{len(content)}\n" for path, content in files.items()) + f"{record},,\n"


def _zipped(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            # The default is the current time.
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
    return buffer.getvalue()
