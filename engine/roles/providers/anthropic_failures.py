"""Translates errors of the anthropic client to failures of a provider, by status and type, never by text."""

import math
import time
from collections.abc import Mapping
from email.utils import mktime_tz, parsedate_tz
from typing import assert_never

from anthropic import APIConnectionError, APIResponseValidationError, APIStatusError, APITimeoutError

from engine.roles.provider import BusyKind, ModelBusy, ModelFailure, ModelRefused, RefusedKind
from engine.roles.provider_options import ProviderOptions
from toolagent.core.calls.masking import without_secret
from toolagent.core.texts import shortened
from toolagent_service.contracts.model import Usage

_BY_TYPE: Mapping[str, BusyKind | RefusedKind] = {
    "rate_limit_error": BusyKind.RATE_LIMIT,
    "overloaded_error": BusyKind.OVERLOADED,
    "api_error": BusyKind.SERVER,
    "timeout_error": BusyKind.TIMEOUT,
    "authentication_error": RefusedKind.UNAUTHENTICATED,
    "billing_error": RefusedKind.PAYMENT,
    "permission_error": RefusedKind.FORBIDDEN,
    "not_found_error": RefusedKind.NOT_FOUND,
    "request_too_large": RefusedKind.TOO_LARGE,
    "invalid_request_error": RefusedKind.BAD_REQUEST,
}
"""Errors within a stream have the status 200, so their type decides."""

_BY_STATUS: Mapping[int, BusyKind | RefusedKind] = {
    401: RefusedKind.UNAUTHENTICATED,
    402: RefusedKind.PAYMENT,
    403: RefusedKind.FORBIDDEN,
    404: RefusedKind.NOT_FOUND,
    408: BusyKind.TIMEOUT,
    409: BusyKind.SERVER,
    413: RefusedKind.TOO_LARGE,
    429: BusyKind.RATE_LIMIT,
    504: BusyKind.TIMEOUT,
    529: BusyKind.OVERLOADED,
}

_SPENT = "spend_limit_reached"
"""Suffix of the codes of limits that are set in the console, which do not end within a minute."""

_LONGEST = 500


def failure_of(error: Exception, options: ProviderOptions, usage: Usage | None) -> ModelFailure:
    """The failure for an error of the client, or of reading its stream. `usage` was paid for."""
    told = _told(error, options)
    match error:
        case APIStatusError():
            return _answered(error, options, told, usage)
        case APITimeoutError():
            return ModelBusy(BusyKind.TIMEOUT, f"The model did not answer in time: {told}", usage=usage)
        case APIConnectionError():
            return ModelBusy(BusyKind.CONNECTION, f"{_endpoint(options)} cannot be reached: {told}", usage=usage)
        case APIResponseValidationError():
            return ModelBusy(BusyKind.MALFORMED, f"{_endpoint(options)} sent no answer of the Messages API: {told}", usage=usage)
        case _:
            return ModelBusy(BusyKind.MALFORMED, f"{_endpoint(options)} sent what cannot be read: {told}", usage=usage)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds from now; None if the headers name none."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1_000
    written = headers.get("retry-after")
    seconds = _number(written)
    if seconds is not None or written is None:
        return seconds
    moment = parsedate_tz(written)
    return max(0.0, mktime_tz(moment) - time.time()) if moment else None


def _answered(error: APIStatusError, options: ProviderOptions, told: str, usage: Usage | None) -> ModelFailure:
    match _kind(error):
        case BusyKind() as kind:
            status = "" if error.status_code == 200 else f" (status {error.status_code})"
            message = f"The model is not to be had now{status}: {told}"
            return ModelBusy(kind, message, retry_after_s(error.response.headers), usage)
        case RefusedKind() as kind:
            return ModelRefused(kind, f"{_remedy(kind, options)} It was said: {told}")


def _kind(error: APIStatusError) -> BusyKind | RefusedKind:
    if (error.error_code or "").endswith(_SPENT):
        return RefusedKind.PAYMENT
    # The status counts first, because gateways invent types.
    if error.status_code in _BY_STATUS:
        return _BY_STATUS[error.status_code]
    fallback = RefusedKind.BAD_REQUEST if 400 <= error.status_code < 500 else BusyKind.SERVER
    return _BY_TYPE.get(error.type or "", fallback)


def _remedy(kind: RefusedKind, options: ProviderOptions) -> str:
    match kind:
        case RefusedKind.NO_KEY | RefusedKind.UNAUTHENTICATED:
            return f"{_endpoint(options)} does not take the key: check TOOL_AGENT_MODEL_API_KEY."
        case RefusedKind.PAYMENT:
            return "The account of the key cannot pay or has reached its limit: look at the provider's console."
        case RefusedKind.FORBIDDEN:
            return f"The key may not use the model {options.model!r}: check TOOL_AGENT_MODEL and what TOOL_AGENT_MODEL_API_KEY may do."
        case RefusedKind.NOT_FOUND:
            return (
                f"{_endpoint(options)} knows no model {options.model!r}, or does not speak the Messages API: check TOOL_AGENT_MODEL and "
                "TOOL_AGENT_MODEL_BASE_URL (without /v1)."
            )
        case RefusedKind.TOO_LARGE:
            return "The conversation is larger than the model takes: split the task into smaller ones."
        case RefusedKind.BAD_REQUEST:
            return f"The model {options.model!r} refused what it was asked: check that TOOL_AGENT_MODEL fits a conversation with tools."
        case _:
            assert_never(kind)


def _told(error: Exception, options: ProviderOptions) -> str:
    """The words of the server, shortened, without the key."""
    words = (error.api_message or error.message) if isinstance(error, APIStatusError) else str(error.__cause__ or error)
    line = " ".join(without_secret(words, options.api_key).split()) or type(error).__name__
    return shortened(line, _LONGEST)


def _endpoint(options: ProviderOptions) -> str:
    return f"The endpoint {options.endpoint}" if options.base_url else "The Anthropic API"


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
