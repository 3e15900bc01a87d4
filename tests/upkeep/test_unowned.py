"""A session that stops what no session has, and whose host dies before its workflow begins."""

from datetime import UTC, datetime, timedelta

from pydantic import JsonValue

from engine.store.database import Database
from engine.upkeep.sessions.sweep import SessionSweep
from tests.upkeep.test_providers import Provider, staged
from toolagent.contracts.sessions import SessionEnd, SessionState
from toolagent_service.contracts.sessions import SessionLife


class Dying(Provider):
    """Its host dies when a workflow is to begin."""

    async def go_on(self, life: SessionLife) -> None:  # noqa: ARG002 - as the base
        raise ConnectionError("Temporal does not answer.")


async def test_a_session_goes_on_for_the_reason_for_which_it_was_written_down(database: Database) -> None:
    stage, host = await staged(database, Dying()), Provider()
    await stage.session(SessionState.STOPPED, datetime.now(UTC) - timedelta(hours=1), "call-12345678")
    await stage.launched("call-12345678")
    server: JsonValue = {"server_id": "1", "launched_by": "call-12345678"}
    await stage.compared({"servers": [server]})
    await SessionSweep(stage.sessions, host, stage.events).run()
    (life,) = host.lives
    assert life.view is not None
    assert (life.end, life.view.end, life.view.launched) == (SessionEnd.UNOWNED, SessionEnd.UNOWNED, server)
