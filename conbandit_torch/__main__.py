"""`python -m conbandit_torch` is `conbandit`."""

import sys

from conbandit_torch.commands.main import main

sys.exit(main())
