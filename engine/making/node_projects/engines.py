"""Whether a project is meant for the Node.js of this machine, as far as its `engines` can be understood without npm."""

import re

from engine.making.python_sources.projects import Table

_COMPARATOR = re.compile(r"(>=|<=|>|<|=|\^|~)?\s*v?(\d{1,4})(?:\.(?:\d{1,6}|x|\*))*")
_LONGEST = 200


def engines_note(manifest: Table, version: str) -> tuple[str, ...]:
    """Nothing where it is, or says nothing of it. `version` is as `node --version` says it."""
    wanted = manifest.table("engines").text("node")[:_LONGEST]
    major = re.match(r"v?(\d+)", version)
    if not wanted or major is None or any(_fits(one, int(major[1])) for one in wanted.split("||")):
        return ()
    return (f"It says that it is for Node.js {wanted}; it runs with {version}, which is what is here.",)


def _fits(alternative: str, major: int) -> bool:
    """By its first number alone; what cannot be read fits."""
    return all(_holds(sign, int(number), major) for sign, number in _COMPARATOR.findall(alternative))


def _holds(sign: str, number: int, major: int) -> bool:
    match sign:
        case ">=" | ">":
            return major >= number
        case "<":
            return major < number
        case "<=":
            return major <= number
        case _:
            return major == number
