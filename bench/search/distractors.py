"""Tools that nobody asks for: they fill a catalog up to its size with words of their own and with the usual verbs."""

import itertools
from collections.abc import Iterator

from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.manifest import ToolManifest

_DEEDS = (
    ("create", "Creates", "创建"),
    ("update", "Updates", "更新"),
    ("delete", "Deletes", "删除"),
    ("list", "Lists", "列出"),
    ("export", "Exports", "导出"),
    ("import", "Imports", "导入"),
    ("approve", "Approves", "批准"),
    ("assign", "Assigns", "分配"),
    ("archive", "Archives", "归档"),
    ("schedule", "Schedules", "排期"),
    ("count", "Counts", "统计"),
    ("inspect", "Inspects", "检查"),
    ("register", "Registers", "登记"),
    ("validate", "Validates", "校验"),
    ("compare", "Compares", "比较"),
)
_THINGS = (
    ("kiln", "kilns", "窑炉"),
    ("loom", "looms", "织机"),
    ("turbine", "turbines", "涡轮机"),
    ("orchard", "orchards", "果园"),
    ("quarry", "quarries", "采石场"),
    ("ferry", "ferries", "渡轮"),
    ("beehive", "beehives", "蜂箱"),
    ("foundry", "foundries", "铸造厂"),
    ("vineyard", "vineyards", "葡萄园"),
    ("silo", "silos", "筒仓"),
    ("crane", "cranes", "起重机"),
    ("pipeline_valve", "pipeline valves", "管道阀门"),
    ("greenhouse", "greenhouses", "温室"),
    ("sawmill", "sawmills", "锯木厂"),
    ("boiler", "boilers", "锅炉"),
    ("reservoir", "reservoirs", "水库"),
    ("locomotive", "locomotives", "机车"),
    ("trawler", "trawlers", "拖网渔船"),
    ("hatchery", "hatcheries", "孵化场"),
    ("smelter", "smelters", "冶炼炉"),
    ("conveyor", "conveyors", "传送带"),
    ("forklift", "forklifts", "叉车"),
    ("borehole", "boreholes", "钻孔"),
    ("substation", "substations", "变电站"),
    ("tannery", "tanneries", "制革厂"),
)
_PARTS = (
    ("permit", "permits", "许可证"),
    ("shift", "shifts", "班次"),
    ("defect", "defects", "缺陷"),
    ("lease", "leases", "租约"),
    ("spare_part", "spare parts", "备件"),
    ("operator", "operators", "操作员"),
    ("inspection", "inspections", "检验记录"),
    ("calibration", "calibrations", "校准值"),
    ("incident", "incidents", "事故"),
    ("supplier", "suppliers", "供应商"),
    ("tariff", "tariffs", "资费"),
    ("maintenance_plan", "maintenance plans", "保养计划"),
    ("batch", "batches", "批次"),
    ("warranty", "warranties", "保修单"),
    ("certificate", "certificates", "合格证"),
    ("quota", "quotas", "配额"),
    ("blueprint", "blueprints", "图纸"),
    ("logbook", "logbooks", "值班日志"),
    ("insurance_policy", "insurance policies", "保单"),
    ("emission", "emissions", "排放量"),
    ("lubricant", "lubricants", "润滑油"),
    ("access_badge", "access badges", "门禁卡"),
    ("consignment", "consignments", "托运单"),
    ("invoice_line", "invoice lines", "账目"),
    ("training_record", "training records", "培训记录"),
    ("work_order", "work orders", "派工单"),
)


def distractors(count: int) -> Iterator[ToolManifest]:
    """Different ones, half of them in Chinese; at most 9,750."""
    every = itertools.product(_DEEDS, _PARTS, _THINGS)
    # Neighbours share a word, so that a smaller catalog has all of them too: 4,001 shares no factor with the number of all.
    chosen = [*every]
    for at in range(count):
        deed, part, thing = chosen[at * 4001 % len(chosen)]
        yield _in_chinese(deed, part, thing) if at % 2 else _in_english(deed, part, thing)


def _in_english(deed: tuple[str, str, str], part: tuple[str, str, str], thing: tuple[str, str, str]) -> ToolManifest:
    return ToolManifest(
        tool_id=f"{thing[0]}_{part[0]}_{deed[0]}",
        name=f"{deed[0].capitalize()} {thing[0].replace('_', ' ')} {part[0].replace('_', ' ')}",
        description=f"{deed[1]} the {part[1]} of {thing[1]} at a site, with date, person in charge and remarks.",
        category="industry",
        tags=(thing[0], part[0]),
        input_schema=_schema({"site": "where it stands", "number": f"of the {part[0].replace('_', ' ')}", "date": "from when on"}),
    )


def _in_chinese(deed: tuple[str, str, str], part: tuple[str, str, str], thing: tuple[str, str, str]) -> ToolManifest:
    return ToolManifest(
        tool_id=f"{thing[0]}_{part[0]}_{deed[0]}",
        name=f"{thing[2]}{part[2]}{deed[2]}",
        description=f"{deed[2]}某个站点{thing[2]}的{part[2]},记录日期、负责人和备注。",
        category="industry",
        tags=(thing[2], part[2]),
        input_schema=_schema({"site": "站点", "number": f"{part[2]}编号", "date": "开始日期"}),
    )


def _schema(params: dict[str, str]) -> JsonSchema:
    return {"type": "object", "properties": {name: {"type": "string", "description": says} for name, says in params.items()}}
