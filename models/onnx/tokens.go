package onnx

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/daulet/tokenizers"
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
//
// SECURITY: a special token that a document writes out ("</s>") is left out. A
// vocabulary that lists it as a piece would otherwise take it for the real one.
func (t *tokenizer) pieces(text string) []int64 {
	// The library takes C strings: a NUL would end the text. U+FFFD is what
	// invalid UTF-8 becomes as well.
	text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	ids := t.t.EncodeWithOptions(text, false).IDs
	out := make([]int64, 0, len(ids))
	for _, id := range ids {
		if id := int64(id); !slices.Contains(t.lead, id) && !slices.Contains(t.trail, id) {
			out = append(out, id)
		}
	}
	return out
}

func (t *tokenizer) specials() int { return len(t.lead) + len(t.trail) }
