package onnx

// librarySums are the SHA-256 of libonnxruntime for each platform, as in
// deploy/native/onnxruntime.pins.
var librarySums = map[string]string{
	"linux-amd64":  "6c1585d1bbf45b0712ea4a21b705c5fcb4ba04ff2e30f1fbf81a49faf658638f",
	"linux-arm64":  "49852228a93995158b2a813d4df487d47a1b76b0eaa894507ef49e91b6d7954a",
	"darwin-arm64": "fa585fabbea65b823b9a8f7e27d46aee3989d1be7e36b528203d3a1fd613aae7",
}
