"""The functions of the service role, one a file, in the order in which its model is offered them."""

from activities.chat_tools.check_task_status import CHECK_TASK_STATUS
from activities.chat_tools.get_tool_details import GET_TOOL_DETAILS
from activities.chat_tools.list_backend_runtimes import LIST_BACKEND_RUNTIMES
from activities.chat_tools.list_groups import LIST_GROUPS
from activities.chat_tools.list_tools import LIST_TOOLS
from activities.chat_tools.submit_task import SUBMIT_TASK

CHAT_TOOLS = (LIST_TOOLS, GET_TOOL_DETAILS, LIST_GROUPS, LIST_BACKEND_RUNTIMES, CHECK_TASK_STATUS, SUBMIT_TASK)
