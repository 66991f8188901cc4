"""The runs behind a paper's rows: its campaigns, run where results are missing, read by columns."""
