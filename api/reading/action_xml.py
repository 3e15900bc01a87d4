"""Reads untrusted XML of limited depth and size, without DTDs and entities, and writes observations."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.etree.ElementTree import ParseError
from xml.sax.saxutils import escape

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser

from toolagent.contracts.actions import Observation
from toolagent.core.calls.action import NO_DTD, ActionRefused, Element

MAX_DEPTH = 32
MAX_ELEMENTS = 10_000

_ILLEGAL = {code: "\ufffd" for code in (*range(9), 0xB, 0xC, *range(0xE, 0x20), 0xFFFE, 0xFFFF, *range(0xD800, 0xE000))}
"""Characters that XML cannot hold, not even as references."""


@dataclass(slots=True)
class _Open:
    """An element before its end tag."""

    tag: str
    attributes: Mapping[str, str]
    text: list[str] = field(default_factory=list[str])
    children: list[Element] = field(default_factory=list[Element])

    def closed(self) -> Element:
        said = self.attributes.get
        return Element(self.tag, "".join(self.text), said("name"), tuple(self.children), said("mode"), said("callback_url"))


class _Builder:
    """Builds elements from the events of the parser."""

    def __init__(self) -> None:
        self._open = [_Open("", {})]
        self._count = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._count += 1
        if len(self._open) > MAX_DEPTH or self._count > MAX_ELEMENTS:
            raise ActionRefused(f"The block may be {MAX_DEPTH} elements deep and have {MAX_ELEMENTS} in all; write JSON in <![CDATA[…]]>.")
        if "}" in tag:
            raise ActionRefused(
                f"XML namespaces have no meaning here: <{tag.rpartition('}')[2][:100]}>. An id with `:` goes into <tool_id>."
            )
        self._open.append(_Open(tag, attributes))

    def end(self, _tag: str) -> None:
        element = self._open.pop().closed()
        self._open[-1].children.append(element)

    def data(self, text: str) -> None:
        self._open[-1].text.append(text)

    def close(self) -> Element:
        """The root, of which the parser ensures that there is one."""
        return self._open[0].children[0]


def parsed_element(xml: str) -> Element:
    """The root of the document. Raises ActionRefused, with line and column if known."""
    builder = _Builder()
    parser = DefusedXMLParser(target=builder, forbid_dtd=True, forbid_entities=True, forbid_external=True)
    try:
        parser.feed(xml)
        parser.close()
    except DefusedXmlException as error:
        raise ActionRefused(NO_DTD) from error
    except (ParseError, UnicodeEncodeError) as error:
        hint = " An id with `:` goes into <tool_id>." if "unbound prefix" in str(error) else " Values with < or & go into <![CDATA[…]]>."
        raise ActionRefused(f"The block is not XML: {error}.{hint}") from error
    return builder.close()


def observation_xml(observation: Observation) -> str:
    """An `<OBSERVATION>` (see docs/http.md), with its `<note>` if it has one."""
    said = {name: text for name, text in observation.model_dump().items() if text or name != "note"}
    inner = "".join(f"<{name}>{escape(str(text).translate(_ILLEGAL))}</{name}>" for name, text in said.items())
    return f"<OBSERVATION>{inner}</OBSERVATION>"
