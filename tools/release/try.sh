#!/usr/bin/env bash
# Tries the packages in bin/dist as their users would: installs the deb in a clean
# Debian, upgrades and purges it; installs the rpm; unpacks the apk; runs the
# programs for other systems where an emulator can be had. Prints what it did.
#
# It must run as root on Debian, and installs the programs that it needs. The
# arguments are the parts to run: debian, others, archives; all by default.
set -euo pipefail
top=$(git rev-parse --show-toplevel)
cd "$top/bin/dist"
work=$(mktemp -d "${TMPDIR:-/tmp}/try.XXXXXX")
trap 'rm -rf "$work"' EXIT

fail() {
	echo "FAILED: $*" >&2
	exit 1
}

# try runs a command, shows it with the beginning of its output, and fails if the
# command does or if no line of the output matches.
# usage: try REGEXP COMMAND…
try() {
	local wanted=$1 output
	shift
	output=$("$@" 2>&1 </dev/null) || { echo "$output"; fail "$*"; }
	case $1 in
	root | ada) printf '%s$ %s\n' "$@" ;;
	*) echo "$ $*" ;;
	esac
	head -n 4 <<<"$output" | cut -c1-110
	grep -qe "$wanted" <<<"$output" || fail "no \"$wanted\" in the output"
}

need() {
	local missing=()
	for pair; do command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}"); done
	test ${#missing[@]} = 0 || apt-get install -y -q --no-install-recommends "${missing[@]}" </dev/null >&2
}

one() { # the only file of that name
	local found=("$@")
	test ${#found[@]} = 1 -a -f "${found[0]}" || fail "not one file: $*"
	echo "${found[0]}"
}

in_debian() { unshare --mount --pid --fork --mount-proc="$work/debian/proc" chroot "$work/debian" "$@"; }
root() { in_debian bash -lc "$1"; }
ada() { in_debian su ada -lc "$1"; }

debian() {
	local files_of_toolreg='find . -path "*toolreg*" -type f | sort | xargs sha256sum' deb older=$work/older
	deb=$(one toolreg_*_amd64.deb)
	debootstrap --variant=minbase --include=man-db,bash-completion,zsh,fish bookworm "$work/debian" >"$work/log" 2>&1 || { tail "$work/log"; fail debootstrap; }
	dpkg-deb -R "$deb" "$older"
	sed -i 's/^Version: .*/Version: 0.0.0/' "$older/DEBIAN/control"
	echo gone >"$older/usr/share/doc/toolreg/only-in-the-older-version"
	dpkg-deb -b "$older" "$work/debian/tmp/older.deb" >/dev/null
	cp "$deb" "$work/debian/tmp/newer.deb"

	echo "== install an older version"
	try 'Setting up toolreg (0.0.0)' root "dpkg -i /tmp/older.deb"
	root "useradd -m -s /bin/bash ada"
	ada 'mkdir -p project/.toolreg ~/.config/toolreg
		echo "allowedTools: [todo_write]" >~/.config/toolreg/settings.yaml
		cd project
		echo hello >notes.md
		echo "excludeTools: [web_fetch]" >.toolreg/settings.yaml
		toolreg trust grant --hash "$(toolreg trust status --jq .hash)" >/dev/null'

	echo "== upgrade"
	try 'over (0.0.0)' root "dpkg -i /tmp/newer.deb"
	root "test ! -e /usr/share/doc/toolreg/only-in-the-older-version" || fail "a file of the older version is left"
	try '^install ok installed' root "dpkg-query -Wf '\${Status} \${Version}\n' toolreg"

	echo "== a user without Go"
	try 'not there' ada "command -v go || echo not there"
	try '^toolreg v' ada "toolreg version"
	try '^read_file' ada "cd project && toolreg list"
	try '^hello' ada "cd project && toolreg call read_file file_path=notes.md"
	try '^TOOLREG(1)' ada "MANWIDTH=80 man toolreg"
	try '/man1/toolreg-call.1' ada "man -w toolreg-call"
	try 'toolreg-settings.5' ada "man -w 5 toolreg-settings"
	try ' toolreg$' ada ". /usr/share/bash-completion/bash_completion; _completion_loader toolreg; complete -p toolreg"
	try '_toolreg' ada "zsh -c 'autoload -U compinit; compinit -u -d /tmp/zcompdump; print \$_comps[toolreg]'"
	try '^read_file' ada "cd project && fish -c 'complete -C \"toolreg call read_\"'"
	try 'License: Apache-2.0' root "tail -n 3 /usr/share/doc/toolreg/copyright"

	echo "== purge"
	ada "$files_of_toolreg" >"$work/before"
	try 'Removing toolreg' root "dpkg --purge toolreg"
	try '^none' root "find / -xdev -path /proc -prune -o -path /home -prune -o -path /tmp -prune -o -path '*/dpkg.log' -prune -o -name '*toolreg*' -print | grep . || echo none"
	ada "$files_of_toolreg" | diff "$work/before" - || fail "files of the user changed"
	echo "these files of the user are as they were:"
	cut -c67- "$work/before"
}

others() {
	local rpm apk
	rpm=$(one toolreg-*.x86_64.rpm) apk=$(one toolreg_*_x86_64.apk)
	echo "== rpm"
	mkdir -p "$work/rpm"
	try '^License *: Apache-2.0' rpm -qip "$rpm"
	try 'digests OK' rpm -K "$rpm"
	rpm --root "$work/rpm" -i --nodeps "$rpm"
	try '^toolreg v' chroot "$work/rpm" /usr/bin/toolreg version
	try 'toolreg-call.1.gz' rpm -qlp "$rpm"
	rpm --root "$work/rpm" -e toolreg
	test ! -e "$work/rpm/usr/bin/toolreg" || fail "rpm -e left the program"

	echo "== apk"
	mkdir -p "$work/apk"
	tar -xzf "$apk" -C "$work/apk" --warning=no-unknown-keyword
	try '^pkgver = ' cat "$work/apk/.PKGINFO"
	try '^toolreg v' chroot "$work/apk" /usr/bin/toolreg version
	try '_toolreg' ls "$work/apk/usr/share/zsh/site-functions"
}

archives() {
	local zip arm
	echo "== archives and manifests"
	try 'toolreg_.*_darwin_arm64.tar.gz: OK' sha256sum -c checksums.txt
	try 'Syntax OK' ruby -c homebrew/Formula/toolreg.rb
	try '/toolreg.exe$' jq -r '.architecture."64bit" | .bin[], .url, .hash' scoop/toolreg.json
	zip=$(one toolreg_*_windows_amd64.zip) arm=$(one toolreg_*_linux_arm64.tar.gz)
	try 'completions/toolreg.ps1' unzip -o -d "$work" "$zip"
	tar -xzf "$arm" -C "$work"

	echo "== linux/arm64 by QEMU"
	try 'linux/arm64' qemu-aarch64 "$work/${arm%.tar.gz}/toolreg" version

	echo "== windows/amd64 by Wine"
	cd "$work/${zip%.zip}"
	echo hello >notes.md
	wine() { "$top/tools/windows/wine.sh" . . "$@"; }
	try 'windows/amd64' wine /src/toolreg.exe version
	try '^read_file' wine /src/toolreg.exe list
	try '^hello' wine /src/toolreg.exe call read_file file_path=notes.md
	try '^Created' wine /src/toolreg.exe call write_file file_path='new\folder\todo.md' content=milk --yes
	try 'AppData.Roaming.toolreg' wine /src/toolreg.exe settings path
}

need debootstrap:debootstrap rpm:rpm jq:jq unzip:unzip ruby:ruby qemu-aarch64:qemu-user unshare:util-linux
test $# -gt 0 || set -- debian others archives
for part; do "$part"; done
echo "everything works"
