"""Why the service cannot start or go on: said to a person in one sentence, without a traceback."""


class CannotRun(Exception):
    """The message says what is wrong and what to do about it."""
