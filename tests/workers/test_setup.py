"""Settings, state directory, ports and secrets: errors are plain, and come before anything runs."""

import ast
import resource
import signal
import socket
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import pytest
from pydantic import ValidationError
from temporalio.worker import UnsandboxedWorkflowRunner, WorkerConfig

from engine.network.ports import free_port
from engine.registry.secret_vault import SecretRefusedError
from toolagent.contracts.contract import said_below
from toolagent_service.plugin import service_plugin
from workers.failures import CannotRun
from workers.front.door import bound_socket
from workers.ports import listen
from workers.settings.front import FrontSettings
from workers.settings.hosts import CallSettings, HostSettings, KeepingSettings
from workers.settings.tools import ContainerSettings
from workers.settings.whole import PARTS, Settings, unread, unusable
from workers.state.directory import owned_state
from workers.state.secrets import SecretSource
from workers.temporal.dev_server import read_config

ROOT = Path(__file__).parents[2]


def test_the_defaults_are_those_of_the_specification() -> None:
    assert FrontSettings().fastapi_port == 8001
    assert ContainerSettings().model_dump() == {
        "docker_port_start": 9001,
        "docker_base_image": "agent-sandbox:latest",
        "docker_mem_limit": "1g",
        "docker_nano_cpus": 1_000_000_000,
        "docker_ttl_seconds": 1800,
    }


def test_the_defaults_for_keeping_tools_are_those_of_the_specification() -> None:
    assert KeepingSettings().model_dump() == {
        "health_check_interval_s": 60.0,
        "cold_tool_idle_timeout_s": 300.0,
        "hot_tool_max_containers": 5,
        "eviction_policy": "lru",
    }


def _read(node: ast.AST, whole: frozenset[str] = frozenset()) -> Iterator[str]:
    """The attributes that a source reads, without those of names in `whole`, which are Settings: their attributes are parts."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        given = {argument.arg: ast.unparse(argument.annotation or node) for argument in (*node.args.args, *node.args.kwonlyargs)}
        whole = (whole - given.keys()) | {name for name, annotation in given.items() if annotation == Settings.__name__}
    if isinstance(node, ast.Attribute) and not (isinstance(node.value, ast.Name) and node.value.id in whole):
        yield node.attr
    for child in ast.iter_child_nodes(node):
        yield from _read(child, whole)


def test_each_setting_is_read_by_something() -> None:
    sources = [ast.parse(path.read_bytes()) for folder in ("workers", "tool_agent") for path in (ROOT / folder).rglob("*.py")]
    read = {name for source in sources for name in _read(source)}
    assert [name for part in PARTS for name in part.model_fields if name not in read] == []


@pytest.mark.parametrize(
    ("source", "read"),
    [
        ("def f(settings: Settings): g(settings.model)", []),
        ("def f(settings: Settings): g(settings.model.model)", ["model"]),
        ("def f(settings: ModelSettings): g(settings.model)", ["model"]),
    ],
)
def test_a_part_of_the_settings_is_told_from_a_setting_of_the_same_name(source: str, read: list[str]) -> None:
    assert [*_read(ast.parse(source))] == read


def test_each_setting_is_described_where_only_the_docs_read_it() -> None:
    assert [name for part in PARTS for name in part.model_fields if not said_below(part, name)] == []
    assert [name for part in PARTS for name, setting in part.model_fields.items() if setting.description] == []


def test_workers_name_their_version_so_that_no_start_reads_all_modules_to_make_a_name() -> None:
    config = service_plugin(UnsandboxedWorkflowRunner()).configure_worker(WorkerConfig(task_queue="any"))
    assert config.get("build_id") == f"toolagent-service {version('toolagent-service')}"


def test_a_variable_that_looks_like_a_setting_and_is_none_is_named_with_the_nearest() -> None:
    names = ("TOOL_AGENT_FASTAPI_PORT", "TOOL_AGENT_FASTAPI_PROT", "TOOL_AGENT_SECRET_X", "TOOL_AGENT_URL", "TOOL_AGENT_ZZZ", "PATH")
    assert [*unread(dict.fromkeys(names, "1"))] == [
        "TOOL_AGENT_FASTAPI_PROT is no setting: nothing reads it. Did you mean TOOL_AGENT_FASTAPI_PORT?",
        "TOOL_AGENT_ZZZ is no setting: nothing reads it.",
    ]


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOL_AGENT_HTTP_REQUEST_ALLOW", "10.0.0.0/8, localhost")
    monkeypatch.setenv("TOOL_AGENT_BUCKET_LIMITS", '{"default": 2}')
    assert (CallSettings().http_request_allow, CallSettings().bucket_limits) == (("10.0.0.0/8", "localhost"), {"default": 2})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FASTAPI_PORT", "99999"),
        ("FASTAPI_PORT", "http"),
        ("STOP_GRACE_S", "-1"),
        ("QUEUE_TIMEOUT_S", "0"),
        ("BUCKET_LIMITS", '{"http": 2}'),
        ("BUCKET_LIMITS", '{"default": 1, "control": 2}'),
        ("HOST_LEASE_S", "5.9"),
        ("HEALTH_CHECK_INTERVAL_S", "0.5"),
        ("HEALTH_CHECK_INTERVAL_S", "nan"),
        ("HEALTH_CHECK_INTERVAL_S", "often"),
        ("COLD_TOOL_IDLE_TIMEOUT_S", "0"),
        ("COLD_TOOL_IDLE_TIMEOUT_S", "-300"),
        ("HOT_TOOL_MAX_CONTAINERS", "-1"),
        ("HOT_TOOL_MAX_CONTAINERS", "2.5"),
        ("EVICTION_POLICY", "fifo"),
        ("DOCKER_TTL_SECONDS", "0"),
        ("IM_URL", "http://localhost:8000"),
        ("IM_URL", "ws://me:mine@localhost:8000"),
        ("IM_URL", "localhost"),
        ("KNOWHUB_URL", "https://me:mine@localhost:8000"),
        ("KNOWHUB_URL", "https://localhost?key=mine"),
        ("KNOWHUB_URL", "localhost:8000"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"TOOL_AGENT_{name}", value)
    problems = list(unusable())
    assert [problem.partition(":")[0] for problem in problems] == [f"TOOL_AGENT_{name}"]
    assert "mine" not in problems[0]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("SANDBOX_LEVELS", "bubblewrap,nothing", "TOOL_AGENT_SANDBOX_LEVELS, entry 2: "),
        ("BUCKET_LIMITS", '{"default": "many"}', "TOOL_AGENT_BUCKET_LIMITS, default: "),
        ("BUCKET_LIMITS", '{"default": 0}', "TOOL_AGENT_BUCKET_LIMITS, default: "),
        ("BUCKET_LIMITS", "16", "TOOL_AGENT_BUCKET_LIMITS: "),
        ("BUCKET_LIMITS", "default=16", "TOOL_AGENT_BUCKET_LIMITS: It is not JSON: "),
    ],
)
def test_a_wrong_part_of_a_setting_is_named_under_the_name_of_the_setting(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    monkeypatch.setenv(f"TOOL_AGENT_{name}", value)
    assert [problem.startswith(said) for problem in unusable()] == [True]


def test_a_heartbeat_that_is_too_rare_for_the_lease_is_named_with_both_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    assert HostSettings(host_heartbeat_s=0.1, host_lease_s=0.3).host_lease_s == 0.3
    monkeypatch.setenv("TOOL_AGENT_HOST_HEARTBEAT_S", "5")
    with pytest.raises(ValidationError, match="TOOL_AGENT_HOST_HEARTBEAT_S") as refusal:
        HostSettings()
    assert [issue["loc"] for issue in refusal.value.errors()] == [("host_lease_s",)]


def test_a_state_directory_has_one_owner_and_keeps_its_host(tmp_path: Path) -> None:
    second = owned_state(tmp_path / "state")
    with owned_state(tmp_path / "state") as first, pytest.raises(CannotRun, match="TOOL_AGENT_STATE_DIR"):
        second.__enter__()
    with owned_state(tmp_path / "state") as again:
        assert again.host == first.host


def test_a_state_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CannotRun, match="TOOL_AGENT_STATE_DIR") as refused, owned_state(tmp_path / "file" / "state"):
        pass
    assert str(tmp_path / "file") in str(refused.value)


def test_a_taken_port_is_named_with_its_setting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(CannotRun, match="TOOL_AGENT_FASTAPI_PORT") as refused:
            listen("127.0.0.1", port, "TOOL_AGENT_FASTAPI_PORT")
    assert str(port) in str(refused.value)


def test_a_free_port_is_none_that_another_program_is_given_by_chance() -> None:
    assert max(free_port() for _ in range(50)) < 32_768  # by default


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.com"])  # noqa: S104 - that is what is refused
def test_without_a_key_only_this_machine_is_served(host: str) -> None:
    with pytest.raises(CannotRun, match="TOOL_AGENT_API_KEY"):
        bound_socket(FrontSettings(fastapi_host=host, fastapi_port=free_port()))


def test_a_secret_comes_from_the_environment_then_from_the_private_file(tmp_path: Path) -> None:
    file = tmp_path / "secrets"
    file.write_text("A=from file\nB=with=sign\n", encoding="utf-8")
    file.chmod(0o600)
    secrets = SecretSource({"TOOL_AGENT_SECRET_A": "from environment"}, file)
    assert [secrets.resolve(name) for name in ("secret:A", "B", "C")] == ["from environment", "with=sign", None]


def test_a_secrets_file_that_others_may_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "secrets"
    file.write_text("A=b\n", encoding="utf-8")
    file.chmod(0o644)
    secrets = SecretSource({}, file)
    assert secrets.resolve("A") is None
    with pytest.raises(CannotRun, match="chmod 600"):
        secrets.check()


def test_a_secrets_file_that_is_no_text_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "secrets"
    file.write_bytes(b"A=b\nB=\xff\n")
    file.chmod(0o600)
    secrets = SecretSource({"TOOL_AGENT_SECRET_C": "from environment"}, file)
    with pytest.raises(CannotRun, match=r"UTF-8.*line 2"):
        secrets.check()
    assert [secrets.resolve(name) for name in ("A", "C")] == [None, "from environment"]
    with pytest.raises(SecretRefusedError, match="UTF-8"):
        secrets.keep("NEW", "value")
    assert file.read_bytes() == b"A=b\nB=\xff\n"


@pytest.mark.parametrize("value", ["no \udcff text", "x" * 70_000])
def test_a_secret_that_cannot_be_written_leaves_no_copy_of_the_others(tmp_path: Path, value: str) -> None:
    file = tmp_path / "secrets"
    file.write_text("A=b\n", encoding="utf-8")
    file.chmod(0o600)
    with _files_of_at_most(65_536), pytest.raises(SecretRefusedError):
        SecretSource({}, file).keep("NEW", value)
    assert ([path.name for path in tmp_path.iterdir()], file.read_text("utf-8")) == (["secrets"], "A=b\n")


@contextmanager
def _files_of_at_most(size: int) -> Generator[None]:
    """Writing more fails, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_the_shipped_description_of_the_development_server_can_be_read() -> None:
    assert read_config(ROOT / "temporal-dev.yaml").namespace == "default"


def test_a_description_with_an_unknown_field_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("name: x\n", encoding="utf-8")
    with pytest.raises(CannotRun):
        read_config(tmp_path / "x.yaml")


def test_a_secret_is_replaced_and_forgotten_and_the_others_stay(tmp_path: Path) -> None:
    file = tmp_path / "secrets"
    secrets = SecretSource({"TOOL_AGENT_SECRET_SET": "from environment"}, file)
    for name, value in (("A", "1"), ("AB", "2"), ("A", "3")):
        secrets.replace(name, value)
    secrets.replace("SET", "from environment")
    assert file.read_text() == "AB=2\nA=3\n"
    for name, value in (("SET", "x"), ("A", "two\nlines")):
        with pytest.raises(SecretRefusedError):
            secrets.replace(name, value)
    secrets.forget("A")
    secrets.forget("NONE")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("AB=2\n", 0o600)
