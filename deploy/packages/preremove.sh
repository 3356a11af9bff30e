#!/bin/sh
# deb: $1 is remove or upgrade. rpm: $1 is how many versions will be left.
set -e
if [ -d /run/systemd/system ] && { [ "$1" = remove ] || [ "$1" = 0 ]; }; then
	systemctl stop hooklock.socket 'hooklock@*.service'
	systemctl disable hooklock.socket hooklock@.service
	systemctl disable --now hooklock.service
fi
