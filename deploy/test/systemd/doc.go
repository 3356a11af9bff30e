// Package systemd boots a Debian with systemd in it and does there what an operator does: it
// installs the packages, upgrades and removes them, kills and freezes the process, reloads it, and
// replaces it while deliveries come. `make test-systemd` runs it.
package systemd
