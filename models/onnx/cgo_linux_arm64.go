package onnx

// Where `make native` puts libtokenizers.a.

// #cgo LDFLAGS: -L${SRCDIR}/../../.cache/native/linux-arm64
import "C"
