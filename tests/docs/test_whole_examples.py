"""Complete examples of the pages work: a tool file with its script, a docker tool, a policy, prices, server files."""

import json
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx

from engine.roles.prices import Prices
from tests.docs.pages import DOCS, blocks
from tests.programs import Program
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import DockerSource, McpSource
from toolagent.core.catalog.expectations import unexpected
from toolagent.core.catalog.tool_files import read_tool_file
from toolagent.testing.servers.index_packages import load_packages
from toolagent.testing.servers.scenario import load_scenario
from toolagent.validation.schemas import issues_of
from toolagent.validation.tool_rules import ToolRules, faults_of_test_mode
from workers.host.dependencies import dependency_policy_of
from workers.host.sandbox import policy_of
from workers.settings.making import CodingSettings
from workers.settings.tools import SandboxSettings


def block_of(page: str, language: str, part: str = "") -> str:
    (found,) = [block.text for block in blocks(DOCS / page) if block.language == language and part in block.text]
    return found


def test_the_file_of_a_tool_is_valid_and_its_script_does_what_its_example_says() -> None:
    read = read_tool_file(block_of("formats.md", "jsonc"), ToolRules())
    assert read.faults == ()
    assert read.file is not None
    (example,) = read.file.examples
    script = [sys.executable, "-c", block_of("formats.md", "py")]
    done = subprocess.run(script, input=json.dumps(example.input), check=True, capture_output=True, text=True)
    output = json.loads(done.stdout)
    assert [*unexpected(example.expected_output, output)] == []
    assert issues_of(read.file.output, output) == ()


def test_the_tool_with_a_test_mode_has_one_that_fits_its_schema() -> None:
    tool = ToolManifest.model_validate_json(block_of("formats.md", "json", '"test_mode"'), extra="forbid")
    assert (tool.test_mode, faults_of_test_mode(tool)) == ({"dry_run": True}, ())


def test_the_tool_of_an_mcp_server_has_manifest_and_source() -> None:
    tool = ToolManifest.model_validate_json(block_of("formats.md", "json", '"time_now", "name"'), extra="forbid")
    (source,) = json.loads(block_of("formats.md", "json", '"mcp"'))[tool.tool_id]
    assert McpSource.model_validate(source, extra="forbid").command[0] in block_of("formats.md", "toml")


def test_the_docker_tool_has_manifest_source_and_a_program_that_answers() -> None:
    tool = ToolManifest.model_validate_json(block_of("tools.md", "json", '"input_schema"'), extra="forbid")
    (source,) = json.loads(block_of("tools.md", "json", '"docker"'))[tool.tool_id]
    source = DockerSource.model_validate(source, extra="forbid")
    assert (source.dockerfile, block_of("tools.md", "dockerfile").split()[0]) == ("Dockerfile", "FROM")
    text = block_of("tools.md", "py")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert "EXPOSE 8080" in block_of("tools.md", "dockerfile")
    assert "8080" in text
    program = Program([sys.executable, "-c", text.replace("8080", str(port))], stderr=subprocess.DEVNULL)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as http:
            assert answered(http).status_code == 200
            assert http.post(source.endpoint_path, json={"name": "Ada"}).json() == {"text": "Hello Ada"}
    finally:
        program.kill()
        program.wait()


def answered(http: httpx.Client) -> httpx.Response:
    """The answer of a server that may not listen yet."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return http.get("/health")
        except httpx.ConnectError:
            assert time.monotonic() < deadline


def test_the_policy_is_one_and_keeps_what_it_does_not_name(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(block_of("security.md", "yaml", "at_least:"), "utf-8")
    policy = policy_of(SandboxSettings(sandbox_policy=file))
    assert (policy.defaults.wall_s, policy.ceilings.processes, policy.defaults.processes) == (30, 256, 128)


def test_the_policy_for_dependencies_is_one_and_keeps_what_it_does_not_name(tmp_path: Path) -> None:
    file = tmp_path / "dependencies.yaml"
    file.write_text(block_of("security.md", "yaml", "deny:"), "utf-8")
    policy = dependency_policy_of(CodingSettings(dependency_policy=file))
    assert (policy.min_age_days, policy.trusted, policy.allow) == (30, ("acme-*",), ("*",))


def test_the_prices_are_read_and_the_first_that_fits_a_name_holds(tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    file.write_text(block_of("formats.md", "json", '"per_tokens"'), "utf-8")
    prices = Prices.read(file)
    dear, free = prices.of("big-20261010"), prices.of("local-small")
    assert dear is not None
    assert free is not None
    assert (dear.input, dear.long_prompt is not None, free.output, prices.of("another")) == (5, True, 0, None)


def test_the_files_of_the_servers_for_tests_are_valid(tmp_path: Path) -> None:
    scenario, packages = tmp_path / "scenario.yaml", tmp_path / "packages.yaml"
    scenario.write_text(block_of("testing-servers.md", "yaml", "conversations:"), "utf-8")
    packages.write_text(block_of("testing-servers.md", "yaml", "packages:"), "utf-8")
    (conversation,) = load_scenario(scenario).conversations
    assert [turn.repeat for turn in conversation.turns] == [1, 1, 1]
    assert [release.version for release in load_packages(packages).packages[0].releases] == ["1.0", "1.1"]
