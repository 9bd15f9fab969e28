#!/bin/sh
# run.sh         runs three replicas, Redis and HAProxy of this machine until it is interrupted,
#                and a collector if otelcol is installed
# run.sh docker  runs them in containers
# PORT (8080) is the port of the proxy; without docker the others are the next ones.
set -eu
cd "$(dirname "$0")"
umask 077
fail() {
	echo "run.sh: $1" >&2
	exit 1
}

case "${1:-}" in
'') programs="redis-server toolreg haproxy" ;;
docker) programs=docker ;;
*) fail "unknown argument: $1; it is none, or docker" ;;
esac
export PORT="${PORT:-8080}"
case $PORT in
0* | *[!0-9]* | ??????*) fail "PORT must be a number from 1 to 65530: $PORT" ;;
esac
[ "$PORT" -le 65530 ] || fail "PORT must be a number from 1 to 65530: $PORT"
for program in $programs; do
	command -v "$program" >/dev/null || fail "$program is not in PATH"
done

mkdir -p "${DATA:=$PWD/data}"
[ -s "$DATA/key" ] || od -An -N32 -tx1 /dev/urandom | tr -d ' \n' >"$DATA/key"
[ -s "$DATA/token" ] || od -An -N32 -tx1 /dev/urandom | tr -d ' \n' >"$DATA/token"
echo "alice $(cat "$DATA/token")" >"$DATA/tokens"
export STATE_KEY="$(cat "$DATA/key")"
address="http://127.0.0.1:$PORT/mcp, with the header Authorization: Bearer \$(cat $DATA/token)"
if [ "${1:-}" = docker ]; then
	echo "$address"
	RUN_AS="$(id -u):$(id -g)" exec docker compose up --build
fi

rm -f "$DATA/haproxy.pid"
first=
last=
parts=
# start NAME COMMAND...: runs a part, which logs to NAME.log.
start() {
	name=$1
	shift
	"$@" >"$DATA/$name.log" 2>&1 &
	last="$last $!" parts="$parts $name:$!"
}
# ended fails because a part has ended.
ended() {
	tail -n 5 "$DATA/$1.log" >&2
	fail "$1 has ended; that is the end of $DATA/$1.log"
}
# runs PID: reports whether a process runs.
runs() {
	case $(ps -o stat= -p "$1") in
	Z*l*) ;; # other threads of it have not ended
	'' | Z*) return 1 ;;
	esac
}
# check fails if a part has ended.
check() {
	for part in $parts; do
		runs "${part#*:}" || ended "${part%:*}"
	done
}
# stop ends the proxy and the replicas, and then what they need until they have ended.
stop() {
	trap - EXIT INT TERM
	proxy=$(cat "$DATA/haproxy.pid" 2>/dev/null || :)
	kill $last $proxy 2>/dev/null || :
	wait $last || :
	while [ "$proxy" ] && runs $proxy; do sleep 0.1; done
	kill $first 2>/dev/null || :
	wait
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

store=$((PORT + 4))
start redis-server redis-server --port $store --bind 127.0.0.1 --save '' --appendonly no --maxmemory 256mb --maxmemory-policy noeviction --dir "$DATA"
export REDIS_URL="redis://127.0.0.1:$store"
if command -v otelcol >/dev/null; then
	export COLLECTOR="127.0.0.1:$((PORT + 5))"
	start otelcol otelcol --config=collector.yaml
	export OTEL_EXPORTER_OTLP_ENDPOINT="http://$COLLECTOR"
fi
first=$last last=
export PROXY="127.0.0.1:$PORT" A="127.0.0.1:$((PORT + 1))" B="127.0.0.1:$((PORT + 2))" C="127.0.0.1:$((PORT + 3))"
for i in 1 2 3; do
	mkdir -p "$DATA/state-$i"
	XDG_STATE_HOME="$DATA/state-$i" start toolreg-$i toolreg --settings settings.yaml serve --preset mcp --http "127.0.0.1:$((PORT + i))" --token-file "$DATA/tokens"
done
# The daemon is in the background when it has its port.
haproxy -D -p "$DATA/haproxy.pid" -f haproxy.cfg >"$DATA/haproxy.log" 2>&1 || ended haproxy
parts="$parts haproxy:$(cat "$DATA/haproxy.pid")"
until [ "$(cat "$DATA"/toolreg-[123].log | grep -c 'listening on http')" = 3 ]; do
	check
	sleep 0.1
done
check
echo "$address"
wait
