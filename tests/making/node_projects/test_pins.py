"""The versions that locks of other programs name."""

import time

from engine.making.node_projects.pins import pinned, pins_of
from engine.making.python_sources.projects import Table

_MOST_S = 8.0
"""Some times what all take; one regular expression over such a file took more alone."""

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


def test_what_npm_would_refuse_is_left_as_the_project_has_it() -> None:
    manifest = Table({"dependencies": {"ms": "^2.0.0"}, "peerDependencies": {"zod": "^3.0.0"}, "overrides": {"ms@^2": "2.1.3"}})
    assert pinned(manifest, {"ms": "2.1.2", "zod": "3.24.3"}) == {
        "dependencies": {"ms": "^2.0.0"},
        "peerDependencies": {"zod": "3.24.3"},
        "overrides": {"zod": "3.24.3", "ms@^2": "2.1.3"},
    }


PNPM_ELSEWHERE = """
lockfileVersion: '9.0'
patchedDependencies:
  patched@9.9.9:
    hash: abc
importers:
  folder@3.0.0:
    dependencies:
      linked:
        specifier: workspace:*
        version: link:../linked
      aliased:
        specifier: npm:other@^2.0.0
        version: other@2.0.0

packages:

  linked@1.0.0:

  aliased@1.0.0:
  deep@1.0.0:
  other@2.0.0:
  fetched@1.0.0:
  fetched@https://codeload.example.com/x/fetched/tar.gz/abc:
    version: 1.0.0
  archive@file:archive.tgz:
    version: 1.0.0
  named@1.0.0:
  example.com/x/named/abc:
    name: named
    version: 1.0.0
  /slash@1.0.0(zod@3.24.3):
snapshots:
  other@2.0.0:
    dependencies:
      deep: /another@1.0.0
      slash: 1.0.0(zod@3.24.3)
  empty@1.0.0: {}
"""
YARN_ELSEWHERE = """
"string-width-cjs@npm:string-width@^4.2.0":
  version "4.2.3"

string-width@^5.0.0:
  version "5.1.2"

"private@git+https://example.com/private.git":
  version "1.0.0"

private@^1.0.0:
  version "1.0.0"

local@./local, local@^1.0.0:
  version "1.0.0"

short@user/short:
  version "1.0.0"

"__proto__@^1.0.0":
  version "1.0.0"

"many@>= 1.0.0 < 2", many@latest, "many@1 || 2":
  version "1.2.3-beta.1"
"""
BERRY_ELSEWHERE = """
__metadata:
  version: 8

"string-width-cjs@npm:string-width@^4.2.0, string-width@npm:^4.1.0":
  version: 4.2.3

"foo@https://github.com/x/foo.git#commit=abc":
  version: 1.0.0

"typescript@npm:^5.0.0":
  version: 5.4.5

"typescript@patch:typescript@npm%3A^5.0.0#optional!builtin<compat/typescript>":
  version: 5.4.5
"""


def test_what_is_another_package_or_lies_elsewhere_gives_no_version() -> None:
    assert pins_of("pnpm-lock.yaml", PNPM_ELSEWHERE) == {"other": "2.0.0", "slash": "1.0.0", "empty": "1.0.0"}
    assert pins_of("yarn.lock", YARN_ELSEWHERE) == {"string-width": "5.1.2", "many": "1.2.3-beta.1"}
    assert pins_of("yarn.lock", BERRY_ELSEWHERE) == {"typescript": "5.4.5"}


def test_a_line_that_is_too_long_makes_its_package_uncertain() -> None:
    long = ", ".join(f"a@^1.0.{number}" for number in range(100))
    assert pins_of("yarn.lock", f'{long}:\n  version "1.1.0"\n\na@^1.0.0:\n  version "1.0.0"\n') == {}
    assert pins_of("yarn.lock", f'? "{long}"\n:\n  version: 1.1.0\n\n"a@npm:^1.0.0":\n  version: 1.0.0\n') == {}


def test_a_very_large_lock_is_not_read() -> None:
    assert pins_of("yarn.lock", f"{YARN}\n#{' ' * 4 * 1024 * 1024}") == {}


def test_a_hostile_lock_takes_no_time() -> None:
    begun = time.process_time()
    digits = "1" * 1_000_000
    for name in ("pnpm-lock.yaml", "yarn.lock"):
        texts = ("  a" * 300_000, "  a@" * 300_000, "a@\n" * 300_000, f"  {'a' * 1_000_000}@1.0.0:", "a@, " * 300_000)
        versions = (f"  a@1.1.{digits}", f'a@1:\n  version "1.1.{digits}x!', f"packages:\n  a@1.1.{digits}:", f"a@{digits}:\n  version: 1")
        packages = (f"packages:\n{'  a@1.1.' + '1' * 900:}x!\n" * 1_000, ("a@" + "1" * 900 + "!:\n") * 1_000)
        for text in (*texts, *versions, *packages):
            assert pins_of(name, text) == {}
    assert time.process_time() - begun < _MOST_S
