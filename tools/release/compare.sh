#!/usr/bin/env bash
# Builds the release of the last commit twice and fails if a file of it differs:
# in another folder, with an empty build cache, another time zone and umask.
# Prints the files of the release with their sizes and hashes.
set -euo pipefail
cd "$(git rev-parse --show-toplevel)"
work=$(mktemp -d "${TMPDIR:-/tmp}/compare.XXXXXX")
trap 'rm -rf "$work"' EXIT
if test -z "${GORELEASER:-}"; then
	GORELEASER=$work/goreleaser
	go build -modfile=tools/goreleaser.mod -o "$GORELEASER" github.com/goreleaser/goreleaser/v2
fi

# build clones the repository and leaves the hashes of its release in a file.
# usage: build FOLDER FILE
build() {
	git clone -q . "$work/$1"
	(
		cd "$work/$1"
		"$GORELEASER" release --snapshot >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
		cd bin/dist
		find . -type f \( -name 'toolreg*' -o -name checksums.txt \) -printf '%s\t%P\n' | LC_ALL=C sort -k 2 >"$work/files"
		cut -f 2 "$work/files" | xargs sha256sum | cut -d ' ' -f 1 | paste "$work/files" - >"$2"
	)
	rm -rf "${work:?}/$1"
}

build one "$work/first"
(
	umask 077
	export GOCACHE=$work/cache TZ=Asia/Tokyo
	build another/deeper "$work/second"
)
diff -u "$work/first" "$work/second"
column -t "$work/first"
echo "both builds are the same, byte for byte"
