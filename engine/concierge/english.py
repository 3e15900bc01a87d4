"""How English asks: the first pattern that is found decides. `about` is what is asked for."""

import re

from toolagent_service.contracts.concierge import Intent

_MADE = r"tools?|apis?|services?|endpoints?|functions?|scripts?|programs?|utility|generator|converter|parser|checker|validator|counter"
_MADE += r"|calculator|translator|extractor|scraper|server|wrapper|something|anything"
_COURTESY = r"(?:(?:hi|hello|hey|please|kindly|can you|could you|would you|will you|i want you to|i need you to|i'd like you to|we need you to|we want you to|let's)[ ,]*)*"
_MAKING = r"(?:make|build|create|write|develop|implement|code|generate|produce)"

PATTERNS: tuple[tuple[Intent, re.Pattern[str]], ...] = tuple(
    (intent, re.compile(pattern, re.IGNORECASE))
    for intent, pattern in (
        (Intent.HELP, r"^\W*(?:hi|hello|hey|help|help me|good (?:morning|day|evening))(?: there)?\W*$"),
        (
            Intent.HELP,
            r"\bwhat (?:can|do) you do\b|\bwhat are you (?:good at|for|able to)\b|\bwho are you\b|\bhow does (?:this|it) work\b|\bwhat is this service\b",
        ),
        (Intent.MAKE, rf"^{_COURTESY}{_MAKING}\b(?: me| us| for (?:me|us))?,? (?:an? |the |some )?(?P<about>.*\b(?:{_MADE})\b.*)$"),
        (
            Intent.MAKE,
            rf"\b(?:want|need|like|have) (?:an? )?(?:new )?(?:{_MADE}) (?:made|built|written|created|developed)\b\W*(?P<about>.*)$",
        ),
        (Intent.REPAIR, rf"^{_COURTESY}(?:repair|fix|mend)\b(?P<about>.*)$|(?P<before>.+)\b(?:repair|fix|mend) (?:it|that|this)\b"),
        (
            Intent.GROUPS,
            r"\btool ?groups?\b|\bgroups\b|\bthe group\b|\b[a-z0-9_-]+ group\b|\b(?:belong|used|work|come) together\b|\b(?:as|in) (?:a set|sets)\b|\bin (?:what|which) order\b|\busage order\b",
        ),
        (
            Intent.RUNTIMES,
            r"\bruntimes?\b|\bwhere (?:do|does|are) (?:the |your |all )*tools? (?:run|executed)|\bexecution environments?\b|\brun (?:things|tools|them|it|code) in (?:docker|containers)",
        ),
        (
            Intent.STATUS,
            r"\b(?:status|progress|state) of (?:my|the) (?:task|build|request)|\bhow (?:is|are|far is) (?:my|the) (?:task|build|request)",
        ),
        (
            Intent.STATUS,
            r"\bwhat are you (?:building|making|working)|\b(?:list|show|which|what)(?: me)? (?:my |the |all |running )*tasks\b",
        ),
        (
            Intent.STATUS,
            r"\b(?:is|did|has|was) (?:my|the) (?:task|tool|build|request)\b.*\b(?:done|ready|finished|built|completed)|\bnews (?:on|of|about) my\b",
        ),
        (
            Intent.LIST,
            r"^\W*(?:please |can you |could you )?(?:list|show|give|enumerate|name)(?: me)? (?:all |every |of |your |the |available |full |complete |list |whole )*tools\W*$",
        ),
        (Intent.LIST, r"\b(?:what|which) tools (?:do you (?:have|offer)|are (?:there|available)|have you got|can i use)\W*$"),
        (Intent.LIST, r"\beverything (?:that )?you (?:offer|have)\b|\bhow many tools\b|\bwhat(?:'s| is) (?:available|on offer)\b"),
        (Intent.DETAILS, r"\bhow (?:do|can|could|should|to|would)(?: i| we| one| you)? ?(?:use|call|invoke|run) (?P<about>.+)$"),
        (
            Intent.DETAILS,
            r"\b(?:what|which) (?:params|parameters|arguments|inputs?) (?:do i (?:pass|give|send) to (?P<before>.+)$|(?:does|do|has|must) (?P<about>.+?) (?:take|need|have|want|accept|expect|require))",
        ),
        (
            Intent.DETAILS,
            r"\b(?:schema|parameters|params|arguments|inputs?|outputs?|usage|details?|documentation|docs|example(?: calls?)?) (?:of|for|about) (?P<about>.+)$",
        ),
        (
            Intent.DETAILS,
            r"\b(?:tell me (?:more )?about|explain|describe|what is|what's) (?P<about>\S+)\W*$|\bwhat does (?P<before>.+) do\b",
        ),
        (
            Intent.DISCOVER,
            r"\b(?:which|what|any|a|an) (?:\w+ )?tools?\b|\b(?:do you have|is there|are there|have you got|got (?:anything|something|a)|looking for|search|find|recommend|suggest|(?:which|one) of your)\b|\bdoes (?:any|some)(?:thing|body|one)\b",
        ),
        (
            Intent.DISCOVER,
            r"\b(?:i|we) (?:need|want|would like|have to|am trying|are trying)|\b(?:i|we)'d (?:like|love)\b|^need\b|\b(?:can|could) (?:you|i)\b|\bwhat can i\b|\bhow (?:do|can) i\b",
        ),
    )
)

GREETINGS = re.compile(r"^\W*(?:hi|hello|hey)\b[ ,!.]*", re.IGNORECASE)
CATEGORY = re.compile(r"\bcategory (?P<category>[a-z][a-z0-9_-]*)", re.IGNORECASE)
DEPLOYS = re.compile(r"\b(?:deploy|wrap|turn|make|build|create|convert|integrate|import|add|onboard|register)\b", re.IGNORECASE)

_THAT = re.compile(
    r"^(?:(?:small|simple|new|little|python|http|rest|web) )*(?:tool|api|service|endpoint|function|script|program|utility|something)s?"
    r"(?: (?:that|which|to|for|can))+ (?P<what>.+)$",
    re.IGNORECASE,
)
_ENDING = re.compile(r"\s*\b(?:tool|api|service|endpoint|function|script|program|utility|something|anything)s?$", re.IGNORECASE)
_PLEASE = re.compile(r"(?:[\s,]+(?:please|thanks|thank you|for me|for us|with me|now))+$", re.IGNORECASE)


def what_is_made(about: str) -> str:
    """`tool that counts words` is `counts words`, `QR code generator` stays."""
    about = _PLEASE.sub("", about.strip(" \t\n.?!,;:"))
    found = _THAT.match(about)
    return found["what"] if found else _ENDING.sub("", about).strip()


def plain(about: str) -> str:
    """A tool's name without what surrounds it."""
    about = _PLEASE.sub("", about.strip(" \t\n.?!,;:'\"`"))
    return re.sub(r"^(?:the |an? )?(?:tool )?|(?: tool)$", "", about, flags=re.IGNORECASE).strip(" '\"`")
