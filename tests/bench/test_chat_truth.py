"""The violations that the check of chats reports, given the messages and the stored turns."""

from datetime import UTC, datetime

from bench.chats.talking import Talk, plan_talks
from bench.chats.truth import broken_promises
from toolagent.contracts.chats import AnsweredBy, ChatReply, ChatRole, ChatTurn


def _talked() -> tuple[Talk, list[ChatTurn]]:
    (talk,) = plan_talks(1, 2)
    turns: list[ChatTurn] = []
    for number, said in enumerate(talk.said):
        reply = ChatReply(response=f"{said.text} No.", chat_id=talk.chat_id, message_id=f"msg-{number}", answered_by=AnsweredBy.RULES)
        said.replies.append(reply)
        for role, text in ((ChatRole.USER, said.text), (ChatRole.ASSISTANT, reply.response)):
            turns.append(ChatTurn(number=len(turns) + 1, role=role, text=text, at=datetime.now(UTC), message_id=reply.message_id))
    return talk, turns


def _numbered(*turns: ChatTurn) -> list[ChatTurn]:
    return [turn.model_copy(update={"number": number}) for number, turn in enumerate(turns, start=1)]


def test_a_chat_that_was_kept_as_it_was_said_breaks_nothing() -> None:
    assert list(broken_promises(*_talked())) == []


def test_a_turn_that_is_lost_repeated_or_out_of_order_is_told() -> None:
    talk, (ask, answer, next_ask, next_answer) = _talked()
    for kept in (
        (ask, answer, next_ask),
        (ask, answer, answer, next_ask, next_answer),
        (next_ask, next_answer, ask, answer),
    ):
        assert list(broken_promises(talk, _numbered(*kept)))
    assert list(broken_promises(talk, [ask, answer, next_ask, next_answer.model_copy(update={"number": 9})]))


def test_what_was_answered_differently_wrongly_or_not_at_all_is_told() -> None:
    talk, turns = _talked()
    first, second = talk.said[0].replies[0], talk.said[1]
    talk.said[0].replies.append(first.model_copy(update={"response": f"{first.response} Or yes."}))
    assert len(list(broken_promises(talk, turns))) == 1
    talk, turns = _talked()
    second = talk.said[1]
    second.replies[0] = second.replies[0].model_copy(update={"response": talk.said[0].replies[0].response})
    assert any("something else" in fault for fault in broken_promises(talk, turns))
    talk, turns = _talked()
    talk.said[1].failures.append("503")
    assert len(list(broken_promises(talk, turns))) == 1
