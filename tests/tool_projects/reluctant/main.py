"""Serves, but has no health path."""

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_error(404)

    def do_POST(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'"served"')


HTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
