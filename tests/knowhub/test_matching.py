"""Which resources are linked with our tools, and the changes of a plan: pure rules, without a database or KnowHub."""

import pytest
from pydantic import JsonValue

from toolagent.contracts.knowhub import KnowHubPlan, ResourceChange
from toolagent.contracts.manifest import ToolGroup, ToolManifest, ToolStatus
from toolagent_service.knowhub.matching import LEAST, link_of
from toolagent_service.knowhub.planning import NotMergeableError, merged, plan_of
from toolagent_service.knowhub.resources import Resource, resource_of


def resource(resource_id: str = "tools/image_gen/comfyui", **said: JsonValue) -> Resource:
    metadata = {name: said.pop(name) for name in ("tool_slug", "status", "toolhub_items") if name in said}
    found = resource_of({"id": resource_id, "metadata": metadata, **said})
    assert found is not None
    return found


def tool(tool_id: str = "other", name: str = "Other", **more: object) -> ToolManifest:
    return ToolManifest.model_validate({"tool_id": tool_id, "name": name, **more})


WORDS = "generates images from prompts with nodes"


@pytest.mark.parametrize(
    ("ours", "theirs", "is_linked"),
    [
        (tool("run_comfyui"), resource(), True),
        (tool(name="Comfy UI"), resource(title="Comfy UI", resource_id="tools/a/b"), True),
        (tool(name="图片拼接工具"), resource(title="图片拼接", resource_id="tools/a/b"), True),
        (tool("runcomfyuix"), resource(), False),  # no whole word
        (tool("a_b_c"), resource("tools/x/b"), False),  # too short
        (tool(description="Starts ComfyUI", category="image_gen"), resource(), True),
        (tool(description="Starts ComfyUI"), resource(), False),
        (tool(description="It generates images from prompts, with nodes", category="image_gen"), resource(description=WORDS), True),
        (tool(description="It generates images from prompts, with nodes"), resource(description=WORDS), False),
        (tool(category="image_gen"), resource(), False),
        (tool(tool_slug_ids=("comfyui",)), resource(), True),
        (tool("by_hand"), resource(toolhub_items=[{"by_hand": "x"}]), True),
        (tool(description="任何"), resource(description="", title=""), False),
    ],
)
def test_a_link_needs_a_name_or_a_description_with_its_category(ours: ToolManifest, theirs: Resource, *, is_linked: bool) -> None:
    link = link_of(ours, theirs)
    assert (link.score >= LEAST) is is_linked
    assert bool(link.reasons) is (link.score > 0)


def test_a_plan_names_tools_and_their_groups_and_lights_the_resource_up() -> None:
    group = ToolGroup(group_id="comfy_group", name="Comfy", tool_ids=("run_comfyui", "other"))
    others = [tool("comfyui_off", status=ToolStatus.INACTIVE), tool("far:comfyui", external_source="far")]
    plan = plan_of([tool("run_comfyui", "Run"), *others], [group], [resource(status="未接入"), resource("tools/a/none")])
    assert [(one.tool_id, one.add) for one in plan.ours] == [("run_comfyui", ("comfyui",))]
    change = ResourceChange(resource_id="tools/image_gen/comfyui", add={"run_comfyui": "Run", "comfy_group": "Comfy"}, status="已接入")
    assert plan.theirs == (change,)


def test_what_is_planned_and_written_leaves_nothing_to_plan() -> None:
    ours = tool("run_comfyui", "Run")
    said: dict[str, JsonValue] = {"id": "tools/image_gen/comfyui", "metadata": {"note": "kept", "toolhub_items": [{"x": "y"}]}}
    first = resource_of(said)
    assert first is not None
    [change] = plan_of([ours], [], [first]).theirs
    metadata = merged(said, change)
    assert metadata == {"note": "kept", "toolhub_items": [{"x": "y"}, {"run_comfyui": "Run"}], "status": "已接入"}
    after_it: dict[str, JsonValue] = {**said, "metadata": metadata}
    written = resource_of(after_it)
    assert written is not None
    after = plan_of([ours.model_copy(update={"tool_slug_ids": ("comfyui",)})], [], [written])
    assert after == KnowHubPlan(links=after.links, links_total=1)
    assert merged(after_it, change) is None


@pytest.mark.parametrize("items", [[], [{"cutter": "Cutter"}]])
def test_a_slug_that_two_resources_have_does_not_go_from_one_to_the_other(items: JsonValue) -> None:
    ours = tool("cutter", description="Cut photos by width", category="image", tool_slug_ids=("cut",))
    mine = resource("tools/image/cut", description="cut photos by width", toolhub_items=items)
    plan = plan_of([ours], [], [mine, resource("tools/video/cut", description="movies, frames")])
    assert [link.resource_id for link in plan.links] == ["tools/image/cut"]
    by_hand = tool("other", tool_slug_ids=("cut",))
    assert len(plan_of([by_hand], [], [mine, resource("tools/video/cut")]).links) == 2, "a person meant what nothing else says"


def test_a_resource_that_names_our_tool_already_is_lit_up_once() -> None:
    said: dict[str, JsonValue] = {
        "id": "tools/image_gen/comfyui",
        "metadata": {"status": "未接入", "toolhub_items": [{"run_comfyui": "Run"}]},
    }
    first = resource_of(said)
    assert first is not None
    [change] = plan_of([tool("run_comfyui", "Run")], [], [first]).theirs
    metadata = merged(said, change)
    assert metadata == {"status": "已接入", "toolhub_items": [{"run_comfyui": "Run"}]}
    assert merged({**said, "metadata": metadata}, change) is None


def test_of_many_links_the_first_are_told_and_all_are_made() -> None:
    plan = plan_of([tool(f"run_comfyui_{number}") for number in range(201)], [], [resource()])
    assert (len(plan.links), plan.links_total, len(plan.ours), len(plan.theirs[0].add)) == (200, 201, 201, 201)


def test_items_that_are_no_objects_stay() -> None:
    metadata = merged(
        {"id": "tools/a/b", "metadata": {"toolhub_items": ["old", {"x": "y"}]}}, ResourceChange(resource_id="", add={"z": "Z"})
    )
    assert metadata == {"toolhub_items": ["old", {"x": "y"}, {"z": "Z"}]}


@pytest.mark.parametrize("metadata", [{"toolhub_items": "old"}, {"toolhub_items": {"x": "y"}}, ["old"]])
def test_what_would_be_lost_is_not_changed(metadata: JsonValue) -> None:
    with pytest.raises(NotMergeableError, match="tools/a/b"):
        merged({"id": "tools/a/b", "metadata": metadata}, ResourceChange(resource_id="", add={"z": "Z"}))


def test_a_status_that_a_person_has_set_stays() -> None:
    [change] = plan_of([tool("run_comfyui")], [], [resource(status="测试中")]).theirs
    assert change.status is None


@pytest.mark.parametrize("said", [{"id": "articles/x"}, {"id": 3}, {}])
def test_what_is_no_resource_about_a_tool_is_none(said: dict[str, JsonValue]) -> None:
    assert resource_of(said) is None


@pytest.mark.parametrize("metadata", [None, [], {"toolhub_items": "x", "tool_slug": 3, "status": []}, {"toolhub_items": [3, None]}])
def test_metadata_of_any_form_is_read(metadata: JsonValue) -> None:
    found = resource_of({"id": "tools/a/b", "title": None, "metadata": metadata})
    assert found is not None
    assert (found.slug, found.items, found.status) == ("b", frozenset(), "")
