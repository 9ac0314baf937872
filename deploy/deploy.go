// Package deploy holds what is shipped beside the program and also inside it:
// the demo documents, so that the sandbox needs nothing but the binary, and the
// description of the API that the program serves.
package deploy

import "embed"

// Demo holds the directory demo: the documents of a made-up company, with their
// access files.
//
//go:embed all:demo
var Demo embed.FS

// OpenAPI is the API for documents of other systems.
//
//go:embed openapi.yaml
var OpenAPI []byte
