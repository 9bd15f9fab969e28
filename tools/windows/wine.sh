#!/usr/bin/env bash
# wine.sh ROOT FOLDER PROGRAM ARGUMENT…: runs a program for Windows by Wine in a folder of ROOT, which
# the program sees as Z:\src. Wine is in a Debian of its own in bin/wine, because it must be recent
# enough for Go's programs. Without arguments it only installs that. It must run as root on Debian.
set -euo pipefail
debian=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/bin/wine

wine() {
	unshare --mount --pid --fork --mount-proc="$debian/proc" sh -c '
		mount --bind "$1" "$0/src" && mount --bind /dev "$0/dev" && cd "$0" && shift &&
		exec chroot . env -i PATH=/usr/bin:/bin HOME=/root WINEDEBUG=-all MCPTEST_SERVER="$MCPTEST_SERVER" \
			sh -c "cd /src/$1 && shift && exec timeout -k 10 300 /usr/lib/wine/wine64 \"\$@\"" sh "$@"' "$debian" "$@" </dev/null
}

if test ! -e "$debian/ready"; then
	command -v debootstrap >/dev/null || apt-get install -y -q --no-install-recommends debootstrap </dev/null >&2
	rm -rf "$debian" && mkdir -p "$debian"
	{
		debootstrap --variant=minbase --include=wine64 trixie "$debian" &&
			mkdir "$debian/src" &&
			echo 127.0.0.1 localhost >"$debian/etc/hosts" &&
			wine "$debian" . wineboot --init
	} >"$debian.log" 2>&1 || { tail "$debian.log" >&2; exit 1; }
	touch "$debian/ready"
fi
test $# -eq 0 || wine "$@"
