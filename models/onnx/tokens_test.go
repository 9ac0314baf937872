package onnx

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"footnote/models/catalog"
)

func tokenizerFile(t testing.TB, model string) []byte {
	t.Helper()
	_, dir, err := shippedModel(model)
	if err != nil {
		t.Fatal(err)
	}
	data, err := fs.ReadFile(dir, catalog.Tokenizer)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A published tokenizer.json that cuts at 128 tokens and pads to 128.
func TestCase_Q12_BakedInTruncationAndPadding(t *testing.T) {
	plain := tokenizerFile(t, catalog.DefaultReranker)
	var file map[string]json.RawMessage
	if err := json.Unmarshal(plain, &file); err != nil {
		t.Fatal(err)
	}
	file["truncation"] = json.RawMessage(`{"direction":"Right","max_length":128,"strategy":"LongestFirst","stride":0}`)
	file["padding"] = json.RawMessage(`{"strategy":{"Fixed":128},"direction":"Right","pad_to_multiple_of":null,"pad_id":0,"pad_type_id":0,"pad_token":"[PAD]"}`)
	baked, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	a, b := load(t, plain), load(t, baked)
	for _, text := range []string{"short", strings.Repeat("long ", 600)} {
		if diff := cmp.Diff(a.pieces(text), b.pieces(text)); diff != "" {
			t.Errorf("%.10q: the file's truncation or padding is in force:\n%.200s", text, diff)
		}
	}
	if n := len(b.pieces(strings.Repeat("long ", 600))); n != 600 {
		t.Errorf("%d tokens, want 600", n)
	}
}

func TestDamagedTokenizer(t *testing.T) {
	for situation, data := range map[string]string{
		"empty": "", "not JSON": "<html>", "no model": "{}", "null": "null", "a list": "[]",
		"cut off": string(tokenizerFile(t, catalog.DefaultReranker)[:1000]),
	} {
		if tok, err := newTokenizer([]byte(data)); err == nil {
			t.Errorf("%s: no error", situation)
			tok.t.Close()
		}
	}
}

func TestSpecialTokens(t *testing.T) {
	for model, want := range map[string][2][]int64{
		catalog.DefaultEmbedder: {{0}, {2}},
		catalog.DefaultReranker: {{101}, {102}},
	} {
		tok := load(t, tokenizerFile(t, model))
		if diff := cmp.Diff(want, [2][]int64{tok.lead, tok.trail}); diff != "" {
			t.Errorf("%s:\n%s", model, diff)
		}
		// SECURITY: what a document writes is text.
		for _, text := range []string{"a </s> b", "<s>", "a [SEP] b", "[CLS]", "[PAD]<pad>[MASK]"} {
			ids := tok.pieces(text)
			for _, special := range slices.Concat(want[0], want[1]) {
				if slices.Contains(ids, special) {
					t.Errorf("%s: %q became the special token %d", model, text, special)
				}
			}
		}
	}
}

func TestNulDoesNotEndTheText(t *testing.T) {
	for _, model := range []string{catalog.DefaultEmbedder, catalog.DefaultReranker} {
		tok := load(t, tokenizerFile(t, model))
		with, without := tok.pieces("before \x00 after the zero"), tok.pieces("before after the zero")
		if len(with) < len(without) {
			t.Errorf("%s: %d tokens with a NUL, %d without", model, len(with), len(without))
		}
	}
}

func FuzzWithoutCuts(f *testing.F) {
	f.Add([]byte(`{"truncation":{"max_length":128},"padding":null,"model":{}}`))
	f.Add([]byte(`{"Truncation":{},"padding":{}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		out, err := withoutCuts(data)
		if err != nil {
			return
		}
		var left map[string]json.RawMessage
		if err := json.Unmarshal(out, &left); err != nil {
			t.Fatalf("the result is not JSON: %v", err)
		}
		if !isNull(left["truncation"]) || !isNull(left["padding"]) {
			t.Errorf("left in %s", out)
		}
	})
}

func TestWindows(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		room := rapid.IntRange(1, 60).Draw(t, "room")
		overlap := rapid.IntRange(0, room-1).Draw(t, "overlap")
		n := rapid.IntRange(0, 500).Draw(t, "pieces")
		pieces := make([]int64, n)
		for i := range pieces {
			pieces[i] = int64(i)
		}
		ws := windows(pieces, room, overlap)
		if n <= room {
			if len(ws) != 1 || len(ws[0]) != n {
				t.Fatalf("%d pieces in a room of %d make %d windows", n, room, len(ws))
			}
			return
		}
		if fewest := ceil(n-overlap, room-overlap); len(ws) != fewest {
			t.Errorf("%d windows, %d are enough", len(ws), fewest)
		}
		end := int64(0)
		for i, w := range ws {
			if len(w) != room {
				t.Errorf("window %d holds %d of %d", i, len(w), room)
			}
			if i > 0 && end-w[0] < int64(overlap) {
				t.Errorf("window %d begins at %d, the one before ends at %d: overlap under %d", i, w[0], end, overlap)
			}
			end = w[len(w)-1] + 1
		}
		if ws[0][0] != 0 || end != int64(n) {
			t.Errorf("windows reach from %d to %d of %d", ws[0][0], end, n)
		}
	})
}

func ceil(a, b int) int { return (a + b - 1) / b }

// A text of any kind has as many tokens alone as the embedder counts for it.
func TestTokensOfOddTexts(t *testing.T) {
	for _, model := range []string{catalog.DefaultEmbedder, catalog.DefaultReranker} {
		tok := load(t, tokenizerFile(t, model))
		for _, text := range []string{"", " ", "\x00", "\xff", "\u200b", "\U0010FFFF", strings.Repeat("x", 200_000), strings.Repeat("가", 20_000), strings.Repeat("\n", 1000)} {
			ids := tok.pieces(text)
			if len(ids) > len(text)+1 {
				t.Errorf("%s: %d tokens of %d bytes %.10q", model, len(ids), len(text), text)
			}
		}
	}
}

func load(t testing.TB, data []byte) *tokenizer {
	t.Helper()
	tok, err := newTokenizer(bytes.Clone(data))
	if err != nil {
		t.Fatal(fmt.Errorf("loading a tokenizer: %w", err))
	}
	t.Cleanup(func() { tok.t.Close() })
	return tok
}
