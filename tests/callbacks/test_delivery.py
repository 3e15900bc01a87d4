"""One attempt at a delivery, as Temporal sees it."""

import dataclasses
from datetime import timedelta

import pytest
from temporalio.api.failure.v1 import Failure
from temporalio.converter import default
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.deliver_callback import DeliverCallback
from engine.callbacks.deliveries import Deliveries
from engine.store.database import Database
from engine.store.events import EventTable
from tests.callbacks.receiver import running_receiver
from tests.callbacks.test_posting import callback, poster
from toolagent_service import step_names
from workflows.options import deliver_callback

_KEPT = 2_000
"""Bytes. Temporal keeps a few thousand of the last failure of an activity that waits; of a larger one only that it was too large."""


@pytest.mark.parametrize("answer", [0, 500])
async def test_why_an_attempt_failed_is_small_enough_to_be_kept(database: Database, answer: int) -> None:
    deliver = DeliverCallback(Deliveries(poster(timeout_s=0.2), EventTable(database)))
    with running_receiver() as receiver:
        receiver.answers = [answer]
        with pytest.raises(ApplicationError) as caught:
            await ActivityEnvironment().run(deliver.deliver_callback, callback(receiver.url))
    assert caught.value.type == step_names.CALLBACK_NOT_TAKEN
    failure = Failure()
    converters = default()
    converters.failure_converter.to_failure(caught.value, converters.payload_converter, failure)
    assert failure.ByteSize() < _KEPT


@pytest.mark.parametrize(("attempt", "asked", "waits_s"), [(1, "7", 7), (5, "0", 16), (5, "7", 16), (5, "60", 60), (90_000, "1", 900)])
async def test_a_receiver_may_ask_for_more_patience_and_not_for_less(database: Database, attempt: int, asked: str, waits_s: float) -> None:
    environment = ActivityEnvironment()
    policy = deliver_callback("call-12345678")["retry_policy"]
    environment.info = dataclasses.replace(environment.info, attempt=attempt, retry_policy=policy)
    deliver = DeliverCallback(Deliveries(poster(), EventTable(database)))
    with running_receiver() as receiver:
        receiver.answers, receiver.retry_after = [429], asked
        with pytest.raises(ApplicationError) as caught:
            await environment.run(deliver.deliver_callback, callback(receiver.url))
    assert caught.value.next_retry_delay == timedelta(seconds=waits_s)
