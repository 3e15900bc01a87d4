"""What a model asked for cannot be done as it asked."""


class BenchRefused(Exception):
    """The message says what is wrong and what to do instead, in words that a model can act on."""
