"""What a policy grants to a tool, and which hosts a pattern matches."""

import pytest

from toolagent.contracts.manifest import FileAccess, NetworkAccess, SecurityContext
from toolagent.contracts.sandbox import SandboxGrant, SandboxLimits, SandboxPolicy
from toolagent_service.calls.hosts import host_matches
from toolagent_service.calls.sandbox import granted

WIDE = SandboxPolicy(read=("/srv",), write=("/srv/out/",), environment=("TZ", "LANG"))


def test_what_a_manifest_asks_for_is_said_in_the_sandboxs_words() -> None:
    context = SecurityContext(
        file_access=FileAccess(allow_read=("self", "data/**"), allow_write=(".cache/**",)),
        network_access=NetworkAccess(allow_hosts=("api.example.com",)),
        environment=("TZ",),
        limits=SandboxLimits(memory_bytes=1),
    )
    assert context.asked == SandboxGrant(
        read=("self", "data/**"),
        write=(".cache/**",),
        hosts=("api.example.com",),
        environment=("TZ",),
        limits=SandboxLimits(memory_bytes=1),
    )


def test_who_asks_for_nothing_gets_the_default_limits_and_nothing_else() -> None:
    assert granted(SandboxGrant(), SandboxPolicy()) == (SandboxGrant(limits=SandboxPolicy().defaults), ())


@pytest.mark.parametrize("path", ["self", "./*", "data/**", "a/b..c", "/srv", "/srv/a", "/srv/a/**"])
def test_own_files_and_those_the_policy_names_may_be_read(path: str) -> None:
    enforced, differences = granted(SandboxGrant(read=(path,)), WIDE)
    assert (enforced.read, differences) == ((path,), ())


@pytest.mark.parametrize("path", ["..", "../x", "data/../../x", "/srv/../etc", "/srvx", "/", "/etc/passwd", "~/x", "~root/x"])
def test_what_leads_elsewhere_is_not_granted_and_the_account_says_so(path: str) -> None:
    enforced, (difference,) = granted(SandboxGrant(read=("self", path)), WIDE)
    assert enforced.read == ("self",)
    assert (difference.item, difference.requested, difference.enforced) == ("read", ["self", path], ["self"])


def test_leave_to_read_is_no_leave_to_write() -> None:
    enforced, (difference,) = granted(SandboxGrant(write=("/srv/in", "/srv/out/x")), WIDE)
    assert (enforced.write, difference.item) == (("/srv/out/x",), "write")


@pytest.mark.parametrize(
    ("allowed", "asked_for"),
    [
        ("*", "example.com"),
        ("*", "example.com:8443"),
        ("*", "*"),
        ("*.example.com", "a.example.com"),
        ("*.example.com", "a.b.example.com:443"),
        ("*.example.com", "*.b.example.com"),
        ("Example.COM", "example.com"),
        ("example.com:8443", "example.com:8443"),
        ("example.com", "example.com:80"),
        ("*:8443", "a.example.com:8443"),
        ("[::1]:80", "[::1]:80"),
    ],
)  # fmt: skip
def test_a_host_within_those_allowed_is_granted(allowed: str, asked_for: str) -> None:
    assert granted(SandboxGrant(hosts=(asked_for,)), SandboxPolicy(hosts=(allowed,)))[0].hosts == (asked_for,)


@pytest.mark.parametrize(
    ("allowed", "asked_for"),
    [
        ("example.com", "*"),
        ("*.example.com", "example.com"),
        ("*.example.com", "badexample.com"),
        ("*.example.com", "*.com"),
        ("example.com", "example.com:8443"),
        ("example.com:443", "example.com"),
        ("*:443", "example.com"),
        ("a.example.com", "*.example.com"),
    ],
)  # fmt: skip
def test_a_host_beyond_those_allowed_is_not(allowed: str, asked_for: str) -> None:
    enforced, (difference,) = granted(SandboxGrant(hosts=(asked_for,)), SandboxPolicy(hosts=(allowed,)))
    assert (enforced.hosts, difference.item) == ((), "hosts")


def test_variables_are_granted_by_name_alone() -> None:
    enforced, (difference,) = granted(SandboxGrant(environment=("TZ", "PATH", "AWS_SECRET")), WIDE)
    assert (enforced.environment, difference.enforced) == (("TZ",), ["TZ"])


def test_a_limit_above_the_ceiling_is_the_ceiling_and_one_below_stays() -> None:
    ceilings = SandboxLimits(memory_bytes=100, cpus=2)
    policy = SandboxPolicy(defaults=SandboxLimits(memory_bytes=50, cpus=1, processes=3), ceilings=ceilings)
    enforced, (difference,) = granted(SandboxGrant(limits=SandboxLimits(memory_bytes=101, cpus=1.5)), policy)
    assert enforced.limits == SandboxLimits(memory_bytes=100, cpus=1.5, processes=3)
    assert (difference.item, difference.requested, difference.enforced) == ("limits.memory_bytes", 101, 100)


@pytest.mark.parametrize(
    ("pattern", "host", "port", "means"),
    [
        ("example.com", "example.com", 443, True),
        ("example.com", "EXAMPLE.com.", 80, True),
        ("example.com", "example.com", 22, False),
        ("example.com:22", "example.com", 22, True),
        ("example.com:22", "example.com", 443, False),
        ("*.example.com", "example.com", 443, False),
        ("*.example.com", "a.b.example.com", 443, True),
        ("*.example.com", "aexample.com", 443, False),
        ("*", "anything", 443, True),
        ("*", "anything", 22, False),
        ("[2001:db8::1]", "2001:db8::1", 443, True),
        ("[2001:db8::1]:22", "2001:db8::1", 22, True),
    ],
)  # fmt: skip
def test_which_hosts_a_pattern_means(pattern: str, host: str, port: int, means: bool) -> None:
    assert host_matches(pattern, host, port) is means
