"""What a results folder holds already, and whether an experiment may go on there."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from conbandit_torch.core.errors import ConfigError
from conbandit_torch.core.seals import file_digest, is_as_sealed
from conbandit_torch.running.checkpoint import CheckpointError, list_checkpoints, read_manifest
from conbandit_torch.running.folder import CHECKPOINTS, CONFIG, job_folders
from conbandit_torch.running.job import finished, kernels_of, origin_of, write_config
from conbandit_torch.running.origin import Origin, OtherOriginError, package_version
from conbandit_torch.running.plan import Plan, first_difference, without_incidentals
from conbandit_torch.running.result import Job, JobResult, OtherFormatError, write_result
from conbandit_torch.running.worlds import Worlds

_log = logging.getLogger(__name__)

Held = dict[Job, JobResult]
"""The results of a folder's finished jobs, of this experiment or of others."""


def read_held(folder: Path) -> Held:
    """All results of a folder; those that are damaged are reported and left out."""
    found: Held = {}
    for own in job_folders(folder):
        try:
            result = finished(own)
        except OtherFormatError as error:
            raise ConfigError(f"--out {folder}: {error}") from None
        if result is None:
            continue
        if result.job != _job(own):
            _log.warning("%s: holds the result of %s seed %d; it is left out", own, *result.job)
        else:
            found[result.job] = result
    return found


def refuse_what_differs(
    experiment: Plan, folder: Path, held: Held, worlds: Worlds, *, repair: bool = True
) -> None:
    """Results and checkpoints of another config, environment or data are never overwritten or mixed.

    Args:
        experiment: what is to run.
        folder: where.
        held: the folder's results.
        worlds: of this run, by whose data others are told.
        repair: whether to write damaged configs anew, where the results prove what they were.
    """
    origins: dict[Job, tuple[Path, Origin]] = {}
    for own in job_folders(folder):
        job = _job(own)
        origin = held[job].origin if job in held else _origin_of_checkpoint(own)
        if origin is None:  # nothing is worth keeping
            continue
        origins[job] = own, origin
        _refuse_another_config(experiment, folder, own, origin, held.get(job), repair)
    _refuse_other_data(experiment, folder, origins, worlds)
    versions = {origin.version for _, origin in origins.values()} - {package_version()}
    if versions:
        others = ", ".join(sorted(version or "an unknown version" for version in versions))
        _log.warning(
            "%s: holds results of conbandit_torch %s, and this is %s: numbers may differ in the last digits, "
            "and decisions with them, from those of one version alone",
            *(folder, others, package_version()),
        )
    if held:  # a job that has only begun goes on with its own kernels, if it can
        now = kernels_of(experiment)
        for kernels in sorted({result.origin.kernels for result in held.values()}):
            Origin(kernels=kernels).warn_of_other_kernels(Origin(kernels=now), folder)


def _refuse_another_config(
    experiment: Plan, folder: Path, own: Path, origin: Origin, result: JobResult | None, repair: bool
) -> None:
    """Digests tell whether configs are equal; the file itself is read only where they are not."""
    job = _job(own)
    policy = job[0]
    known = policy in experiment.policies
    same = origin.config == experiment.digest(*job) if known else origin.shared == experiment.shared_digest
    path = own / CONFIG
    if same:
        if known and result is not None and result.config != _file_digest(path) and repair:
            _log.warning("%s was missing or damaged: the results prove this config, it is written anew", path)
            write_config(experiment, own, job, origin)
            write_result(own, replace(result, config=file_digest(path)))
        return
    there = _read_config(path)
    if there is None:
        raise ConfigError(
            f"--out {folder}: {path} is missing or damaged, and the results beside it are of another config; "
            f"remove {own}, or name another folder"
        )
    wanted = experiment.identity(policy if known else None)
    there = {key: value for key, value in there.items() if known or key != "policies"}
    raise ConfigError(
        f"--out {folder}: holds results of another config ({path} differs in "
        f"{first_difference(there, wanted)}); name another folder"
    )


def _file_digest(path: Path) -> str:
    try:
        return file_digest(path)
    except OSError:
        return ""


def _refuse_other_data(
    experiment: Plan, folder: Path, origins: dict[Job, tuple[Path, Origin]], worlds: Worlds
) -> None:
    """The data of one seed are enough: those of the others were compared with it before."""
    seeds = sorted({seed for _, seed in origins}, key=lambda seed: (seed not in experiment.seeds, seed))
    if not seeds:
        return
    seed = seeds[0]
    policy = next(iter(experiment.policies))
    now = origin_of(experiment, (policy, seed), worlds.of(seed).data)
    for (_, other), (own, origin) in origins.items():
        if other == seed:
            try:
                origin.refuse_other_data(now, own)
            except OtherOriginError as error:
                raise ConfigError(f"--out {folder}: {error}") from None


def _origin_of_checkpoint(own: Path) -> Origin | None:
    """Where the newest sound checkpoint came from; None: there is none."""
    for path in list_checkpoints(own / CHECKPOINTS):
        try:
            return read_manifest(path).origin
        except CheckpointError:
            continue  # reported when the job runs
    return None


def _read_config(path: Path) -> dict[str, Any] | None:
    """What a job's numbers depend on, as its config says; None: it is missing or damaged."""
    try:
        text = path.read_text(encoding="utf-8")
        config = None if is_as_sealed(text) is False else yaml.safe_load(text)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError, ValueError):
        return None
    if not isinstance(config, dict) or not {"policies", "seeds", "environment"} <= config.keys():
        return None
    return without_incidentals(config)


def _job(own: Path) -> Job:
    return own.parent.name, int(own.name.removeprefix("seed"))
