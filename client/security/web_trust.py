"""TLS towards pages of the web, where tokens and keys are fetched: by the login module's own `ssl.*` options."""

import ssl
from collections.abc import Mapping

from kavka.client.tls.contexts import client_context, tls_settings
from kavka.config.clients.loading import secure_settings
from kavka.config.clients.secure import SecureSettings


def web_context(options: Mapping[str, str]) -> ssl.SSLContext:
    """Of the options those that are about TLS, as in Kafka; without them whom the system trusts is trusted.

    The page's name is checked whatever they say, as Java does it there. Reads the stores. Raises ConfigError.
    """
    given = {name: value for name, value in options.items() if name in SecureSettings.ROWS and name.startswith("ssl.")}
    if not given:
        return ssl.create_default_context()
    context = client_context(tls_settings(secure_settings(given)))
    context.check_hostname = True
    return context
