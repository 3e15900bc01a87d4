"""Counts words: parameters as JSON on stdin, one JSON value on stdout."""

import json
import sys
from collections import Counter


def main() -> None:
    params = json.load(sys.stdin)
    text = params["text"]
    words = text.split()
    counts = Counter(word.lower() for word in words)
    answer = {
        "lines": len(text.splitlines()),
        "words": len(words),
        "characters": len(text),
        "top": [{"word": word, "count": count} for word, count in counts.most_common(params["top"])],
    }
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
