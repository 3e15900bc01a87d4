"""The functions of the coding role, one a file, in the order in which its model is offered them."""

from activities.agent_tools.create_docker_env import CREATE_DOCKER_ENV
from activities.agent_tools.create_uv_project import CREATE_UV_PROJECT
from activities.agent_tools.destroy_docker_env import DESTROY_DOCKER_ENV
from activities.agent_tools.read_file import READ_FILE
from activities.agent_tools.rebuild_docker_ports import REBUILD_DOCKER_PORTS
from activities.agent_tools.register_tool import REGISTER_TOOL
from activities.agent_tools.run_in_docker import RUN_IN_DOCKER
from activities.agent_tools.run_in_uv import RUN_IN_UV
from activities.agent_tools.uv_add_dependency import UV_ADD_DEPENDENCY
from activities.agent_tools.write_file import WRITE_FILE

CODING_TOOLS = (
    CREATE_DOCKER_ENV,
    RUN_IN_DOCKER,
    REBUILD_DOCKER_PORTS,
    DESTROY_DOCKER_ENV,
    CREATE_UV_PROJECT,
    RUN_IN_UV,
    UV_ADD_DEPENDENCY,
    WRITE_FILE,
    READ_FILE,
    REGISTER_TOOL,
)
