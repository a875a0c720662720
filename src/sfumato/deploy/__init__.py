"""Where a mechanism is used: tables, devices, a service on this machine, a cluster."""
