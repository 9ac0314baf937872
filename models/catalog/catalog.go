// Package catalog knows the models: one Card each, with files and checksums,
// prefixes, pooling, window, dimensions, precision, languages, licence and the
// gate cuts measured for it.
//
// Its one idea: what is true of a model is data here and nowhere else, so that
// another model is another card. A model's files lie in one directory (on disk
// or inside the program) and are used only if size and SHA-256 agree with the
// card.
//
// It runs no model; models/onnx does.
package catalog

import (
	"fmt"
	"slices"
	"strings"

	"footnote/models"
)

// Kind says what a model does.
type Kind string

const (
	Embedder Kind = "embedder"
	Reranker Kind = "reranker"
)

// Names of the files that every model has.
const (
	Weights   = "model.onnx"
	Tokenizer = "tokenizer.json"
)

// File is one file of a model.
type File struct {
	Name   string // path inside the model's directory, slashes
	Bytes  int64
	SHA256 string // lower-case hex
}

// Pooling makes one vector out of one per token.
type Pooling string

// Mean averages over the attention mask, then L2-normalises.
const Mean Pooling = "mean"

// Card is what is known of one model. Fields of the other kind are zero.
type Card struct {
	Name      string
	Kind      Kind
	Base      string // the model it was made from
	Licence   string // SPDX
	Files     []File
	Precision string   // of the shipped weights: q4, int8, fp32
	Window    int      // tokens, special tokens included
	Languages []string // ISO 639-1; of a reranker: the only ones it may be used for
	Inputs    []string // of the graph, in order: some of input_ids, attention_mask, token_type_ids
	Output    string   // of the graph: one vector per token, or one logit

	// Embedders.

	Dimensions    int
	Pooling       Pooling
	QueryPrefix   string
	PassagePrefix string
	// MinLate is the gate: MaxSim of question and passage (models.States) under
	// which a passage is not evidence; 0: MaxDistance decides. Scales differ
	// between models, so that a cut of another model is meaningless here.
	MinLate float64
	// MaxDistance is the gate where there are no token states: cosine distance
	// between question and passage over which a passage is not evidence.
	MaxDistance float64
	// Unrelated is the cosine similarity of texts that have nothing in common.
	Unrelated float64

	// Rerankers.

	QueryWindow int // tokens of the question that are used; the rest of Window is the passage's
	Overlap     int // tokens that neighbouring windows of a long passage share at least
	// MinProbability is the gate: sigmoid of the logit under which a passage is
	// not evidence. Uncalibrated between models.
	MinProbability float64

	// MinSupport is what the best sentence of an answer must reach, 0 to 1,
	// where this model judges sentences. bot/generate says what support is.
	MinSupport float64
}

// Covers reports whether the card names the language, an ISO 639-1 code.
func (c Card) Covers(language string) bool {
	return slices.Contains(c.Languages, strings.ToLower(language))
}

// Info is what an embedder with this card says of itself.
func (c Card) Info() models.EmbedderInfo {
	weights, _ := c.File(Weights)
	return models.EmbedderInfo{
		Name: c.Name, Precision: c.Precision, SHA256: weights.SHA256,
		Dimensions: c.Dimensions, Window: c.Window, States: models.StatesEncoding,
	}
}

// File returns the card's entry for a file name.
func (c Card) File(name string) (File, bool) {
	i := slices.IndexFunc(c.Files, func(f File) bool { return f.Name == name })
	if i < 0 {
		return File{}, false
	}
	return c.Files[i], true
}

// Lookup returns the card with this name.
func Lookup(name string) (Card, error) {
	var names []string
	for _, c := range Cards() {
		if c.Name == name {
			return c, nil
		}
		names = append(names, c.Name)
	}
	return Card{}, fmt.Errorf("no model named %q in the catalog; it has: %s", name, strings.Join(names, ", "))
}
