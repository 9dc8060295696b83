"""conbandit serve: a study in the browser, and as REST."""

from __future__ import annotations

import argparse
import os
import secrets
from pathlib import Path

from conbandit_torch.commands.chat import study_folder
from conbandit_torch.commands.ports import check_port
from conbandit_torch.commands.terminal import Terminal
from conbandit_torch.configuration.load import load
from conbandit_torch.configuration.packaged import find_config
from conbandit_torch.core.errors import ConfigError
from conbandit_torch.live.owners import OwnedError
from conbandit_torch.live.study import Study
from conbandit_torch.live.web.safety import invitation_of, is_loopback

_TOKEN = "CONBANDIT_TOKEN"
_SHORTEST = 16  # characters of a token that guards more than this machine
_LONGEST_CONSENT = 20_000


def main(options: argparse.Namespace, overrides: list[tuple[str, str]], console: Terminal) -> int:
    """Run the command; returns the exit code."""
    try:
        import uvicorn

        from conbandit_torch.live.web.app import CONSENT, Settings, create_app
    except ImportError as error:
        raise ConfigError(f"serve needs {error.name}: pip install 'conbandit-torch[serve]'") from None
    here = is_loopback(options.host)
    token = options.token or os.environ.get(_TOKEN) or ""
    if not here and len(token) < _SHORTEST:
        raise ConfigError(
            f"--host {options.host}: others could reach it, so it needs a token of at least {_SHORTEST} "
            f"characters: give --token, or {_TOKEN} in the environment"
        )
    port = check_port(options.host, options.port)
    settings = Settings(
        token=token or secrets.token_urlsafe(16),
        needs_invitation=not here,
        hosts=("localhost", "127.0.0.1", "::1", options.host) if here else None,
        title=options.title,
        consent=CONSENT if options.consent is None else _paragraphs(options.consent),
        rate=options.rate,
        joins=options.joins,
        https=options.https,
    )
    plan = load(find_config(options.config), overrides)
    folder = study_folder(options.out, options.config)
    try:
        study = Study(plan, folder, store=options.store, slate=options.items, curves=True)
    except OwnedError as error:
        raise ConfigError(str(error)) from None
    scheme = "https" if options.https else "http"
    address = f"{scheme}://{f'[{options.host}]' if ':' in options.host else options.host}:{port}"
    invitation = "" if here else f"#invitation={invitation_of(settings.token)}"
    output = Terminal()
    lines = {
        "Visitors": f"{address}/{invitation}",
        "Admin": f"{address}/admin (token {'as given' if token else settings.token})",
        "REST": f"{address}/openapi.json",
        "Kept in": folder,
        "Curves": f"conbandit watch {folder}",
    }
    output.print("\n".join(f"{name + ':':<10}{value}" for name, value in lines.items()), soft_wrap=True)
    output.print("Ctrl-C ends it.")
    try:
        uvicorn.run(
            create_app(study, settings),
            host=options.host,
            port=port,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
        )
    finally:
        study.close()
    output.print(f"Everything is kept in {folder}.", soft_wrap=True)
    return 0


def _paragraphs(path: Path) -> tuple[str, ...]:
    """The paragraphs of a text file."""
    text = path.read_text(encoding="utf-8")
    found = tuple(" ".join(part.split()) for part in text.split("\n\n") if part.strip())
    if not found or len(text) > _LONGEST_CONSENT:
        raise ConfigError(f"--consent {path}: expected a text of at most {_LONGEST_CONSENT:,} characters")
    return found
