"""Serves, but never becomes healthy."""

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_error(503)


sys.stderr.write("not well\n")
sys.stderr.flush()
HTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
