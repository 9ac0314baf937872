package catalog

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
)

// The name becomes a directory.
var cardName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

var knownInputs = []string{"input_ids", "attention_mask", "token_type_ids"}

// Validate reports everything that is wrong with the card.
func (c Card) Validate() error {
	var faults []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Errorf(format, args...))
		}
	}
	check(cardName.MatchString(c.Name), "name %q: wanted are letters, digits, ., _ and -, at most 100", c.Name)
	check(c.Licence != "", "licence is empty: its SPDX name, or what the model's publisher calls it")
	check(c.Precision != "", "precision is empty: fp32, int8, q4, …")
	check(c.Window >= 8, "window is %d: at least 8 tokens", c.Window)
	check(len(c.Languages) > 0, "languages is empty: ISO 639-1 codes")
	check(c.Output != "", "output is empty: the name of the graph's output")
	check(slices.Contains(c.Inputs, knownInputs[0]), "inputs has no %s", knownInputs[0])
	for _, in := range c.Inputs {
		check(slices.Contains(knownInputs, in), "input %q: known are %s", in, knownInputs)
	}
	faults = append(faults, c.validateFiles(), c.validateKind())
	return errors.Join(faults...)
}

func (c Card) validateFiles() error {
	var faults []error
	for _, name := range []string{Weights, Tokenizer} {
		if _, ok := c.File(name); !ok {
			faults = append(faults, fmt.Errorf("files names no %s", name))
		}
	}
	for _, f := range c.Files {
		if sum, err := hex.DecodeString(f.SHA256); err != nil || len(sum) != 32 {
			faults = append(faults, fmt.Errorf("file %s: sha256 %q is not 64 hex digits", f.Name, f.SHA256))
		}
		if f.Bytes < 1 {
			faults = append(faults, fmt.Errorf("file %s: bytes is %d: at least 1", f.Name, f.Bytes))
		}
		// SECURITY: a name may not lead out of the model's directory.
		if !fs.ValidPath(f.Name) || f.Name == "." {
			faults = append(faults, fmt.Errorf("file %q: not a path inside the model's directory", f.Name))
		}
	}
	return errors.Join(faults...)
}

func (c Card) validateKind() error {
	switch c.Kind {
	case Embedder:
		return c.validateEmbedder()
	case Reranker:
		return c.validateReranker()
	}
	return fmt.Errorf("kind %q: known are %s and %s", c.Kind, Embedder, Reranker)
}

func (c Card) validateEmbedder() error {
	var faults []error
	if c.Dimensions < 1 {
		faults = append(faults, fmt.Errorf("dimensions is %d: at least 1", c.Dimensions))
	}
	if c.Pooling != Mean {
		faults = append(faults, fmt.Errorf("pooling %q: known is %s", c.Pooling, Mean))
	}
	if !(c.MaxDistance > 0 && c.MaxDistance < 2) {
		faults = append(faults, fmt.Errorf("max_distance is %v: between 0 and 2, as measured for this model", c.MaxDistance))
	}
	if !(c.MinLate >= 0 && c.MinLate <= 1) {
		faults = append(faults, fmt.Errorf("min_late is %v: between 0 and 1; 0 leaves it to max_distance", c.MinLate))
	}
	return errors.Join(faults...)
}

func (c Card) validateReranker() error {
	var faults []error
	if c.QueryWindow < 1 || c.QueryWindow >= c.Window {
		faults = append(faults, fmt.Errorf("query_window is %d: between 1 and the window %d", c.QueryWindow, c.Window))
	}
	if c.Overlap < 0 || c.Overlap >= c.Window-c.QueryWindow {
		faults = append(faults, fmt.Errorf("overlap is %d: between 0 and what the question leaves, %d", c.Overlap, c.Window-c.QueryWindow))
	}
	if !(c.MinProbability > 0 && c.MinProbability < 1) {
		faults = append(faults, fmt.Errorf("min_probability is %v: between 0 and 1, as measured for this model", c.MinProbability))
	}
	return errors.Join(faults...)
}
