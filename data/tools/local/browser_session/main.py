"""Browser sessions: `python main.py --port N`."""

import argparse

from server import serve

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True, help="port on 127.0.0.1")
    serve(parser.parse_args().port)
