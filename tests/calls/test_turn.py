"""What an attempt knows of earlier attempts, and what the next one reads."""

from engine.calling.turn import Told, Turn


def _turn(number: int = 1, earlier: Told | None = None) -> tuple[Turn, list[Told]]:
    heard: list[Told] = []
    return Turn(number, earlier or Told(), heard.append, lambda: False), heard


def test_nothing_is_told_before_the_first_beat_and_everything_after_it() -> None:
    turn, heard = _turn()
    turn.say("building")
    assert heard == []
    turn.beat()
    turn.say("half a surrogate: \ud800")
    assert [told.progress for told in heard] == ["building", "half a surrogate: \N{REPLACEMENT CHARACTER}"]


def test_the_next_attempt_reads_what_the_tool_has_had() -> None:
    turn, heard = _turn(2, Told("long ago", sends=1, spent_s=2.0))
    assert (turn.tries, turn.earlier_s) == (1, 2.0)
    turn.sending()
    turn.beat()
    assert (heard[-1].progress, heard[-1].sends, heard[-1].waits) == ("", 2, 0)
    assert heard[-1].spent_s > 2.0
    turn.not_sent()
    turn.beat()
    assert heard[-1] == Told(sends=2, spent_s=2.0)


def test_an_attempt_that_only_waited_is_none_that_was_tried() -> None:
    turn, heard = _turn()
    turn.only_waited()
    assert heard == [Told(waits=1)]
    following, _ = _turn(2, heard[-1])
    assert following.tries == 0
