#!/bin/sh
# Puts the native parts of footnote into .cache/native/<os>-<arch>:
# libonnxruntime from its Python wheel, libtokenizers.a built from the Go
# module's own sources. Each is made aside and renamed into place, so that an
# interrupted run leaves nothing half made; what is there and right is kept.
#
# usage: deploy/native/build.sh <os>-<arch>     (from anywhere in the source tree)
set -eu

platform=${1:?usage: build.sh os-arch}
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=$root/.cache/native/$platform
version=1.32.0

say() { echo "native: $*"; }
die() { echo "native: $*" >&2; exit 1; }
need() { command -v "$1" >/dev/null 2>&1 || die "$1 is missing: $2"; }

pin=$(grep "^$platform	" "$here/onnxruntime.pins") ||
	die "no ONNX runtime is pinned for $platform; deploy/native/onnxruntime.pins has: $(grep -v '^#' "$here/onnxruntime.pins" | cut -f1 | tr '\n' ' ')"
field() { printf '%s\n' "$pin" | cut -f"$1"; }

python3 -c 'import hashlib, zipfile' 2>/dev/null ||
	die "python3 is missing or does not run: install it with pip (Debian: python3 python3-pip; macOS: xcode-select --install)"
sum() { python3 -c 'import hashlib,sys; print(hashlib.sha256(open(sys.argv[1],"rb").read()).hexdigest())' "$1"; }

mkdir -p "$out"
work=$(mktemp -d "$root/.cache/native/.building.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP

runtime() {
	member=$(field 4)
	lib=$out/$(basename "$member")
	if [ -f "$lib" ] && [ "$(sum "$lib")" = "$(field 5)" ]; then
		say "ONNX runtime $version is there"
		return
	fi
	python3 -m pip --version >/dev/null 2>&1 || die "pip is missing: install it for python3 (Debian: python3-pip)"
	say "fetching ONNX runtime $version for $platform (about 25 MB)"
	python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
		--platform "$(field 2)" --python-version 3.12 --implementation cp --abi cp312 \
		--dest "$work/wheel" "onnxruntime==$version" ||
		die "pip could not fetch onnxruntime $version; is the package index reachable?"
	wheel=$(echo "$work"/wheel/*.whl)
	found=$(sum "$wheel")
	[ "$found" = "$(field 3)" ] || die "$(basename "$wheel") has sha256 $found, pinned is $(field 3)"
	python3 -c 'import sys,zipfile; open(sys.argv[3],"wb").write(zipfile.ZipFile(sys.argv[1]).read(sys.argv[2]))' \
		"$wheel" "$member" "$work/lib"
	found=$(sum "$work/lib")
	[ "$found" = "$(field 5)" ] || die "$member has sha256 $found, pinned is $(field 5)"
	chmod 755 "$work/lib"
	mv -f "$work/lib" "$lib"
	say "wrote ${lib#"$root"/}"
}

# The recipe names all that libtokenizers.a is made of.
recipe() {
	go list -m -f '{{.Path}} {{.Version}}' github.com/daulet/tokenizers
	sum "$here/tokenizers-Cargo.lock"
}

tokenizers() {
	need go "install Go (see go.mod for the version)"
	lib=$out/libtokenizers.a
	made=$(cd "$root" && recipe)
	if [ -f "$lib" ] && [ "$(cat "$lib.recipe" 2>/dev/null)" = "$made" ]; then
		say "libtokenizers.a is there"
		return
	fi
	need cargo "install Rust 1.78 or newer, with cargo"
	need cc "install a C compiler (Debian: build-essential; macOS: xcode-select --install)"
	need c++ "install a C++ compiler (Debian: build-essential; macOS: xcode-select --install)"
	say "fetching the sources of $(echo "$made" | head -n 1)"
	(cd "$root" && go mod download github.com/daulet/tokenizers) || die "go could not fetch github.com/daulet/tokenizers"
	src=$(cd "$root" && go list -m -f '{{.Dir}}' github.com/daulet/tokenizers)
	mkdir "$work/src"
	cp -R "$src/src" "$work/src/src"
	chmod -R u+w "$work/src"
	# Its manifest takes tiktoken-rs from a git branch: the registry has what is
	# needed. The benchmark and what only it needs are left out.
	sed -e 's|^tiktoken-rs = .*|tiktoken-rs = "=0.9.1"|' -e '/^\[dev-dependencies\]/,$d' \
		"$src/Cargo.toml" >"$work/src/Cargo.toml"
	cp "$here/tokenizers-Cargo.lock" "$work/src/Cargo.lock"
	say "building libtokenizers.a (a minute or two)"
	target=
	[ "$platform" = "$(go env GOHOSTOS)-$(go env GOHOSTARCH)" ] || target=$(triple)
	(cd "$work/src" && CARGO_TARGET_DIR=$work/target cargo build --quiet --release --lib --locked ${target:+--target "$target"}) ||
		die "cargo could not build libtokenizers.a; its message is above${target:+ (building for another platform needs the Rust target $target and its C compilers)}"
	mv -f "$work/target/${target:+$target/}release/libtokenizers.a" "$lib"
	echo "$made" >"$work/recipe"
	mv -f "$work/recipe" "$lib.recipe"
	say "wrote ${lib#"$root"/}"
}

triple() {
	case $platform in
	linux-amd64) echo x86_64-unknown-linux-gnu ;;
	linux-arm64) echo aarch64-unknown-linux-gnu ;;
	darwin-arm64) echo aarch64-apple-darwin ;;
	esac
}

runtime
tokenizers
