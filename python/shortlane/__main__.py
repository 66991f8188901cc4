"""`python -m shortlane` is the command `shortlane`."""

import sys

from shortlane._command import main

sys.exit(main())
