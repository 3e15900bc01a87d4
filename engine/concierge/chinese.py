"""How Chinese asks: the first pattern that is found decides. `about` is what is asked for."""

import re

from toolagent_service.contracts.concierge import Intent

_COURTESY = r"(?:你好|您好|请问|请|麻烦|帮我|帮忙|帮|给我|为我|能不能|能否|可以|可不可以|需要|我们想|我们要|我们|我想要|我要|我想|想要|想|要|让|新|你|,|,|\s)*"
_MAKING = r"(?:创建|制作|开发|编写|生成|实现|构建|搭建|新建|做|写|造)"
_MADE = r"(?:工具|接口|服务|程序|脚本|器|API)"

PATTERNS: tuple[tuple[Intent, re.Pattern[str]], ...] = tuple(
    (intent, re.compile(pattern, re.IGNORECASE))
    for intent, pattern in (
        (
            Intent.HELP,
            r"^\W*(?:你好|您好|嗨|在吗|帮助|哈喽|早上好|下午好|晚上好|早)\W*$|你(?:都)?(?:能|会|可以)(?:做|干)?(?:些)?什么|你是谁|怎么(?:跟|和)你说|有帮助吗|这是什么服务",
        ),
        (Intent.MAKE, rf"^{_COURTESY}{_MAKING}(?:一个|一款|一下|个|一|出)*(?P<about>.*{_MADE}.*)$"),
        (Intent.REPAIR, r"修复|修一下|修好|修理|修一修|修修"),
        (Intent.GROUPS, r"工具组|[a-z0-9_-] ?组|一套|成套|这个组|哪些组|有什么组|配合使用|一起使用|一起用|使用顺序|调用顺序"),
        (Intent.RUNTIMES, r"运行时|运行环境|执行环境|后端环境|在哪里?运行|(?:跑|运行)在什么|本地跑|docker ?里跑"),
        (
            Intent.STATUS,
            r"任务.*(?:进度|完|怎么样|状态|进展|好了)|(?:进度|状态|进展).*任务|(?:让|要|请)你(?:做|写|建|创建|开发|修).*(?:好了|完了|做完|进度|怎么样)|最近有.*任务|正在(?:创建|制作|构建|做|开发)|(?:哪些|列出).*任务",
        ),
        (
            Intent.LIST,
            r"^\W*(?:请|帮我)?(?:列出|显示|展示|查看|看看?)?(?:一下)?(?:所有|全部|现有)的?工具\W*$|多少个?工具|工具.{0,4}(?:几|多少)个|工具(?:清单|列表|目录|一览)",
        ),
        (Intent.LIST, r"^(?:请问)?(?:你们?|这里|现在|当前|目前|系统)?(?:都|里)?(?:有|提供)(?:什么|哪些|啥)工具\W*$"),
        (Intent.DETAILS, r"(?:如何|怎么|怎样)(?:使用|调用|用|调|运行)(?P<about>.*\w.*)$|教(?:我|一下)?(?:怎么)?用(?:一下)?(?P<before>.+)$"),
        (Intent.DETAILS, r"^(?P<about>.+?)(?:要|该|应该)?(?:怎么|如何|怎样)(?:使用|调用|用)"),
        (
            Intent.DETAILS,
            r"^(?P<about>.+?)(?:需要|有|要|接受)(?:传|给|填)?(?:哪些|什么)(?:参数|输入)|^(?P<before>.+?)的(?:参数|用法|输入|说明|文档|schema)",
        ),
        (
            Intent.DETAILS,
            rf"^{_COURTESY}(?:介绍|说明|解释|讲讲|说说)(?:一下)?(?P<about>.+)$|^(?P<before>\S+) ?(?:这个工具)?(?:是干什么|是做什么|是什么|有什么用)",
        ),
        (Intent.DETAILS, r"(?:给|来|看|查看)(?:我)?(?:一?个|一下)?(?P<about>.+?)的?(?:调用)?(?:示例|例子|详情|输入输出|参数|格式)"),
        (
            Intent.DISCOVER,
            r"有没有|有哪些|有什么|有啥|有办法|有.*吗|哪里可以|求一?个|哪个|哪些|什么工具|用什么|推荐|找|搜|是否|能不能|能否|可不可以|可以.*吗|(?:怎么|如何|怎样)",
        ),
        (Intent.DISCOVER, r"需要|想|帮我|我要|工具|接口"),
    )
)

CATEGORY = re.compile(
    r"(?:类别|分类|类目)(?:是|为|:|:)?\s*(?P<category>[a-z][a-z0-9_-]*)|(?P<before>[a-z][a-z0-9_-]*)\s*(?:类别|分类|类目|类的)"
)
DEPLOYS = re.compile(r"部署|封装|接入|接进来|接过来|包装|做成|变成|转成|创建|生成|集成|导入|注册|做一?个")

_ENDING = re.compile(r"的?(?:小|新)?(?:工具|接口|服务|程序|脚本|API)[\s。!?!?.吧吗]*$", re.IGNORECASE)
_BEGINNING = re.compile(r"^(?:能够|可以|用来|用于|能|会|专门|小)+")


def what_is_made(about: str) -> str:
    """`能统计词频的小工具` is `统计词频`, `二维码生成器` stays."""
    return _BEGINNING.sub("", _ENDING.sub("", about.strip(" \t\n。?!,;:,.!?"))).strip()


def plain(about: str) -> str:
    """A tool's name without what surrounds it."""
    return re.sub(r"^(?:工具|这个工具)|(?:这个|的)?(?:工具|这个)?$", "", about.strip(" \t\n。?!,;:,.!?“”\"'`")).strip()
