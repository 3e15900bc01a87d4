"""Patterns of English messages."""

import re

from engine.concierge.patterns import patterns
from toolagent_service.contracts.concierge import Intent

_KIND = r"(?:tool|api|service|endpoint|function|script|program|utility|something|anything)s?"
_MAKER = r"generator|converter|parser|checker|validator|counter|calculator|translator|extractor|scraper|server|wrapper"
_THING = rf"(?:{_KIND}|{_MAKER})"
_ASKED = r"can you|could you|would you|will you|(?:i|we) (?:want|need) you to|i'd like you to|let's"
_COURTESY = rf"(?:(?:hi|hello|hey|please|kindly|{_ASKED})[ ,]*+)*+"
_MAKE = r"(?:make|build|create|write|develop|implement|code|generate|produce)"
_MADE = r"(?:made|built|created|written|developed|implemented|coded|generated|produced|deployed)"
_MEND = r"(?:repair|fix|mend)"
_MENDED = r"(?:repaired|fixed|mended)"
_DO_NOT = r"(?:don['’]?t|do not|never|no need to|not|shouldn['’]?t|needn['’]?t)"
_FOR_US = r"(?: me| us| for (?:me|us))?"
_PARAMS = r"(?:params|parameters|arguments|inputs?)"
_PART = rf"(?:schema|{_PARAMS}|outputs?|usage|details?|documentation|docs|example(?: calls?)?)"
_ALL = r"(?:all |every |of |your |the |available |full |complete |list |whole )*"
_OTHERWISE = (
    r"(?:are|is|was|were|did|have|has|why|who|no"
    r"|(?:use|run|call|test|stop|delete|remove|cancel|drop|disable|update|rename|repair|fix|keep|leave)"
    r" (?:it|them|this|that|(?:\w+ )?tools?|(?:the|this|that|these|those|my|your|all) (?:[\w-]+ ){0,4}tools?)"
    r"|(?:use|run|call) [\w-]+ (?:for me|pl[sz])\W*$)"
)
_OF_ONE = (
    rf"(?!(?:please )?{_OTHERWISE}(?!\w))"
    r"(?!.*\b(?:(?:this|that|these|those|my|the|your)(?: \w+)? tools?|not|never|don['’]?t|i (?:hate|love|like))\b)"
)
"""Not a search: the message is about a certain tool, has something done with one, or asks about it."""
_MINE = r"(?:my|the) (?:task|tool|build|request)"

PATTERNS = patterns(
    (
        Intent.HELP,
        (
            r"^\W*(?:hi|hello|hey|help|help me|good (?:morning|day|evening))(?: there)?\W*$",
            r"\bwhat (?:can|do) you do\b|\bwhat are you (?:good at|for|able to)\b|\bwho are you\b",
            r"\bare you (?:really )?(?:an? (?:\w+ )?)?(?:bot|robot|human|ai|person|real)\b",
            r"\bhow does (?:this|it) work\b|\bwhat is this service\b",
        ),
    ),
    (
        Intent.THANKS,
        (
            r"^\W*(?:ok(?:ay)?|great|cool|perfect|awesome|nice|no)?\W*(?:thanks|thx|thank you|ty|cheers)\b"
            r"(?:\W+(?:that(?:'s| was| is) (?:all|it)|(?:a lot|so much|very much|again|bye|for (?:the|your) help)))*\W*$",
        ),
    ),
    (
        Intent.UNDECIDED,
        (
            rf"(?P<about>)\b{_DO_NOT}(?: \w+){{0,3}}? {_MEND}\b",
            rf"(?P<about>)^(?:{_COURTESY}|(?:i|we) ){_DO_NOT}(?: \w+){{0,3}}? {_MAKE}\b.*\b{_THING}\b",
        ),
    ),
    (
        Intent.STATUS,
        (
            rf"\b(?:did|when (?:will|do|did|can|could|would)) (?:you|it|they|somebody|anybody)\b.*\b{_MEND}\b",
            rf"\b(?:have you|has (?:it|\S+) been|have \S+ been|(?:is|was|were|are) (?!there\b)\S+)(?: \w+)? {_MENDED}\b",
            rf"\b(?:did|when (?:will|do|did|can|could|would)) you {_MAKE}\b.*\b{_THING}\b|\bhave you (?:\w+ )?{_MADE}\b.*\b{_THING}\b",
        ),
    ),
    (
        Intent.MAKE,
        (
            rf"^{_COURTESY}{_MAKE}\b{_FOR_US},? (?:an? |the |some )?(?P<about>.*\b{_THING}\b.*)$",
            rf"^{_COURTESY}(?:(?:i|we)(?:['’]d| would)? (?:want|need|like)|have) "
            rf"(?:an? )?(?:new )?{_THING} (?:made|built|written|created|developed)\b\W*(?P<about>.*)$",
            rf"^.*?\b(?P<about>{_THING}\b.{{3,}}?)[,;.:] ?(?:and |so |then )?(?:please|kindly|{_ASKED}) (?:please )?"
            rf"{_MAKE} (?:one|it)\b\W*$",
        ),
    ),
    (
        Intent.REPAIR,
        (
            rf"^{_COURTESY}{_MEND}\b(?! (?:of|for|status|progress|task|is|was|has|failed|done)\b)(?P<about>.*)$",
            rf"^{_COURTESY}(?:diagnose|inspect|check) and {_MEND}\b(?: (?:it|this|that)\b)?"
            r"(?P<about>(?: (?!(?:with|using|by|in|for)\b)\S+){0,5} tool\b.*|(?: (?:the|our|your|my))?(?: \S+(?: *[:,;.].*)?)?"
            r"|:?(?: (?:the|our|your|my))? \W?[a-z][\w-]*[_:]\w.*)$",
            rf"^(?P<about>.+)(?<!why )(?<!how )(?<!when )(?<!who )\b(?:please|kindly|{_ASKED}) (?:please )?{_MEND} (?:it|that|this)\b",
            rf"^(?=.*\b(?:please|kindly|{_ASKED})\b)(?P<about>.+)[;,.:!] ?(?:and |then )?{_MEND} (?:it|that|this)\b",
        ),
    ),
    (
        Intent.GROUPS,
        (
            r"\btool ?groups?\b|\bgroups\b|\bthe group\b|\b[a-z0-9_-]+ group\b",
            r"\b(?:belong|used|work|come) together\b|\b(?:as|in) (?:a set|sets)\b",
            r"\bin (?:what|which) order\b|\busage order\b",
        ),
    ),
    (
        Intent.RUNTIMES,
        (
            r"\bruntimes?\b|\bexecution environments?\b",
            r"\bwhere (?:do|does|are) (?:the |your |all )*tools? (?:run|executed)",
            r"\brun (?:things|tools|them|it|code) in (?:docker|containers)",
        ),
    ),
    (
        Intent.STATUS,
        (
            rf"\b(?:status|progress|state) of {_MINE}|\bhow (?:is|are|far is) {_MINE}|\bnews (?:on|of|about) my\b",
            rf"\b(?:is|did|has|was) {_MINE}\b.*\b(?:done|ready|finished|built|completed)",
            r"\bwhat are you (?:building|making|working)",
            r"\b(?:list|show|which|what)(?: me)? (?:my |the |all |running )*tasks\b",
            r"^\W*(?:and |so )?(?:how (?:long|much longer) (?:will|does|is|can(?! \w+ be\b))|when (?:will|does|is|can))"
            r" (?:it|that|this|they)(?: (?:going to|gonna|usually|be|get|take|need|done|ready|finished|built|made|completed?|available"
            r"|there|over|now|still|then|exactly|roughly|please)){0,3}\W*$",
            rf"^\W*what(?:'s|s| is| has)? happen\w* (?:to|with) (?:it|{_MINE})\W*$",
            rf"^\W*(?:please |ok )?(?:cancel|stop|abort) (?:it|that|this|the task|{_MINE})(?: please| now)?\W*$",
            r"^\W*(?:is|are) (?:it|that|this|they) (?:\w+ )?(?:done|ready|finished|built|made)(?: yet| now| already)?\W*$",
        ),
    ),
    (
        Intent.LIST,
        (
            rf"^\W*(?:please |can you |could you )?(?:list|show|give|enumerate|name)(?: me)? {_ALL}tools\W*$",
            r"\b(?:what|which) tools (?:do you (?:have|offer)|are (?:there|available)|have you got|can i use)\W*$",
            r"\beverything (?:that )?you (?:offer|have)\b|\bhow many tools\b|\bwhat(?:'s| is) (?:available|on offer)\b",
        ),
    ),
    (
        Intent.DETAILS,
        (
            r"\bhow (?:do|can|could|should|to|would)(?: i| we| one| you)? ?(?:use|call|invoke|run) (?P<about>.+)$",
            r"^\W*(?:and )?(?P<about>)(?:can|does|will|could) it (?:also |even )?(?:do|support|handle|take|read|accept|work)\b.*$",
            r"^\W*(?:(?:ok|okay|cool|great|nice|and|so|please)\W+)*(?:show|give)(?: me)? (?P<about>)an? (?:example|sample)(?: \w+)?\W*$",
            rf"\b(?:what|which) {_PARAMS} do i (?:pass|give|send) to (?P<about>.+)$",
            rf"\b(?:what|which) {_PARAMS} (?:does|do|has|must) (?P<about>.+?) (?:take|need|have|want|accept|expect|require)",
            rf"\b{_PART} (?:of|for|about) (?P<about>.+)$",
            r"\b(?:tell me (?:more )?about|explain|describe|what is|what's) (?P<about>[^\s\d(]\S*)\W*$",
            r"\bwhat does (?P<about>.+) do\b",
        ),
    ),
    (
        Intent.DISCOVER,
        (
            r"\b(?:which|what|any|a|an) (?:\w+ )?tools?\b|\b(?:which|one) of your\b",
            r"\b(?:do you have|is there|are there|have you got|got (?:anything|something|a))\b",
            r"\b(?:looking for|search|find|recommend|suggest)\b|\bdoes (?:any|some)(?:thing|body|one)\b",
            r"\b(?:i|we) (?:need|want|would like|have to|am trying|are trying)|\b(?:i|we)'d (?:like|love)\b|^need\b",
            r"\b(?:can|could) (?:you|u|i)\b|\bwhat can i\b|\bhow (?:do|can) i\b",
            rf"^{_OF_ONE}.*\b(?:for me|pl[sz])\b|^{_OF_ONE}(?:\w+ ){{1,4}}tools?\W*$",
        ),
    ),
)

CATEGORY = re.compile(r"\bcategory (?P<category>[a-z][a-z0-9_-]*)", re.IGNORECASE)
DEPLOYS = re.compile(r"\b(?:deploy|wrap|turn|make|build|create|convert|integrate|import|add|onboard|register)\b", re.IGNORECASE)
DECLINES = re.compile(
    rf"\b{_DO_NOT}(?: \w+){{0,3}}? (?:{DEPLOYS.pattern})|^\W*(?:did|have|has|was|were|when|why|who|is|are|should)\b", re.IGNORECASE
)
QUESTION = re.compile(r"\?\W*$")
ASKS = re.compile(rf"\b(?:please|kindly|{_ASKED}|we need you to)\b", re.IGNORECASE)
"""Makes a question a wish."""

REFERS_BACK = re.compile(r"(?:it|them)\b.*|(?:this|that|these|those)(?: ones?)?|(?:the )?tool|", re.IGNORECASE)
"""A pronoun, or nothing, in place of a tool."""

_YES = r"yes|yeah|yep|sure|of course"
_FINE = r"ok|okay|good|great|fine|perfect|all right|please"
_DO = (
    r"(?:go ahead|go for it|proceed|do (?:it|that|so)|(?<=\W)do"
    r"|(?:make|build|create|write) (?:it|that|one|the tool)|have (?:it|one) (?:made|built)"
    r"|i(?:['’]d| would) like (?:that|one)|i want (?:that|one))"
)
AGREES = re.compile(rf"(?:(?:{_YES}|{_FINE})\W+)*(?:{_YES}|{_DO})(?:\W+(?:please|then|now|thanks|thank you|for (?:me|us)))*", re.IGNORECASE)
"""A whole message that accepts an offer."""

AND_THEN = re.compile(r"\W*\b(?:and then|then(?!,)|and also|and after that)\b\W*", re.IGNORECASE)
"""Separates two needs in one message."""

_NUMBERS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_CHOOSING = r"and|so|then|ok|okay|what about|how about|(?:i['’]ll |i )?(?:use|take|choose|pick|want)|show me|tell me (?:more )?about"
PLACE = re.compile(
    rf"(?:(?:{_CHOOSING})[ ,]+)*(?:(?:the )?(?P<number>{'|'.join(_NUMBERS)}|last) (?:one|tool|option)|the (?P<bare>{'|'.join(_NUMBERS)})"
    r"|(?:the )?(?:number |tool |#)(?P<digit>[1-9]))(?:,? (?:please|then|instead))*",
    re.IGNORECASE,
)
"""Names a tool by its place in the last list."""

_THAT = re.compile(
    rf"^(?:(?:small|simple|new|little|python|http|rest|web) )*{_KIND}(?: (?:that|which|to|for|can))+ (?P<what>.+)$", re.IGNORECASE
)
_ENDING = re.compile(rf"\s*\b{_KIND}$", re.IGNORECASE)
_PLEASE = re.compile(r"(?:[\s,]+(?:please|thanks|thank you|for me|for us|with me|now))+$", re.IGNORECASE)
_AROUND = re.compile(r"^(?:the |an? )?(?:tool )?|(?: tool)$", re.IGNORECASE)


def place_in(about: str) -> int:
    """The place of the tool in the last list, from 1; -1: the last one. 0: the text names no place."""
    found = PLACE.fullmatch(about)
    if found is None:
        return 0
    named = (found["number"] or found["bare"] or "").lower()
    return int(found["digit"]) if found["digit"] else -1 if named == "last" else _NUMBERS.index(named) + 1


def what_is_made(about: str) -> str:
    """`tool that counts words` is `counts words`, `QR code generator` stays."""
    about = _PLEASE.sub("", about)
    found = _THAT.match(about)
    return found["what"] if found else _ENDING.sub("", about).strip()


def plain(about: str) -> str:
    """The name of a tool, without the words around it."""
    return _AROUND.sub("", _PLEASE.sub("", about)).strip()
