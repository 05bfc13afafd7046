"""How often the ABBA engine errs on this machine: false alarms of A/A trials, power on planted slowdowns."""
