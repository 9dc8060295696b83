"""A small leaderboard that runs in a second or two."""

import copy
from pathlib import Path

import yaml

RANGE = {"low": 0.01, "high": 1.0, "log": True}
SMALL = {"arms": 40, "terms": 8, "dim": 4, "pool": 6, "max_terms": 3}
FILES = {
    "protocol.yaml": {
        "protocols": {
            "tiny": {
                "about": "Tiny.",
                "users": 3,
                "rounds": 8,
                "seeds": "0-1",
                "log_every": 4,
                "trials": 2,
                "tuning_seeds": "100-101",
            }
        },
        "tasks": {
            "plain": {
                "title": "Plain",
                "about": "Linear.",
                "environment": {"class_path": "Synthetic", "init_args": SMALL},
            },
            "log": {
                "title": "Log",
                "about": "Clicks.",
                "environment": {
                    "class_path": "GeneratedLog",
                    "init_args": {"users": 8, **SMALL, "events": 40, "pool": 2},
                },
            },
            "own": {
                "title": "Own",
                "about": "A paper's.",
                "paper": "Zhang20",
                "environment": {"class_path": "Synthetic", "init_args": SMALL},
                "policies": {"LinUCB": {"alpha": 0.7}, "ConUCB": None},
            },
        },
    },
    "policies.yaml": {
        "policies": {
            "Random": {"class_path": "Random", "group": "plain"},
            "LinUCB": {
                "class_path": "LinUCB",
                "init_args": {"alpha": 0.5},
                "tune": {"alpha": RANGE},
                "source": "a source",
            },
            "ConUCB": {
                "class_path": "ConUCB",
                "group": "asking",
                "tune": {"alpha": RANGE, "term_alpha": RANGE},
            },
        }
    },
    "claims.yaml": {
        "papers": {"Zhang20": "Zhang et al. 2020", "ours": "this project"},
        "claims": [
            {
                "paper": "Zhang20",
                "says": "LinUCB is better than Random.",
                "better": "LinUCB",
                "worse": ["Random"],
                "tasks": ["plain", "log"],
            },
            {
                "paper": "Zhang20",
                "says": "ConUCB is better than LinUCB.",
                "better": "ConUCB",
                "worse": ["LinUCB"],
                "own": "own",
                "tasks": ["plain"],
            },
        ],
    },
}


def write_board(folder: Path, change=None) -> Path:
    """The folder of the small board; `change` gets its content, by file, to change it."""
    files = copy.deepcopy(FILES)
    if change is not None:
        change(files)
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(yaml.safe_dump(content, sort_keys=False))
    return folder
