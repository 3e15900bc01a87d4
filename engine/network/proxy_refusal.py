"""The proxy's answer to a request that it does not forward."""


class Refused(Exception):
    """`message` is for the caller, `reason` for the audit. `error` is a type of RFC 9209 §2.3."""

    def __init__(self, status: int, error: str, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.status, self.error, self.message, self.reason = status, error, message, reason or message
