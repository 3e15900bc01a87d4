"""A package index of the test: Python and npm packages over HTTP, made by the test."""

import base64
import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

HOST = "packages.test"


@dataclass
class PackageIndex:
    """`asked` are the requested paths."""

    port: int
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    asked: list[str] = field(default_factory=list[str])

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def hosts(self) -> tuple[str, ...]:
        return (f"{HOST}:{self.port}",)

    @property
    def variables(self) -> dict[str, str]:
        return {"UV_DEFAULT_INDEX": f"{self.url}/simple", "npm_config_registry": f"{self.url}/npm/"}

    def add_wheel(self, name: str, version: str, text: str) -> str:
        """Add a package of one module. Returns its hash, as in requirements."""
        module, info = f"{name}.py", f"{name}-{version}.dist-info"
        files = {
            module: text,
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        record = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as wheel:
            for path, content in {**files, f"{info}/RECORD": record}.items():
                wheel.writestr(path, content)
        return self._add_python(name, f"{name}-{version}-py3-none-any.whl", packed.getvalue())

    def add_source(self, name: str, version: str, building: str) -> str:
        """Add a package that is built at its installation by this code; its build backend makes an empty wheel."""
        backend = BACKEND.replace("NAME", name).replace("VERSION", version).replace("BUILDING", building)
        project = (
            '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
            f'[project]\nname = "{name}"\nversion = "{version}"\n'
        )
        info = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        files = {"pyproject.toml": project, "backend.py": backend, "PKG-INFO": info}
        return self._add_python(name, f"{name}-{version}.tar.gz", _tar(f"{name}-{version}", files))

    def add_npm(self, name: str, version: str, text: str, scripts: dict[str, str] | None = None) -> str:
        """Add a package of one module. Returns its integrity, as in locks."""
        manifest = {"name": name, "version": version, "main": "index.js", "scripts": scripts or {}}
        packed = _tar("package", {"package.json": json.dumps(manifest), "index.js": text})
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(packed).digest()).decode()
        path = f"/npm/{name}/-/{name}-{version}.tgz"
        about = {**manifest, "dist": {"tarball": f"{self.url}{path}", "integrity": integrity}, "hasInstallScript": bool(scripts)}
        self.files[path] = packed
        self.files[f"/npm/{name}"] = json.dumps({"name": name, "dist-tags": {"latest": version}, "versions": {version: about}}).encode()
        return integrity

    def count(self, ending: str) -> int:
        return sum(path.endswith(ending) for path in self.asked)

    def _add_python(self, name: str, file: str, content: bytes) -> str:
        digest = hashlib.sha256(content).hexdigest()
        self.files[f"/files/{file}"] = content
        listed = self.files.get(f"/simple/{name}/", b"<!DOCTYPE html>\n")
        self.files[f"/simple/{name}/"] = listed + f'<a href="/files/{file}#sha256={digest}">{file}</a>\n'.encode()
        return f"sha256:{digest}"


BACKEND = """
import zipfile
def build_wheel(folder, config=None, metadata=None):
    BUILDING
    file = "NAME-VERSION-py3-none-any.whl"
    info = "NAME-VERSION.dist-info"
    with zipfile.ZipFile(f"{folder}/{file}", "w") as wheel:
        wheel.writestr("NAME.py", "value = 1")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\\nName: NAME\\nVersion: VERSION\\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(f"{info}/RECORD", "")
    return file
"""


def _tar(folder: str, files: dict[str, str]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, text in files.items():
            about = tarfile.TarInfo(f"{folder}/{name}")
            about.size = len(text.encode())
            tar.addfile(about, io.BytesIO(text.encode()))
    return packed.getvalue()


class _Handler(BaseHTTPRequestHandler):
    index: PackageIndex

    def do_GET(self) -> None:
        self.index.asked.append(self.path.partition("?")[0])
        self.wfile.write(self._head())

    def do_HEAD(self) -> None:
        self._head()

    def _head(self) -> bytes:
        path = unquote(self.path.partition("?")[0])
        content = self.index.files.get(path)
        self.send_response(200 if content is not None else 404)
        html, plain = "text/html", "application/octet-stream"
        self.send_header(
            "Content-Type",
            html if path.startswith("/simple") else "application/json" if path.startswith("/npm/") and not path.endswith(".tgz") else plain,
        )
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        return content or b""

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def package_index() -> Generator[PackageIndex]:
    """On 127.0.0.1; `resolve` knows it as HOST."""
    handler = type("Handler", (_Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    index = PackageIndex(server.server_address[1])
    handler.index = index  # pyright: ignore[reportAttributeAccessIssue] - made above
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


async def resolve(host: str, port: int) -> Sequence[str]:
    if host != HOST:
        raise OSError(f"{host} is not known")
    return ["127.0.0.1"]
