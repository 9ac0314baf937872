package onnx

import (
	"encoding/json"
	"errors"
	"fmt"
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
	// SECURITY: "</s>" or "[SEP]" written in a document is split as ordinary
	// text; it does not become the special token.
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
	var baked struct{ Truncation, Padding json.RawMessage }
	if err := json.Unmarshal(data, &baked); err != nil {
		return nil, fmt.Errorf("not a tokenizer.json: %w", err)
	}
	if isNull(baked.Truncation) && isNull(baked.Padding) {
		return data, nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("not a tokenizer.json: %w", err)
	}
	delete(all, "truncation")
	delete(all, "padding")
	return json.Marshal(all)
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
	// The library takes C strings: a NUL would end the text. U+FFFD is what
	// invalid UTF-8 becomes as well.
	text = strings.ReplaceAll(text, "\x00", "\uFFFD")
	ids := t.t.EncodeWithOptions(text, false).IDs
	out := make([]int64, len(ids))
	for i, id := range ids {
		out[i] = int64(id)
	}
	return out
}

func (t *tokenizer) specials() int { return len(t.lead) + len(t.trail) }
