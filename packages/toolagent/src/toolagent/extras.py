"""What to do where an extra of this package is not installed."""

__all__ = ["remedy_of"]


def remedy_of(extra: str) -> str:
    """A sentence. It names the checkout: `pip install toolagent` would install another project's package."""
    return f'In a checkout of Tool Agent: pip install "packages/toolagent[{extra}]".'
