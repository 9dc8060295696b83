"""Small configs that run, and how to change and write them."""

import copy
from pathlib import Path

import yaml

GOOD = {
    "rounds": 12,
    "seeds": "0-1",
    "environment": {
        "class_path": "Synthetic",
        "init_args": {"users": 4, "arms": 40, "terms": 8, "dim": 5, "pool": 6, "max_terms": 3},
    },
    "policies": {
        "Lin": {"class_path": "LinUCB", "init_args": {"alpha": 0.4}},
        "Con": {
            "class_path": "ConUCB",
            "init_args": {
                "mix": 0.3,
                "schedule": {"class_path": "LogSchedule", "init_args": {"questions": 2}},
            },
        },
    },
}
LOG = {  # an environment that ends
    "class_path": "GeneratedLog",
    "init_args": {"users": 2, "arms": 12, "terms": 3, "dim": 3, "max_terms": 2, "pool": 2, "events": 9},
}
SPACE = {"Lin": {"alpha": {"low": 0.01, "high": 1.0, "log": True}, "ridge": {"low": 0.1, "high": 2.0}}}
TUNABLE = copy.deepcopy(GOOD) | {"tune": {"seeds": "10-11", "space": SPACE}}


def write(folder: Path, config) -> Path:
    """The path of a file with this config, a mapping or its text."""
    path = folder / "config.yaml"
    path.write_text(config if isinstance(config, str) else yaml.safe_dump(config, sort_keys=False))
    return path


def changed(key: str, value):
    """GOOD with one dotted key set, or removed if the value is `...`."""
    config = copy.deepcopy(GOOD)
    *parents, last = key.split(".")
    node = config
    for parent in parents:
        node = node[parent]
    if value is ...:
        del node[last]
    else:
        node[last] = value
    return config
