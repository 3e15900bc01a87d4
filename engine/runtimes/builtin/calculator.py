"""Evaluates arithmetic expressions, with limits on size, numbers and time."""

import ast
import math
import operator
import time
from collections.abc import Callable
from typing import Annotated, cast

from pydantic import Field, WithJsonSchema
from simpleeval import InvalidExpression, SimpleEval

from engine.runtimes.builtin.options import BuiltinOptions
from engine.runtimes.builtin.tool import BuiltinTool, ToolArguments, ToolContext, ToolOutput, TypedTool, schema_of
from engine.runtimes.failures import CallFailed
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import PermissionClass, SideEffectScope, ToolExample, ToolManifest

Number = Annotated[int | float, WithJsonSchema({"type": "number"})]

_MAX_BITS = 4096
_MAX_PLACES = 1000
_MAX_SECONDS = 1.0
_TOO_DEEP = "The expression has too many levels (a chain such as 1+1+1 has one a term): work it out in parts."


class Arguments(ToolArguments):
    expression: Annotated[
        str,
        Field(
            min_length=1,
            max_length=1000,
            description="Numbers, + - * / // % **, parentheses, pi, e, tau, and the functions "
            "sqrt sin cos tan asin acos atan log log10 exp abs round min max floor ceil.",
        ),
    ]


class Result(ToolOutput):
    result: Number
    expression: str


_MANIFEST = ToolManifest(
    tool_id="calculator",
    name="Calculator",
    description="Works out an arithmetic expression. Integers are exact up to 4096 bits. 计算算术表达式:加减乘除、取余、乘方和函数。",
    tags=("math", "plus", "minus", "times", "divide", "percent", "计算", "乘以", "减去", "除以", "百分比"),
    input_schema=schema_of(Arguments),
    output_schema=schema_of(Result),
    permission_class=PermissionClass.READ,
    side_effect_scope=SideEffectScope.NONE,
    examples=(
        ToolExample(description="Precedence", input={"expression": "2 + 3 * 4"}, expected_output={"result": 14, "expression": "2 + 3 * 4"}),
        ToolExample(
            description="A function",
            input={"expression": "sqrt(16) + abs(-1)"},
            expected_output={"result": 5.0, "expression": "sqrt(16) + abs(-1)"},
        ),
    ),
    timeout_s=2,
)


def tool(_options: BuiltinOptions) -> BuiltinTool:
    return TypedTool(_MANIFEST, Arguments, run)


async def run(arguments: Arguments, _context: ToolContext) -> Result:
    """Runs in the event loop's thread: 1,000 characters over bounded numbers take milliseconds."""
    return Result(result=evaluate(arguments.expression), expression=arguments.expression)


def evaluate(expression: str, max_seconds: float = _MAX_SECONDS) -> int | float:
    """The value of an expression.

    Raises CallFailed: `validation_error` if it is not arithmetic, `execution_error` if it has no value, `timeout`.
    """
    try:
        found = _Arithmetic(max_seconds).eval(expression, _parse(expression))  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - simpleeval is not typed
        return cast("int | float", found)
    except InvalidExpression as error:
        raise _refused(f"{error} {_OFFER}") from error
    except ZeroDivisionError as error:
        raise CallFailed(ErrorType.EXECUTION_ERROR, "The expression divides by zero.") from error
    except (OverflowError, ValueError, TypeError) as error:
        raise CallFailed(ErrorType.EXECUTION_ERROR, f"The expression cannot be worked out: {error}.") from error
    except RecursionError as error:
        raise _refused(_TOO_DEEP) from error


def _parse(expression: str) -> ast.expr:
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (RecursionError, MemoryError) as error:  # the parser's errors for too deep nesting
        raise _refused(_TOO_DEEP) from error
    except SyntaxError as error:
        raise _refused(f"The expression cannot be read: {error.msg} (at character {error.offset or 0}).") from error
    except (ValueError, OverflowError) as error:
        raise _refused(f"The expression cannot be read: {error}.") from error
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED_NODES):
            raise _refused(f"{type(node).__name__} is not arithmetic. {_OFFER}")
        if isinstance(node, ast.Call) and not isinstance(node.func, ast.Name):
            raise _refused(f"Only named functions can be called. {_OFFER}")
    return tree.body


class _Arithmetic(SimpleEval):
    """simpleeval for numbers only. Every intermediate value is bounded, so no step can take long."""

    def __init__(self, max_seconds: float) -> None:
        super().__init__(  # pyright: ignore[reportUnknownMemberType] - simpleeval is not typed
            operators=dict(_OPERATORS), functions=dict(_FUNCTIONS), names=dict(_NAMES)
        )
        self._deadline = time.monotonic() + max_seconds
        self._max_seconds = max_seconds

    def _eval(self, node: ast.AST) -> int | float:
        if time.monotonic() >= self._deadline:
            raise CallFailed(ErrorType.TIMEOUT, f"The expression took longer than {self._max_seconds:g} s.")
        found = cast("object", super()._eval(node))  # pyright: ignore[reportUnknownMemberType] - as above
        return _finite(found)


def _finite(value: object) -> int | float:
    """The value if it is a JSON number, finite and not too large. Raises CallFailed."""
    match value:
        case bool():
            raise _refused(f"{value} is not a number. {_OFFER}")
        case int():
            if value.bit_length() > _MAX_BITS:
                raise _too_large()
            return value
        case float():
            if not math.isfinite(value):
                raise CallFailed(ErrorType.EXECUTION_ERROR, f"A value in the expression is not a finite number: {value}.")
            return value
        case complex():
            raise CallFailed(ErrorType.EXECUTION_ERROR, "A value in the expression is a complex number; only real numbers are supported.")
        case _:
            raise _refused(f"A value in the expression is not a number: {type(value).__name__}. {_OFFER}")


def _power(base: int | float, exponent: int | float) -> object:
    # 2 ** (bits - 1) <= |base|: too large powers are refused before they are computed. Others have at most twice the bits.
    if isinstance(base, int) and isinstance(exponent, int) and exponent * (abs(base).bit_length() - 1) > _MAX_BITS:
        raise _too_large()
    result: object = base**exponent
    return result


def _round(value: int | float, places: int = 0) -> int | float:
    if abs(places) > _MAX_PLACES:  # Python would compute 10 ** -places
        raise _refused(f"round takes at most {_MAX_PLACES} places, not {places}.")
    return round(value, places) if places else round(value)


def _too_large() -> CallFailed:
    return CallFailed(ErrorType.EXECUTION_ERROR, f"A value in the expression is too large: integers may have {_MAX_BITS} bits.")


def _refused(message: str) -> CallFailed:
    return CallFailed(
        ErrorType.VALIDATION_ERROR,
        message,
        {"errors": [{"path": "$.expression", "message": message, "keyword": "expression"}]},
    )


_OPERATORS: dict[type[ast.AST], Callable[..., object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,  # pyright: ignore[reportUnknownMemberType] - its stub has no types
    ast.FloorDiv: operator.floordiv,  # pyright: ignore[reportUnknownMemberType] - its stub has no types
    ast.Mod: operator.mod,
    ast.Pow: _power,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
_FUNCTIONS: dict[str, Callable[..., object]] = {
    **{name: getattr(math, name) for name in ("sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "log", "log10", "exp")},
    "abs": abs,
    "round": _round,
    "min": min,
    "max": max,
    "floor": math.floor,
    "ceil": math.ceil,
}
_NAMES = {"pi": math.pi, "e": math.e, "tau": math.tau}
_ALLOWED_NODES = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.Call, ast.Name, ast.Load, ast.Constant, *_OPERATORS)
_OFFER = f"There are: numbers, + - * / // % **, parentheses, {', '.join((*_NAMES, *_FUNCTIONS))}."
