// Package models defines what footnote asks of its models: an Embedder that
// turns text into vectors and a Reranker that judges question and passage
// together. models/onnx runs the shipped ones; deterministic fakes and the
// conformance suite are in models/modelstest; what is known of each model is in
// models/catalog.
//
// Its one idea: prefixes, pooling, windows and precision belong to the model
// and stay behind these interfaces. Callers pass plain text; nothing is cut
// silently.
package models

import "context"

// EmbedderInfo names an embedder so exactly that two vectors are comparable
// if and only if their infos are equal. A generation records it.
type EmbedderInfo struct {
	Name       string `json:"name"`       // catalog name
	Precision  string `json:"precision"`  // form of the weights in use: q4, fp32, int8
	SHA256     string `json:"sha256"`     // of the weights file
	Dimensions int    `json:"dimensions"` // length of each vector
	Window     int    `json:"window"`     // tokens, special tokens included
	States     string `json:"states"`     // StatesEncoding, "" if it gives no token states
}

// Embedding is one embedded text.
type Embedding struct {
	Vector    []float32 // L2 norm 1 within 1e-3; owned by the caller
	Tokens    int       // of the whole text with prefix and special tokens, before any cut
	Truncated bool      // Tokens exceeded the window: the tail is not in the vector

	// The token states of the same forward pass, where Info names an encoding:
	// those of the pieces inside the window that hold a letter or digit, or of
	// all pieces if none does. A question has them exactly, a passage encoded.
	// Owned by the caller.
	States *States
	Coded  []byte // see EncodeStates
}

// Embedder turns text into vectors. It is safe for concurrent use. The same
// text gives the same vector whatever else is embedded beside it.
type Embedder interface {
	// Info is constant for the life of the embedder.
	Info() EmbedderInfo
	// EmbedQuery embeds one question.
	EmbedQuery(ctx context.Context, text string) (Embedding, error)
	// EmbedPassages embeds texts, one result each in order. An error means
	// that none is returned. ctx is honoured between inferences.
	EmbedPassages(ctx context.Context, texts []string) ([]Embedding, error)
	// CountTokens counts text alone as the model's own tokenizer splits it,
	// without prefix and special tokens.
	CountTokens(text string) int
}

// Reranker judges how well a passage answers a question. It is safe for
// concurrent use.
type Reranker interface {
	// Name is the catalog name.
	Name() string
	// Covers reports whether the model may be used for text in this language,
	// an ISO 639-1 code.
	Covers(language string) bool
	// Rerank returns a relevance in (0,1) for each passage, in order: the
	// sigmoid of the model's logit, uncalibrated. A passage over the window
	// is scored in overlapping windows and the maximum counts. ctx is
	// honoured between inferences.
	Rerank(ctx context.Context, query string, passages []string) ([]float64, error)
}
