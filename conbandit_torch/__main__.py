"""`python -m conbandit_torch` is `conbandit`."""

import sys

from conbandit_torch.cli import main

sys.exit(main())
