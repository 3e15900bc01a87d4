"""A service that began as a copy looks like one that was started directly."""

import os

from tests.system.leftovers import processes_of
from tests.system.service_process import ServiceProcess


def test_a_copy_is_found_by_its_environment_and_leads_a_session_of_its_own(service: ServiceProcess) -> None:
    assert service.pid in processes_of(service.state)
    assert os.getsid(service.pid) == service.pid != os.getsid(0)
