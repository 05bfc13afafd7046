"""What each commit costs and computes, kept over time: asv suites, their runner, the dashboard."""
