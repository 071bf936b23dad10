"""SaslHandshake (key 17): choose a SASL mechanism. Never flexible: it precedes authentication.

v0 raw tokens follow · v1 tokens follow in SaslAuthenticate (KIP-152)
"""

from kavka.protocol.schema import Int16, Request, Response, String


class SaslHandshakeRequest(Request, key=17, versions="0-1"):
    mechanism: String


class SaslHandshakeResponse(Response, key=17, versions="0-1"):
    error_code: Int16
    mechanisms: list[String]
