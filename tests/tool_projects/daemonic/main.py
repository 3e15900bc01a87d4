"""Lives, while somebody who is not of its process group answers on its port."""

import signal
import subprocess
import sys

subprocess.Popen([sys.executable, "-m", "http.server", "--bind", "127.0.0.1", sys.argv[2]], start_new_session=True)
signal.pause()
