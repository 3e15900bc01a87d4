"""The refusal of a model's request."""


class BenchRefused(Exception):
    """The message says what is wrong and what to do instead, in words that a model can act on."""
