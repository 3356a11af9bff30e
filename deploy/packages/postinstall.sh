#!/bin/sh
# deb: $1 is configure, $2 the version before, if any. rpm: $1 is how many versions are now there.
set -e
if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers hooklock.conf
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	if { [ "$1" = configure ] && [ -n "$2" ]; } || [ "$1" = 2 ]; then
		systemctl try-restart hooklock.service 'hooklock@*.service'
	fi
fi
