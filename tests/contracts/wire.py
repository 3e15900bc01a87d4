"""Every contract on the wire, found by walking both packages of contracts, and their schemas as one document."""

import importlib
import inspect
import itertools
import pkgutil
from collections.abc import Mapping

from pydantic import JsonValue
from pydantic.json_schema import models_json_schema

from toolagent import contracts
from toolagent.contracts.contract import Contract
from toolagent_service import contracts as of_steps

__all__ = ["Schema", "definitions", "wire_contracts"]

Schema = dict[str, JsonValue]


def wire_contracts() -> Mapping[str, type[Contract]]:
    """The public models by class name, sorted. Raises ValueError when two have one name: payloads would overwrite each other."""
    found: dict[str, type[Contract]] = {}
    packages = (pkgutil.walk_packages(package.__path__, f"{package.__name__}.") for package in (contracts, of_steps))
    for info in itertools.chain.from_iterable(packages):
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            if name.startswith("_") or not inspect.isclass(value) or value is Contract or inspect.isabstract(value):
                continue
            if issubclass(value, Contract) and value.__module__ == info.name:
                if name in found:
                    raise ValueError(f"Two contracts are called {name}: {found[name].__module__} and {info.name}.")
                found[name] = value
    return dict(sorted(found.items()))


def definitions() -> dict[str, Schema]:
    """The JSON schemas of all contracts and of what they are made of, by name; references are `#/$defs/<name>`."""
    _, document = models_json_schema([(model, "validation") for model in wire_contracts().values()])
    return document["$defs"]
