"""Works for a minute and tells how far it is: to see a time-out, progress and cancelling."""

import json
import sys
import time

SECONDS = 60

for second in range(SECONDS):
    told = {"message": f"second {second} of {SECONDS}", "fraction": second / SECONDS}
    sys.stderr.write(f"::progress:: {json.dumps(told)}\n")
    sys.stderr.flush()
    time.sleep(1)
json.dump({"seconds": SECONDS}, sys.stdout)
