"""Ports that servers listen on."""

from __future__ import annotations

import socket

from conbandit_torch.core.errors import ConfigError


def check_port(host: str, port: int) -> int:
    """The port, or a free one for 0; one that is none, or taken, is refused before anything is started."""
    if not 0 <= port < 2**16:
        raise ConfigError(f"--port {port}: expected a number from 0 (any free port) to 65535")
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do
            probe.bind(address)
            return int(probe.getsockname()[1])
    except OSError as error:
        raise ConfigError(f"--port {port}: {error.strerror or error}; name another port, or none") from None
