"""What a lane says of Temporal."""

__all__ = ["LaneUnreachableError"]


class LaneUnreachableError(Exception):
    """Temporal does not answer, or did not take what was asked; it may be asked again."""
