"""Where a tool answers, for those who are shown it."""

from toolagent.contracts.routes import ToolRoute


def port_of(route: ToolRoute) -> int | None:
    """A port that answers on its host. A tool with a network of its own listens on one that nobody else reaches: then None."""
    is_reached = route.endpoint is not None and route.endpoint.startswith(("http://", "https://"))
    return route.port if is_reached else None
