package eval

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"footnote/acl"
	"footnote/retrieval"
)

func TestLoad(t *testing.T) {
	t.Parallel()
	needle := `{"id":"n","text":"q","style":"ticket","answerable":true,"doc":"a/b.md","from_byte":3,"to_byte":9}`
	for name, c := range map[string]struct {
		lines string
		want  []Question
		err   string
	}{
		"needle":                              {needle, []Question{{ID: "n", Text: "q", Style: "ticket", Gold: []Span{{"a/b.md", 3, 9}}}}, ""},
		"evidence":                            {`{"id":"e","text":"q","answerable":true,"doc":"d","evidence":[{"from_byte":1,"to_byte":2},{"from_byte":5,"to_byte":6}]}`, []Question{{ID: "e", Text: "q", Gold: []Span{{"d", 1, 2}, {"d", 5, 6}}}}, ""},
		"conversation":                        {`{"id":"1","text":"q","answerable":true,"turn":1,"gold":[{"doc":"g","from_byte":0,"to_byte":4}]}` + "\n" + `{"id":"2","text":"and?","answerable":true,"turn":2,"gold":[{"doc":"g"}]}`, []Question{{ID: "1", Text: "q", Gold: []Span{{"g", 0, 4}}, Half: true}}, ""},
		"unanswerable questions are left out": {needle + "\n" + `{"id":"u","text":"q","answerable":false}`, []Question{{ID: "n", Text: "q", Style: "ticket", Gold: []Span{{"a/b.md", 3, 9}}}}, ""},
		"nothing to ask":                      {`{"id":"u","text":"q","answerable":false}`, nil, "no answerable question"},
		"broken line":                         {needle + "\n{", nil, "line 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "docs"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "queries.jsonl"), []byte(c.lines), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := Load(dir)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("Load = %v, want an error with %q", err, c.err)
				}
				return
			}
			if d := cmp.Diff(c.want, s.Questions); err != nil || d != "" {
				t.Fatalf("Load: %v %s", err, d)
			}
		})
	}
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("a folder without docs was taken for a set")
	}
}

func TestRight(t *testing.T) {
	t.Parallel()
	whole := Question{Gold: []Span{{"d.md", 10, 20}}}
	half := Question{Gold: []Span{{"d.md", 10, 30}}, Half: true}
	for name, c := range map[string]struct {
		q        Question
		path     string
		from, to int
		want     bool
	}{
		"holds the span":             {whole, "/x/d.md", 10, 20, true},
		"cuts its last byte":         {whole, "/x/d.md", 0, 19, false},
		"another document":           {whole, "/x/other.md", 0, 99, false},
		"a name that only ends so":   {whole, "/x/bad.md", 0, 99, false},
		"half of a passage":          {half, "/x/d.md", 20, 90, true},
		"less than half of it":       {half, "/x/d.md", 21, 90, false},
		"a small chunk well inside":  {half, "/x/d.md", 12, 16, true},
		"a chunk of another passage": {half, "/x/d.md", 40, 50, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := retrieval.Passage{Path: c.path, Chunk: retrieval.Chunk{Span: retrieval.Span{SourceFrom: c.from, SourceTo: c.to}}}
			if got := right(c.q, p); got != c.want {
				t.Errorf("right = %t, want %t", got, c.want)
			}
		})
	}
}

// order is a searcher with one fixed result, in which chunk 3 holds the
// answer; shelf is a reader that has any chunk.
type (
	order struct{}
	shelf struct{ retrieval.Reader }
)

func id(n int) retrieval.ChunkID { return retrieval.ChunkID{Document: "d", Ordinal: n} }

func passage(n int) retrieval.Passage {
	return retrieval.Passage{Path: "/x/d.md", Chunk: retrieval.Chunk{ID: id(n), Span: retrieval.Span{SourceFrom: 10 * n, SourceTo: 10 * (n + 1)}}}
}

func (order) Search(context.Context, retrieval.Reader, acl.Grant, string) (retrieval.Results, error) {
	return retrieval.Results{
		Lexical: []retrieval.LexicalHit{{ID: id(3)}, {ID: id(0)}},
		Dense:   []retrieval.DenseHit{{ID: id(0)}, {ID: id(1)}, {ID: id(2)}, {ID: id(4)}, {ID: id(3)}},
		Hits: []retrieval.Hit{
			{Rank: 1, FusedRank: 2, Passage: passage(3)},
			{Rank: 2, FusedRank: 1, Passage: passage(0)},
		},
	}, nil
}

func (shelf) Passages(_ context.Context, _ acl.Grant, ids []retrieval.ChunkID) (out []retrieval.Passage, err error) {
	for _, i := range ids {
		out = append(out, passage(i.Ordinal))
	}
	return out, nil
}

func TestRetrieval(t *testing.T) {
	t.Parallel()
	set := Set{Name: "s", Questions: []Question{
		{ID: "found", Gold: []Span{{"d.md", 30, 40}}},
		{ID: "not found", Gold: []Span{{"e.md", 0, 1}}},
	}}
	got, err := Retrieval(context.Background(), order{}, shelf{}, acl.Grant{}, set)
	want := []Row{
		{Set: "s", Method: "bm25", Questions: 2, R1: .5, R4: .5, R20: .5, MRR: .5},
		{Set: "s", Method: "dense", Questions: 2, R20: .5, MRR: .1},
		{Set: "s", Method: "hybrid", Questions: 2, R4: .5, R20: .5, MRR: .25},
		{Set: "s", Method: "hybrid+rerank", Questions: 2, R1: .5, R4: .5, R20: .5, MRR: .5},
	}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("Retrieval: %v %s", err, d)
	}
}
