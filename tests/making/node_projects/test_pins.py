"""The versions that locks of other programs name."""

from engine.making.node_projects.pins import pinned, pins_of
from engine.making.python_sources.projects import Table

PNPM = """
importers:
  .:
    dependencies:
      zod:
        version: 3.24.3
packages:
  '@a/b@1.2.3':
    resolution: {}
  zod@3.24.3:
    resolution: {}
  two@1.0.0:
  two@2.0.0:
snapshots:
  '@a/b@1.2.3(zod@3.24.3)':
    dependencies:
      zod: 3.24.3
"""
YARN = """
"@a/b@^1.0.0", "@a/b@^1.1.0":
  version "1.2.3"

ms@^2.0.0:
  version "2.1.2"

two@^1.0.0:
  version "1.0.0"

two@^2.0.0:
  version "2.0.0"
"""
BERRY = """
"@a/b@npm:^1.0.0, @a/b@npm:^1.1.0":
  version: 1.2.3

"own@workspace:.":
  version: 0.0.0-use.local
"""


def test_of_each_lock_what_has_one_version_is_taken() -> None:
    assert pins_of("pnpm-lock.yaml", PNPM) == {"@a/b": "1.2.3", "zod": "3.24.3"}
    assert pins_of("yarn.lock", YARN) == {"@a/b": "1.2.3", "ms": "2.1.2"}
    assert pins_of("yarn.lock", BERRY) == {"@a/b": "1.2.3"}


def test_what_a_project_names_itself_has_the_same_version_twice_and_what_lies_elsewhere_stays() -> None:
    wanted: dict[str, object] = {"zod": "^3.0.0", "own": "file:own.tgz"}
    manifest = Table({"name": "x", "dependencies": wanted, "devDependencies": {"ms": "*"}, "overrides": {"deep": "1.0.0"}})
    assert pinned(manifest, {"zod": "3.24.3", "own": "1.0.0", "deep": "9.9.9", "ms": "2.1.2"}) == {
        "name": "x",
        "dependencies": {"zod": "3.24.3", "own": "file:own.tgz"},
        "devDependencies": {"ms": "2.1.2"},
        "overrides": {"zod": "3.24.3", "ms": "2.1.2", "deep": "1.0.0"},
    }


def test_a_hostile_lock_takes_no_time() -> None:
    for name in ("pnpm-lock.yaml", "yarn.lock"):
        for text in ("  a" * 300_000, "  a@" * 300_000, "a@\n" * 300_000, f"  {'a' * 1_000_000}@1.0.0:", "a@, " * 300_000):
            assert pins_of(name, text) == {}
