"""At its first start somebody else has just taken its port; at its second it serves. Has no health path."""

import os
import socket
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

PORT = int(sys.argv[2])
NOTE = Path(os.environ["HOME"]) / "tries"  # noqa: TID251 - a tool has no settings of ours


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_error(404)

    def do_POST(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'"served"')


with NOTE.open("a") as file:
    file.write(f"{PORT}\n")
if len(NOTE.read_text().split()) == 1:
    taker = socket.socket()
    taker.bind(("127.0.0.1", PORT))
    taker.listen()
HTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
