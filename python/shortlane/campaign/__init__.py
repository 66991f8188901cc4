"""Campaigns: a sweep of any size, on this machine or a Dask cluster, that survives anything.

```python
from shortlane import campaign

sweep = campaign.Campaign.load("sweep.toml")
sweep.run("results", progress=True)            # the same call resumes after any interruption
flows = campaign.open("results").table("flows", columns=["size_bytes", "completion_ns"])
print(flows.group_by("scheduler").mean().collect())
```
"""

from shortlane.campaign.campaign import Campaign
from shortlane.campaign.part import Outcome, Part
from shortlane.campaign.points import Point, Run
from shortlane.campaign.pool import Pool
from shortlane.campaign.results import Failure, Results, open
from shortlane.campaign.values import quantity

__all__ = [
    "Campaign",
    "Failure",
    "Outcome",
    "Part",
    "Point",
    "Pool",
    "Results",
    "Run",
    "open",
    "quantity",
]
