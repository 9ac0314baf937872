package onnx

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/daulet/tokenizers"

	"footnote/models"
)

// tokenizer splits text as one model does. It is safe for concurrent use.
type tokenizer struct {
	t *tokenizers.Tokenizer
	// The special tokens around one text: <s> … </s>, [CLS] … [SEP].
	lead, trail []int64
}

func newTokenizer(data []byte) (*tokenizer, error) {
	data, err := withoutCuts(data)
	if err != nil {
		return nil, err
	}
	// SECURITY: "[SEP]" written in a document is split as ordinary text; see
	// pieces too.
	t, err := tokenizers.FromBytes(data, tokenizers.WithEncodeSpecialTokens())
	if err != nil {
		return nil, err
	}
	tok := &tokenizer{t: t}
	if err := tok.learnSpecials(); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return tok, nil
}

// withoutCuts switches off the truncation and padding that the file asks for:
// many published files bake in 128 tokens and a fixed length.
func withoutCuts(data []byte) ([]byte, error) {
	var file map[string]json.RawMessage
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("not a tokenizer.json: %w", err)
	}
	if isNull(file["truncation"]) && isNull(file["padding"]) {
		return data, nil
	}
	delete(file, "truncation")
	delete(file, "padding")
	return json.Marshal(file)
}

func isNull(m json.RawMessage) bool { return len(m) == 0 || string(m) == "null" }

// learnSpecials finds the special tokens by encoding nothing but them.
func (t *tokenizer) learnSpecials() error {
	e := t.t.EncodeWithOptions("a", true, tokenizers.WithReturnSpecialTokensMask())
	for i, special := range e.SpecialTokensMask {
		switch id := int64(e.IDs[i]); {
		case special == 0:
			t.trail = nil
		case i == len(t.lead):
			t.lead = append(t.lead, id)
		default:
			t.trail = append(t.trail, id)
		}
	}
	if len(t.lead)+len(t.trail) >= len(e.IDs) {
		return errors.New("the tokenizer makes no token of a letter")
	}
	return nil
}

// pieces splits text without special tokens, however long it is.
func (t *tokenizer) pieces(text string) []int64 {
	ids, _ := t.split(readable(text))
	return ids
}

// placed is pieces of a readable text with where each lies in it, in bytes.
func (t *tokenizer) placed(text string) ([]int64, []models.Place) {
	return t.split(text, tokenizers.WithReturnOffsets())
}

// readable is the text as the library reads it: it takes C strings, so that a
// NUL would end the text, and invalid UTF-8 becomes U+FFFD.
func readable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// split makes the pieces of a readable text, and their places if they are
// asked for.
//
// SECURITY: a special token that a document writes out ("</s>") is left out. A
// vocabulary that lists it as a piece would otherwise take it for the real one.
func (t *tokenizer) split(text string, options ...tokenizers.EncodeOption) (ids []int64, places []models.Place) {
	e := t.t.EncodeWithOptions(text, false, options...)
	ids = make([]int64, 0, len(e.IDs))
	for i, id := range e.IDs {
		id := int64(id)
		if slices.Contains(t.lead, id) || slices.Contains(t.trail, id) {
			continue
		}
		ids = append(ids, id)
		if e.Offsets != nil {
			places = append(places, models.Place{From: int(e.Offsets[i][0]), To: int(e.Offsets[i][1])})
		}
	}
	return ids, places
}

func (t *tokenizer) specials() int { return len(t.lead) + len(t.trail) }
