"""Every contract on the wire, found by walking `toolagent.contracts`, and their schemas as one document."""

import importlib
import inspect
import pkgutil
from collections.abc import Mapping

from pydantic import JsonValue
from pydantic.json_schema import models_json_schema

from toolagent import contracts
from toolagent.contracts.contract import Contract

__all__ = ["Schema", "definitions", "wire_contracts"]

Schema = dict[str, JsonValue]


def wire_contracts() -> Mapping[str, type[Contract]]:
    """The public models by class name, sorted. Raises ValueError when two have one name: payloads would overwrite each other."""
    found: dict[str, type[Contract]] = {}
    for info in pkgutil.walk_packages(contracts.__path__, f"{contracts.__name__}."):
        module = importlib.import_module(info.name)
        for name in module.__all__:
            value: object = getattr(module, name)
            if inspect.isclass(value) and issubclass(value, Contract) and value is not Contract and value.__module__ == info.name:
                if name in found:
                    raise ValueError(f"Two contracts are called {name}: {found[name].__module__} and {info.name}.")
                found[name] = value
    return dict(sorted(found.items()))


def definitions() -> dict[str, Schema]:
    """The JSON schemas of all contracts and of what they are made of, by name; references are `#/$defs/<name>`."""
    _, document = models_json_schema([(model, "validation") for model in wire_contracts().values()])
    return document["$defs"]
