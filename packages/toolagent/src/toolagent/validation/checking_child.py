"""The program that checks values against schemas within limits (see `checkers`).

Usage: checking_child.py SECONDS BYTES.

It reads requests from stdin, each after its length, and answers in lines. It ends at the end of stdin, and so with its parent.
"""

import json
import marshal
import os
import resource
import sys
from collections.abc import Mapping
from typing import BinaryIO

import jsonschema_rs

from toolagent.validation.checking import Found, explained, short, validator

__all__ = ["main"]

_SPARE_S = 2
_ENDED = 3


def main(seconds: int, memory: int) -> None:
    os.nice(5)
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    requests, answers = sys.stdin.buffer, sys.stdout.buffer
    while len(size := requests.read(8)) == 8:
        used = resource.getrusage(resource.RUSAGE_SELF)
        # The parent ends this process at its limit. If the parent has died, this limit does.
        resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + seconds + _SPARE_S, resource.RLIM_INFINITY))
        try:
            _answer(requests.read(int.from_bytes(size, "big")), answers)
        except BaseException:  # noqa: BLE001 - no memory, or a panic of the library
            os._exit(_ENDED)


def _answer(request: bytes, answers: BinaryIO) -> None:
    """Says first whether the value is valid, because the reasons may take too long."""
    schema, value, most = marshal.loads(request)  # noqa: S302 - from the parent
    try:
        checker = validator(schema)
    except ValueError as error:
        _say(answers, {"error": short(str(error).split("\n", 1)[0]) or "It is not a JSON Schema."})
        return
    try:
        valid = checker.is_valid(value)
        _say(answers, {"valid": valid})
        if not valid:
            _say(answers, {"first": _first(checker, value)})
            _say(answers, {"found": explained(checker.iter_errors(value), most)})
    except ValueError as error:  # nested too deeply, or not valid text
        _say(answers, {"found": [("$", short(str(error)), "")]})


def _first(checker: jsonschema_rs.Draft202012Validator, value: object) -> tuple[Found, ...]:
    try:
        checker.validate(value)
    except jsonschema_rs.ValidationError as error:
        return explained([error], 1)
    return ()


def _say(answers: BinaryIO, said: Mapping[str, object]) -> None:
    answers.write(json.dumps(said).encode() + b"\n")
    answers.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
