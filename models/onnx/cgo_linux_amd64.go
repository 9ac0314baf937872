package onnx

// Where `make native` puts libtokenizers.a.

// #cgo LDFLAGS: -L${SRCDIR}/../../.cache/native/linux-amd64
import "C"
