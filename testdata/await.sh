#!/bin/sh
# await.sh FILE [TEXT]: waits until FILE has content, or holds TEXT, for three minutes at most.
i=0
until grep -q "${2:-.}" "$1" 2>/dev/null; do
	i=$((i + 1))
	[ $i -gt 3600 ] && exit 1
	sleep 0.05
done
