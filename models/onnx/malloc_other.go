//go:build !linux

package onnx

func boundHeap() {}

func trimHeap() {}
