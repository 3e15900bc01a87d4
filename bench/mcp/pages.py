"""A page of tools where there are few, and where there are many."""

from contextlib import ExitStack
from pathlib import Path

from bench.generator import Generator
from bench.mcp.requests import SINGLE, mcp_request
from bench.rounds import Measurements, Plan, Target, measure
from bench.service import HARMLESS, OurService, make_catalog

FEW = 100
"""As many as a page has. The shipped tools and those of the bench come on top, in both catalogs."""


def measure_pages(generator: Generator, folder: Path, plan: Plan, many: int) -> Measurements:
    """Rows `page.few` and `page.many`: the first page of `tools/list`, which is the same in both. Raises NotReadyError."""
    listing, targets = mcp_request(SINGLE, "tools/list"), list[Target]()
    with ExitStack() as stack:
        for kind, tools in (("few", FEW), ("many", many)):
            service = OurService(folder / f"pages-{kind}", make_catalog(folder / f"pages-{kind}-data", tools), HARMLESS)
            stack.callback(service.stop)
            parts = {"our Python": service.parts()["python"]}
            label, url = f"ours by MCP: the first page of {tools:,} tools", f"{service.url}/mcp"
            targets.append(Target(f"page.{kind}", label, url, listing.body, parts, '"nextCursor"', headers=listing.headers, callers=(1,)))
        return measure(generator, targets, plan)
