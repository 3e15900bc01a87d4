"""Failures that activities raise to Temporal."""

from datetime import timedelta

from temporalio.exceptions import ApplicationError, ApplicationErrorCategory


def expected(message: str, kind: str, *details: object, pause: timedelta | None = None, is_final: bool = False) -> ApplicationError:
    """A planned failure: Temporal does not log or count it as an error. `pause` is before the next attempt; `is_final`: there is none."""
    benign = ApplicationErrorCategory.BENIGN
    return ApplicationError(message, *details, type=kind, next_retry_delay=pause, non_retryable=is_final, category=benign)


def final(message: str, kind: str, *details: object) -> ApplicationError:
    """A failure that Temporal does not retry."""
    return ApplicationError(message, *details, type=kind, non_retryable=True)
