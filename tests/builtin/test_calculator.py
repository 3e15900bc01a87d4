"""The calculator evaluates arithmetic and nothing else, quickly."""

import math
import time

import pytest
from pydantic import JsonValue

from engine.runtimes.builtin import builtin_tools
from engine.runtimes.builtin.calculator import evaluate
from engine.runtimes.builtin.options import BuiltinOptions
from engine.runtimes.failures import CallFailed
from tests.builtin.conformance import run_alone
from toolagent.contracts.calls import ErrorType

CALCULATOR = builtin_tools(BuiltinOptions())["calculator"]


async def calculate(expression: str) -> JsonValue:
    answer = await run_alone(CALCULATOR, {"expression": expression})
    assert isinstance(answer, dict)
    assert answer["expression"] == expression
    return answer["result"]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1+2", 3),
        (" 2 + 3 * 4 ", 14),
        ("7 // 2 - 7 % 4", 0),
        ("-2 ** 2", -4),
        ("1 / 4", 0.25),
        ("sqrt(2) ** 2", math.sqrt(2) ** 2),
        ("max(1, 2, floor(3.7), ceil(2.1))", 3),
        ("round(2.345, 1)", 2.3),
        ("log(e) + log10(1000) + log(8, 2)", 7.0),
        ("cos(tau) + sin(0) + atan(0)", 1.0),
        ("2 ** 4095", 2**4095),
        ("1" * 1000, int("1" * 1000)),
    ],
)
async def test_arithmetic_is_worked_out(expression: str, value: float) -> None:
    assert await calculate(expression) == value


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('id')",
        "(1).__class__",
        "sqrt.__self__",
        "open('/etc/passwd')",
        "lambda: 1",
        "[1 for _ in [1]]",
        "'a' * 10**9",
        "f'{1}'",
        "[1] * 10**9",
        "True",
        "None",
        "sqrt",
        "x",
        "x = 1",
        "import os",
        "1; 2",
        "1 +",
        "1 if 1 else 2",
        "1 < 2",
        "1 << 99999",
        "min(*[1])",
        "round(x=1)",
        "round(1, -999999999)",
        "sqrt(1)(2)",
        " ",
        "1\0",
        "",
        "1" * 1001,
        "1+" * 500_000 + "1",
        "(" * 400 + "1" + ")" * 400,
        "-" * 990 + "1",
        "+".join("1" * 500),
    ],
)
async def test_what_is_no_bounded_arithmetic_is_refused(expression: str) -> None:
    with pytest.raises(CallFailed) as failure:
        await calculate(expression)
    assert failure.value.error_type is ErrorType.VALIDATION_ERROR
    assert failure.value.details["errors"]


@pytest.mark.parametrize(
    "expression",
    [
        "1/0",
        "1 % 0",
        "9**9**9**9",
        "(9**999)**999",
        "2**4096",
        "(2**4000) * (2**4000)",
        "10**1000 / 3",
        "1e999",
        "1e308 * 10",
        "(-1)**0.5",
        "1j",
        "sqrt(-1)",
        "log(0)",
        "exp(1000)",
        "asin(2)",
        "min(1)",
        "sqrt()",
        "0.5 ** (10**1000)",
    ],
)
async def test_what_has_no_value_is_an_execution_error(expression: str) -> None:
    with pytest.raises(CallFailed) as failure:
        await calculate(expression)
    assert (failure.value.error_type, failure.value.outcome) == (ErrorType.EXECUTION_ERROR, "failed")


def test_an_expression_over_its_time_is_ended() -> None:
    with pytest.raises(CallFailed) as failure:
        evaluate("1 + 1", max_seconds=0)
    assert failure.value.error_type is ErrorType.TIMEOUT


def test_the_dearest_expression_that_fits_is_cheap() -> None:
    expression = "*".join(["(3**2583//2**4093)"] * 52)
    begun = time.thread_time()
    assert evaluate(expression) == (3**2583 // 2**4093) ** 52
    assert time.thread_time() - begun < 1
