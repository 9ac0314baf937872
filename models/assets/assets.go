// Package assets carries the models that ship with footnote inside the
// program, so that the built binary needs no model directory.
//
// Its one idea: a model is a directory of files named after its catalog card;
// embedded or on disk, it is read through the same fs.FS. It verifies nothing
// (models/catalog does) and knows no model by itself. Importing it adds about
// 73 MB to a program.
package assets

import (
	"embed"
	"io/fs"
)

//go:embed */model.onnx */tokenizer.json */README.md
var files embed.FS

// Model returns the files of the shipped model with this catalog name. The
// error wraps fs.ErrNotExist if no such model ships with the program.
func Model(name string) (fs.FS, error) {
	if _, err := fs.Stat(files, name); err != nil {
		return nil, err
	}
	return fs.Sub(files, name)
}
