"""What listeners need for DHE suites: the group that RFC 7919 names ffdhe2048, which Java's clients take, too.

Loaded only where `ssl.cipher.suites` names such a suite: these handshakes cost the server many times what they cost who
asks for them, and every client of today has ECDHE.
"""

from __future__ import annotations

import os
import ssl
from typing import Final

_FFDHE2048: Final = b"""-----BEGIN DH PARAMETERS-----
MIIBCAKCAQEA//////////+t+FRYortKmq/cViAnPTzx2LnFg84tNpWp4TZBFGQz
+8yTnc4kmz75fS/jY2MMddj2gbICrsRhetPfHtXV/WVhJDP1H18GbtCFY2VVPe0a
87VXE15/V8k1mE8McODmi3fipona8+/och3xWKE2rec1MKzKT0g6eXq8CrGCsyT7
YdEIqUuyyOP7uWrat2DX9GgdT0Kj3jlN9K5W7edjcrsZCwenyO4KbXCeAvzhzffi
7MA0BM0oNC9hkXL+nOmFg/+OTxIy7vKBg8P+OxtMb61zO7X8vC7CIAXFjvGDfRaD
ssbzSibBsu/6iGtCOGEoXJf//////////wIBAg==
-----END DH PARAMETERS-----
"""


def load_dh_parameters(context: ssl.SSLContext) -> None:
    """Have a listener's context serve DHE suites. Python takes parameters from a file alone: one in memory."""
    with os.fdopen(os.memfd_create("kavka-dh"), "wb") as file:
        file.write(_FFDHE2048)
        file.flush()
        context.load_dh_params(f"/proc/self/fd/{file.fileno()}")
