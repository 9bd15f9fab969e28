#!/bin/sh
# Runs the tool named by the first argument; params are JSON on stdin.
set -eu
case $1 in
word_count)
	# One string param, read without a JSON parser to keep the sample free of one.
	file=$(sed -n 's/.*"file"[[:space:]]*:[[:space:]]*"\([^"]*\)".*/\1/p')
	case $file in
	"" | /* | *..*)
		echo "file must be a path inside the project" >&2
		exit 1
		;;
	esac
	wc -w <"$file" | tr -d ' '
	;;
today)
	date +%F
	;;
*)
	echo "no tool named $1" >&2
	exit 1
	;;
esac
