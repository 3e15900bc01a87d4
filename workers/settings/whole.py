"""The settings of all parts, and messages about wrong and unknown ones."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import get_type_hints

from pydantic import ValidationError
from pydantic_settings import SettingsError

from toolagent.core.suggestions import nearest
from workers.settings.chats import ChatSettings
from workers.settings.front import FrontSettings, LimitSettings, LogSettings, McpSettings
from workers.settings.hosts import CallSettings, HostSettings, KeepingSettings, RunningSettings, TableSettings
from workers.settings.im import ImSettings
from workers.settings.kept import ContentSettings, DatabaseSettings, RetentionSettings, StateSettings
from workers.settings.making import CodingSettings, ModelSettings, RepairSettings, RepositorySettings
from workers.settings.part import PREFIX, Part
from workers.settings.temporal import TemporalSettings
from workers.settings.tools import CatalogSettings, ContainerSettings, EnvironmentSettings, SandboxSettings

_NOT_OURS = frozenset({"URL", "OWNER", "RUN", "TOOL_ID", "CALL_ID", "OUTPUT_DIR"})
"""Variables of the command line, and of programs that we start: a service may be such a program."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All settings. Parts that are not given come from the environment."""

    front: FrontSettings = field(default_factory=FrontSettings)
    mcp: McpSettings = field(default_factory=McpSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    log: LogSettings = field(default_factory=LogSettings)
    temporal: TemporalSettings = field(default_factory=TemporalSettings)
    state: StateSettings = field(default_factory=StateSettings)
    database: DatabaseSettings = field(default_factory=DatabaseSettings)
    content: ContentSettings = field(default_factory=ContentSettings)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    host: HostSettings = field(default_factory=HostSettings)
    calls: CallSettings = field(default_factory=CallSettings)
    running: RunningSettings = field(default_factory=RunningSettings)
    keeping: KeepingSettings = field(default_factory=KeepingSettings)
    tables: TableSettings = field(default_factory=TableSettings)
    catalog: CatalogSettings = field(default_factory=CatalogSettings)
    environments: EnvironmentSettings = field(default_factory=EnvironmentSettings)
    sandbox: SandboxSettings = field(default_factory=SandboxSettings)
    containers: ContainerSettings = field(default_factory=ContainerSettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    coding: CodingSettings = field(default_factory=CodingSettings)
    chats: ChatSettings = field(default_factory=ChatSettings)
    repairs: RepairSettings = field(default_factory=RepairSettings)
    repositories: RepositorySettings = field(default_factory=RepositorySettings)
    im: ImSettings = field(default_factory=ImSettings)


PARTS: tuple[type[Part], ...] = tuple(get_type_hints(Settings).values())


def unusable() -> Iterator[str]:
    """A sentence for each invalid setting."""
    for part in PARTS:
        try:
            part()
        except SettingsError as error:
            named = re.search(r'"(\w+)"', str(error))  # the error has the name in its text only
            yield f"{PREFIX}{named[1].upper() if named else ''}: It is not JSON: {error.__cause__}"
        except ValidationError as error:
            for issue in error.errors(include_url=False, include_input=False):
                setting, *place = issue["loc"]
                where = "".join(f", {'entry ' + str(step + 1) if isinstance(step, int) else step}" for step in place)
                yield f"{PREFIX}{str(setting).upper()}{where}: {issue['msg']}"


def unread(variables: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each variable that looks like a setting and is not."""
    known = [name for part in PARTS for name in part.model_fields]
    for name in sorted(variables):
        own = name.removeprefix(PREFIX)
        if own not in {name, *map(str.upper, known), *_NOT_OURS} and not own.startswith("SECRET_"):
            near = nearest(own.lower(), known, 1)
            yield f"{name} is no setting: nothing reads it." + (f" Did you mean {PREFIX}{near[0].upper()}?" if near else "")
