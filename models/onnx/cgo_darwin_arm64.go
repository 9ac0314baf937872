package onnx

// Where `make native` puts libtokenizers.a.

// #cgo LDFLAGS: -L${SRCDIR}/../../.cache/native/darwin-arm64
import "C"
