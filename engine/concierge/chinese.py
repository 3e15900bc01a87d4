"""Patterns of Chinese messages."""

import re

from engine.concierge.patterns import patterns
from toolagent_service.contracts.concierge import Intent

_PLEASE = r"你好|您好|请问|请|麻烦|帮我|帮忙|帮|给我|为我|能不能|能否|可以|可不可以|需要"
_COURTESY = rf"(?:{_PLEASE}|我们想|我们要|我们|我想要|我要|我想|想要|想|要|让|新(?!建)|你|,|,|\s)*+"
_MAKE = r"(?:创建|制作|开发|编写|生成|实现|构建|搭建|新建|做|写|造)"
_THING = r"(?:工具|接口|服务|程序|脚本|器|API)"
_MEND = r"(?:修复|修一下|修好|修理|修一修|修修)"
_LOOK = r"(?:(?:诊断|检查|排查)(?:一下|问题|原因)*[并和后再,,\s]*)?"
_DO_NOT = r"(?:不要|(?<![识类分特性级区个])别(?!人|的)|不用|不必|无需|不需要|不想|请勿)"
_SO = r"(?:一下|下|好|吧|它|这个|工具|谢谢|\s)*+(?![\u3400-\u9fff])"
_CLAUSE = r"(?:^|[,。;:!?,.;:!?\s]|(?<=[a-z0-9_]))"

_MAKE_ONE = (
    rf"^(?!.*{_DO_NOT})我?{_COURTESY}(?:一个|一款|个)?(?P<about>[^,。;,;]+{_THING})[,。;,;].*?(?:请|帮我|给我|麻烦)你?{_MAKE}一?个[吧\W]*$"
)
"""Describes a tool, and then asks for one."""

PATTERNS = patterns(
    (
        Intent.HELP,
        (
            r"^\W*(?:你好|您好|嗨|在吗|帮助|哈喽|早上好|下午好|晚上好|早)\W*$",
            r"你(?:都)?(?:能|会|可以)(?:做|干)?(?:些)?什么|你是(?:谁|什么(?!时候)|(?:机器人|人工|真人|AI).*)|怎么(?:跟|和)你说|有帮助吗|这是什么服务",
        ),
    ),
    (
        Intent.THANKS,
        (
            r"^\W*(?:好的?|行|嗯|太好了|太棒了)?\W*(?:谢谢|多谢|感谢|谢了|谢啦|辛苦了)(?:你|您|啦|了|啊|哈)*\W*(?:没事了|不用了|再见|就这样)?\W*$",
        ),
    ),
    (
        Intent.UNDECIDED,
        (
            rf"(?P<about>){_DO_NOT}[^,。;!?,;!?]{{0,40}}?{_MEND}",
            rf"(?P<about>)^(?:先|暂时|现在|{_COURTESY}){_DO_NOT}(?:再|先|去|{_COURTESY}){_MAKE}.*{_THING}",
        ),
    ),
    (Intent.STATUS, (rf"(?:{_MEND}|{_MAKE}).*[了好完](?:吗|么|没有?)\W*$|(?:什么时候|何时|几时).*(?:{_MEND}|{_MAKE})",)),
    (Intent.MAKE, (rf"^{_COURTESY}{_MAKE}(?![了过完好的])(?:一个|一款|一下|个|一|出)*(?P<about>.*{_THING}.*)$", _MAKE_ONE)),
    (
        Intent.REPAIR,
        (
            rf"{_CLAUSE}{_COURTESY}(?:[把将]\s*[a-z0-9_:-]+\s*(?:这个)?(?:工具)?\s*)?{_LOOK}{_MEND}{_SO}"
            rf"(?<!怎么)(?!.*的{_THING}\W*$)(?![^,。,;;]*(?:失败|成功|完成)了)",
        ),
    ),
    (Intent.GROUPS, (r"工具组|[a-z0-9_-] ?组|一套|成套|这个组|哪些组|有什么组", r"配合使用|一起使用|一起用|使用顺序|调用顺序")),
    (Intent.RUNTIMES, (r"运行时|运行环境|执行环境|后端环境|在哪里?运行|(?:跑|运行)在什么|本地跑|docker ?里跑",)),
    (
        Intent.STATUS,
        (
            r"任务.*(?:进度|完|怎么样|状态|进展|好了)|(?:进度|状态|进展).*任务|最近有.*任务|(?:哪些|列出).*任务",
            r"(?:让|要|请)你(?:做|写|建|创建|开发|修).*(?:好了|完了|做完|进度|怎么样)",
            r"正在(?:创建|制作|构建|做|开发)",
            r"^\W*(?:大概|还|那)*(?:要|需要|得)(?:等|花)?多久[啊呀呢]?\W*$|^\W*(?:大概|那)*(?:什么时候|几时|何时)(?:能|会|可以)?(?:好|完成|做完)[啊呀呢]?\W*$",
            r"^\W*(?:算了|那)?\W*(?:(?:取消|停止|停掉)(?:它|吧|任务|这个)*|算了吧?\W*不(?:要|用|做)了?)\W*$",
            r"^\W*(?:它|这个|那个)?(?:好|完成|可以用)了(?:吗|么|没有?)\W*$",
        ),
    ),
    (
        Intent.LIST,
        (
            rf"^\W*{_COURTESY}(?:列出|显示|展示|查看|看看?)?(?:一下)?(?:你们?)?(?:所有|全部|现有)的?工具\W*$",
            r"多少个?工具|工具.{0,4}(?:几|多少)个|工具(?:清单|列表|目录|一览)",
            r"^(?:请问)?(?:你们?|这里|现在|当前|目前|系统)?(?:都|里)?(?:有|提供)(?:什么|哪些|啥)工具\W*$",
        ),
    ),
    (
        Intent.DETAILS,
        (
            r"(?:如何|怎么|怎样)(?:使用|调用|用|调(?!用)|运行)(?P<about>.*\w.*)$",
            r"^\W*(?:那|请|再)?(?:举|给|来|看)(?:我)?一?个?(?P<about>)(?:调用)?(?:例子|示例)[吧呗]?\W*$",
            r"^\W*(?:那)?(?P<about>)它(?:也|还)?(?:支持|能|可以|会).*$",
            r"^\W*(?:那么?|请问|具体)?(?:该|要|应该)?(?:如何|怎么|怎样)(?:使用|调用|用|调)(?P<about>)[呢啊呀吧]?\W*$",
            r"教(?:我|一下)?(?:怎么)?用(?:一下)?(?P<about>.+)$",
            r"^(?P<about>.+?)(?:要|该|应该)?(?:怎么|如何|怎样)(?:使用|调用|用)",
            r"^(?P<about>.+?)(?:需要|有|要|接受)(?:传|给|填)?(?:哪些|什么)(?:参数|输入)",
            r"^(?P<about>.+?)的(?:参数|用法|输入|说明|文档|schema)",
            rf"^{_COURTESY}(?:介绍|说明|解释|讲讲|说说)(?:一下)?(?P<about>.+)$",
            r"^(?P<about>\S+) ?(?:这个工具)?(?:是干什么|是做什么|是什么|有什么用)",
            r"(?:给|来|看|查看)(?:我)?(?:一?个|一下)?(?P<about>.+?)的?(?:调用)?(?:示例|例子|详情|输入输出|参数|格式)",
        ),
    ),
    (
        Intent.DISCOVER,
        (
            r"有没有|有哪些|有什么|有啥|有办法|有.*吗|哪里可以|求一?个|哪个|哪些|什么工具|用什么|推荐|找|搜",
            r"是否|能不能|能否|可不可以|可以.*吗|怎么|如何|怎样",
            r"需要|想|帮我|我要|工具|接口",
        ),
    ),
)

CATEGORY = re.compile(r"(?:类别|分类|类目)(?:是|为|:|:)?\s*(?P<category>[a-z][a-z0-9_-]*)", re.IGNORECASE)
DEPLOYS = re.compile(r"部署|封装|接入|接进来|接过来|包装|做成|变成|转成|创建|生成|集成|导入|注册|做一?个")
DECLINES = re.compile(rf"{_DO_NOT}.{{0,20}}?(?:{DEPLOYS.pattern})")
QUESTION = re.compile(r"(?:[??]|吗|么|没有?)\W*$")
ASKS = re.compile(r"能|可以|可不可以|请(?!问)|麻烦|帮|给我|为我|好吗|行吗")
"""Makes a question a wish."""

REFERS_BACK = re.compile(r"那?么?(?:它们?|这个?|那个?|该工具)?[呢啊呀吧]?")
"""A pronoun, or nothing, in place of a tool."""

_YES = r"是的?|对的?|好的?|可以|行|没问题|嗯|当然|同意"
_DO = (
    r"(?:那|就|请|麻烦|帮我|给我|你|直接)*(?:这[样么](?:做|办)|照(?:做|办)|按这个(?:做|来)|开始(?:做|创建|制作)?吧?|(?:做|建|写|创建|制作|开发|生成)"
    r"(?:一个|它|出来|吧)+)(?:吧|了|啊|呀|谢谢)*"
)
AGREES = re.compile(rf"(?:(?:{_YES})[\W啊呀吧]*)*(?:是的|对的|当然|同意|{_DO})\W*(?:谢谢)?")
"""A whole message that accepts an offer."""

AND_THEN = re.compile(r"\W*(?:然后|接着|并且|同时(?!支持|兼容|具备|满足|有)|再(?!见|次|一))\W*")
"""Separates two needs in one message."""

_NUMBERS = "一二三四五六七八九十"
PLACE = re.compile(
    rf"(?:那么?|就|用|选|要|我|看看|试试|介绍一下)*(?:第(?P<number>[{_NUMBERS}1-9])|(?P<last>最后一))(?:个|款|种)(?:工具)?(?:呢|吧|怎么样|怎么用|是什么)*"
)
"""Names a tool by its place in the last list."""

_ENDING = re.compile(r"的?(?:小|新)?(?:工具|接口|服务|程序|脚本|API)[\s吧吗]*$", re.IGNORECASE)
_BEGINNING = re.compile(r"^(?:能够|可以|用来|用于|能|会|专门|小)+")
_AROUND = re.compile(r"^(?:这个)?工具|(?:这个|的)?(?:工具|这个)?$")


def place_in(about: str) -> int:
    """The place of the tool in the last list, from 1; -1: the last one. 0: the text names no place."""
    found = PLACE.fullmatch(about)
    if found is None:
        return 0
    number = found["number"]
    return -1 if number is None else int(number) if number.isascii() else _NUMBERS.index(number) + 1


def what_is_made(about: str) -> str:
    """`能统计词频的小工具` is `统计词频`, `二维码生成器` stays."""
    return _BEGINNING.sub("", _ENDING.sub("", about)).strip()


def plain(about: str) -> str:
    """The name of a tool, without the words around it."""
    return _AROUND.sub("", about).strip()
