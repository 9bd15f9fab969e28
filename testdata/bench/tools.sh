#!/bin/sh
# Compares the built-in file tools with cat, head, sed, tail, ripgrep and fd,
# whole processes, in one run. Prints a Markdown table. Needs hyperfine and rg;
# fd is left out where it is not installed.
#
#   testdata/bench/tools.sh [TREE]      default: the Go module cache
set -eu

cd "$(dirname "$0")/../.."
toolreg=$PWD/bin/toolreg
tree=${1:-$(go env GOMODCACHE)}
runs=${RUNS:-5}
for program in hyperfine rg "$toolreg"; do
	command -v "$program" >/dev/null || { echo "$program is missing" >&2; exit 1; }
done

fd=$(command -v fd || command -v fdfind || true)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$work/home"
export HOME="$work/home" XDG_CONFIG_HOME="$work/home" XDG_STATE_HOME="$work/home" XDG_CACHE_HOME="$work/home"

# 1 GiB of lines of 64 bytes.
line='0123456789 the quick brown fox jumps over the lazy dog, again.'
yes "$line" | head -c 1073741824 >"$work/big.txt"

# compare NAME TREE TOOLREG-ARGS THEIRS [THEIRS...]: the quickest runs in ms of
# one hyperfine run, which other work on the machine disturbs least; the ratio
# is to the quickest of theirs.
compare() {
	name=$1 root=$2 ours=$3
	shift 3
	hyperfine -N -i --warmup 1 --runs "$runs" --style none --export-csv "$work/times.csv" \
		"$toolreg --root $root call $ours" "$@" >/dev/null 2>"$work/errors" || { cat "$work/errors" >&2; exit 1; }
	awk -F , -v name="$name" '
		NR == 1 { for (i = 1; i <= NF; i++) if ($i == "min") at = NF - i; next }
		{ ms = $(NF - at) * 1000; program = $1; sub(/^"/, "", program); sub(/ .*/, "", program); sub(/.*\//, "", program)
			if (program == "sh") program = "tail" }
		NR == 2 { ours = ms; next }
		{ theirs = theirs sprintf("%s%s %.0f", (NR > 3 ? ", " : ""), program, ms); if (!best || ms < best) best = ms }
		END { printf "| %s | %.0f | %s | %.2f |\n", name, ours, theirs, ours / best }' "$work/times.csv"
}

# No literal is wanted that this script holds: it may lie in the tree.
none=$(printf 'qzx%s' jwvkqy)
echo "| work | toolreg, ms | others, ms | ratio |"
echo "|---|---:|---|---:|"
head -n 1000 "$work/big.txt" >"$work/small.txt"
compare "a file of 1,000 lines" "$work" "read_file file_path=small.txt" "cat $work/small.txt"
compare "first 2,000 lines of 1 GiB" "$work" "read_file file_path=big.txt" \
	"head -n 2000 $work/big.txt"
compare "2,000 lines at line 8,000,000" "$work" "read_file file_path=big.txt offset=8000000" \
	"sed -n 8000000,8001999p $work/big.txt" "sh -c 'tail -n +8000000 $work/big.txt | head -n 2000'" "cat $work/big.txt"
compare "rare literal" "$tree" "grep pattern=LockOSThread case_sensitive=true respect_ignore_files=false" \
	"rg -n --hidden --no-ignore LockOSThread $tree"
compare "common word, first 200 lines (rg: all)" "$tree" "grep pattern=return case_sensitive=true respect_ignore_files=false" \
	"rg -n --hidden --no-ignore return $tree"
compare "common word, first 10,000 lines (rg: all)" "$tree" "grep pattern=return case_sensitive=true respect_ignore_files=false limit=10000" \
	"rg -n --hidden --no-ignore return $tree"
compare "regex" "$tree" "grep pattern=func.New\\\\w+Reader respect_ignore_files=false" \
	"rg -n -i --hidden --no-ignore func.New\\\\w+Reader $tree"
compare "no match" "$tree" "grep pattern=$none respect_ignore_files=false" \
	"rg -n -i --hidden --no-ignore $none $tree"
compare "glob **/*.go" "$tree" "glob pattern=**/*.go respect_ignore_files=false" \
	"rg --files --hidden --no-ignore -g **/*.go $tree" "rg --files --hidden --no-ignore --sortr modified -g **/*.go $tree" \
	${fd:+"$fd -HI -e go . $tree"}
compare "all files except ignored ones" "$tree" "glob pattern=** limit=10000" \
	"rg --files --hidden $tree" ${fd:+"$fd -H -t f . $tree"}
