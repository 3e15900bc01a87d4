"""The reasons in the end of a task."""

from toolagent_service.contracts.making_steps import BuildOutcome
from toolagent_service.making.task_reasons import abridged, of_the_agent, ready_reason, why_a_model


def test_what_was_left_out_is_said_with_what_can_be_called() -> None:
    assert ready_reason(("a", "b")) == "a, b can be called."
    assert ready_reason(("a",), ("POST /x: It takes a form.",)) == "a can be called.\n\nLeft out:\n- POST /x: It takes a form."


def test_of_much_that_was_left_out_the_first_is_said_and_how_much_there_is() -> None:
    lines = ready_reason(("a",), [f"POST /{number}: no" for number in range(9)]).splitlines()
    assert lines[3:] == [*(f"- POST /{number}: no" for number in range(5)), "… and 4 more: see the evidence and the log of the task"]


def test_of_what_was_told_the_reason_and_the_end_are_kept() -> None:
    told = "\n".join(f"line {number}" for number in range(1_000))
    assert abridged(f"It does not start.\n{told}").splitlines() == [
        "It does not start.",
        *(f"line {number}" for number in range(980, 1_000)),
    ]
    assert len(abridged(f"No.\n{'x' * 100_000}")) < 2_000
    assert abridged("It does not start.\n") == "It does not start."


def test_a_build_that_was_told_nothing_more_has_its_reason_alone() -> None:
    assert BuildOutcome(reason="It needs a key.").why == "It needs a key."
    assert BuildOutcome(reason="It needs a key.", told="Traceback …").why == "It needs a key.\nTraceback …"


def test_of_very_many_tools_the_first_are_named() -> None:
    assert ready_reason([f"t{number}" for number in range(10)]) == "t0, t1, t2, t3, t4, t5, t6, t7 and 2 more can be called."


def test_why_a_model_is_needed_hides_keys() -> None:
    assert why_a_model(("", "")) == ""
    said = why_a_model(("There is no Docker engine.", "It does not start.\nAPI_KEY=sk-ant-0123456789abcdefghij"))
    assert said.startswith("Why it was not built without a model: There is no Docker engine.\n\nIt does not start.\nAPI_KEY=")
    assert "0123456789" not in said


def test_what_the_agent_failed_by_is_told_apart_from_why_it_was_asked() -> None:
    why = why_a_model(["The app does not start.\nTraceback …"])
    assert of_the_agent(f"{why}\n\nNo model is set that could write it.\nSet one.") == "No model is set that could write it."
    assert of_the_agent(f"It gave up.\nAfter 3 rounds.\n\n{why}") == "It gave up."
