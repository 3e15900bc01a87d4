"""Requests whose head is longer than anybody needs are refused before it is held in memory; the server itself has no such limit."""

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEAD_BYTES = 64 * 1024

_BODY = b'{"type":"headers_too_large","title":"Headers too large","status":431,"detail":"The head of a request may have 65536 bytes."}'
_REFUSAL = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/problem+json\r\n"
    b"content-length: %d\r\nconnection: close\r\n\r\n%b" % (len(_BODY), _BODY)
)


class BoundedHead(HttpToolsProtocol):
    """Answers 431 and closes the connection when the request line and headers have more than `MAX_HEAD_BYTES` bytes."""

    _is_in_head = True
    _head_bytes = 0

    def on_message_begin(self) -> None:
        self._is_in_head, self._head_bytes = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        # What came with the end of the head is not counted: it was read in one piece.
        self._head_bytes += len(data)
        if self._is_in_head and self._head_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            self.transport.write(_REFUSAL)
            self.transport.close()
