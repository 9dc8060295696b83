"""What a finished job keeps of its policy, and how it is had back.

`policy.safetensors` has the policy's whole state, bit for bit, with the job's config and a digest of the
catalogue; `result.json` has the file's digest.
"""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import get_args

import torch
import yaml

from conbandit_torch.bandits.base import Bandit
from conbandit_torch.configuration.build import build_environment, build_policy_for
from conbandit_torch.configuration.load import resolve
from conbandit_torch.core.catalogue import Catalogue
from conbandit_torch.core.digests import catalogue_digest
from conbandit_torch.core.errors import ConfigError, DataError, choices
from conbandit_torch.core.state_files import read_tensors, write_tensors
from conbandit_torch.core.version import VERSION
from conbandit_torch.running.folder import POLICY, job_folder, job_folders
from conbandit_torch.running.plan import Plan
from conbandit_torch.running.processes import Precision
from conbandit_torch.running.result import Job, JobResult, ResultError, read_result

_WORTH_A_WORD = 10**9  # bytes
_DTYPES = {"32-true": torch.float32, "64-true": torch.float64}

_log = logging.getLogger(__name__)


def keep_policy(plan: Plan, folder: Path, job: Job, policy: Bandit) -> str:
    """Write a job's policy into its folder; returns the file's digest."""
    about = {
        "config": plan.dump(*job),
        "catalogue": catalogue_digest(policy.catalogue),
        "version": VERSION,
    }
    return write_tensors(folder / POLICY, policy.state_dict(), about)


def kept_bytes(policy: Bandit, precision: Precision) -> int:
    """How much room a policy takes in a precision, before it has learned anything."""
    size = _DTYPES[precision].itemsize
    state = policy.state_dict().values()
    return sum(one.numel() * (size if one.is_floating_point() else one.itemsize) for one in state)


def expect_room(folder: Path, needed: int) -> None:
    """Refuse to begin if the disk cannot hold the policies, and say how much they take if that is much."""
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise ConfigError(
            f"--out {folder}: the policies to keep take {needed / 1e9:.1f} GB, and the disk has "
            f"{free / 1e9:.1f} GB left: keep_policies: false keeps none"
        )
    if needed > _WORTH_A_WORD:
        _log.warning(
            "%s: the policies to keep take %.1f GB (keep_policies: false keeps none)", folder, needed / 1e9
        )


def load_policy(
    folder: Path | str,
    policy: str,
    seed: int = 0,
    *,
    catalogue: Catalogue | None = None,
    precision: Precision | None = None,
) -> Bandit:
    """The policy of a finished job, with all that it has learned, ready to `choose` for a context.

    The folder's config is trusted as `conbandit run` trusts a config.

    Args:
        folder: results of `Experiment.run`, or of `conbandit run`.
        policy: the policy's name there.
        seed: the job's seed.
        catalogue: the arms, if they are at hand: those of the run, in the policy's precision. None: the run's
            environment is built for them, which reads or draws its data.
        precision: "32-true" or "64-true", into which the state is converted; None: as it is.

    Raises:
        ConfigError: if there is no such job, if it has kept no policy, or if the catalogue is another.
        DataError: if a file is damaged; says which, and what to do.
    """
    if precision is not None and precision not in get_args(Precision):
        raise ConfigError(f"precision must be one of {', '.join(get_args(Precision))}, got {precision!r}")
    own = job_folder(Path(folder), policy, seed)
    result = _result(Path(folder), own, policy, seed)
    try:
        tensors, about = read_tensors(own / POLICY, result.kept)
    except DataError as error:
        raise DataError(f"{error}; remove {own}, and run the experiment again, to make it anew") from None
    plan = resolve(yaml.safe_load(about["config"]), own / POLICY)
    wanted = plan.precision if precision is None else precision
    if wanted != plan.precision:
        _log.warning(
            "%s: was kept in %s and is converted to %s: decisions may differ from those of the run",
            *(own / POLICY, plan.precision, wanted),
        )
    known = build_environment(plan, seed).catalogue if catalogue is None else catalogue
    if catalogue_digest(known) != about["catalogue"]:
        raise ConfigError(
            f"{own / POLICY}: was learned on another catalogue (sha256 {about['catalogue'][:12]} there, "
            f"{catalogue_digest(known)[:12]} now): arms or key-terms have changed since"
        )
    dtype = _DTYPES[wanted]
    if catalogue is not None and catalogue.arm_features.dtype != dtype:
        raise ConfigError(
            f"{own / POLICY}: the policy is in {wanted}, the catalogue in {catalogue.arm_features.dtype}: "
            "name the precision that you want, or convert the catalogue"
        )
    learned = build_policy_for(plan, policy, known, result.users, seed).to(dtype)
    try:
        learned.load_state_dict(tensors)
    except RuntimeError as error:
        problem = " ".join(str(error).split())
        raise DataError(
            f"{own / POLICY}: was kept by conbandit_torch {about['version']}, whose {type(learned).__name__} "
            f"had another state than that of {VERSION}: {problem}"
        ) from None
    return learned


def _result(folder: Path, own: Path, policy: str, seed: int) -> JobResult:
    """The result of a job that has kept its policy."""
    try:
        result = read_result(own)
    except ResultError as error:
        raise DataError(f"{error}; run the experiment again to make it good") from None
    if result is None:
        there = job_folders(folder)
        policies = dict.fromkeys(path.parent.name for path in there)
        if policy not in policies:
            raise ConfigError(f"{folder}: there is no policy {policy!r}{choices(policy, policies)}")
        seeds = [path.name.removeprefix("seed") for path in there if path.parent.name == policy]
        if str(seed) not in seeds:
            raise ConfigError(f"{folder}: {policy} was not run with seed {seed}{choices(seed, seeds)}")
        raise ConfigError(f"{own}: has not finished; `conbandit resume {folder}` goes on")
    if not result.kept:
        raise ConfigError(
            f"{own}: kept no policy: it was run with keep_policies: false, with users split over processes, "
            "or by a version that kept none"
        )
    return result
