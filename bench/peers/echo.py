"""The smallest workflow with a regular activity, alone in its module: the SDK's sandbox imports a workflow's module for each run."""

from datetime import timedelta

from temporalio import activity, workflow

Body = dict[str, str]


@activity.defn
async def echo(body: Body) -> Body:
    return body


@workflow.defn
class RegularEcho:
    @workflow.run
    async def run(self, body: Body) -> Body:
        return await workflow.execute_activity(echo, body, start_to_close_timeout=timedelta(seconds=30))
