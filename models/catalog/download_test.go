package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// small is a valid card of files with these contents.
func small(t testing.TB, files map[string]string) Card {
	t.Helper()
	c := card(t, DefaultReranker)
	c.Name, c.Files = "small", nil
	for name, content := range files {
		c.Files = append(c.Files, File{name, int64(len(content)), sum(content)})
	}
	slices.SortFunc(c.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return c
}

func sum(content string) string {
	s := sha256.Sum256([]byte(content))
	return hex.EncodeToString(s[:])
}

// hub serves files under /owner/model/resolve/rev and keeps each request as
// "NAME RANGE".
type hub struct {
	files    map[string]string
	noRanges bool
	breakAt  int // of the next file: the connection ends after so many bytes

	mu       sync.Mutex
	requests []string
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, ok := strings.CutPrefix(r.URL.Path, "/owner/model/resolve/rev/")
	content, found := h.files[name]
	h.mu.Lock()
	h.requests = append(h.requests, strings.TrimSpace(name+" "+r.Header.Get("Range")))
	breakAt := h.breakAt
	h.breakAt = 0
	h.mu.Unlock()
	switch {
	case !ok || !found:
		http.NotFound(w, r)
		return
	case breakAt > 0:
		w.Header().Set("Content-Length", "1000000")
		w.Write([]byte(content[:breakAt]))
		panic(http.ErrAbortHandler)
	case h.noRanges:
		w.Write([]byte(content))
		return
	}
	http.ServeContent(w, r, name, time.Time{}, strings.NewReader(content))
}

func (h *hub) start(t *testing.T) (base string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL + "/owner/model/resolve/rev"
}

func TestDownload(t *testing.T) {
	t.Parallel()
	weights := strings.Repeat("weights ", 100_000)
	files := map[string]string{Weights: weights, Tokenizer: "{}", "onnx/extra.bin": "extra"}
	for situation, tc := range map[string]struct {
		before   map[string]string // in the directory
		noRanges bool
		hub      map[string]string // instead of files
		requests []string
		want     string // of the error
	}{
		"empty directory":                         {requests: []string{Weights, "onnx/extra.bin", Tokenizer}},
		"all there":                               {before: files},
		"one there":                               {before: map[string]string{Weights: weights}, requests: []string{"onnx/extra.bin", Tokenizer}},
		"one damaged":                             {before: map[string]string{Weights: weights, Tokenizer: "[]", "onnx/extra.bin": "extra"}, requests: []string{Tokenizer}},
		"a part from before":                      {before: map[string]string{Weights + ".part": weights[:1000]}, requests: []string{Weights + " bytes=1000-", "onnx/extra.bin", Tokenizer}},
		"a whole part from before":                {before: map[string]string{Weights + ".part": weights}, requests: []string{"onnx/extra.bin", Tokenizer}},
		"a part that is too long":                 {before: map[string]string{Tokenizer + ".part": "{   }"}, requests: []string{Weights, "onnx/extra.bin", Tokenizer}},
		"a part, and a hub without ranges":        {before: map[string]string{Weights + ".part": weights[:1000]}, noRanges: true, requests: []string{Weights + " bytes=1000-", "onnx/extra.bin", Tokenizer}},
		"the hub lacks a file":                    {hub: map[string]string{Weights: weights}, requests: []string{Weights, "onnx/extra.bin"}, want: "onnx/extra.bin: http"},
		"the hub has another version":             {hub: map[string]string{Weights: "Weights " + weights[8:]}, requests: []string{Weights}, want: "expected sha256"},
		"the hub has a longer version":            {hub: map[string]string{Weights: weights + "x"}, requests: []string{Weights}, want: "expected sha256"},
		"the hub has a shorter version":           {hub: map[string]string{Weights: weights[:50]}, requests: []string{Weights}, want: "expected sha256"},
		"a part beyond the hub's shorter version": {before: map[string]string{Weights + ".part": weights[:1000]}, hub: map[string]string{Weights: weights[:50]}, requests: []string{Weights + " bytes=1000-"}, want: "the hub has a shorter file"},
	} {
		t.Run(situation, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			put(t, dir, tc.before)
			h := &hub{files: files, noRanges: tc.noRanges}
			if tc.hub != nil {
				h.files = tc.hub
			}
			err := small(t, files).Download(context.Background(), http.DefaultClient, h.start(t), dir, nil)
			if diff := cmp.Diff(tc.requests, h.requests); diff != "" {
				t.Errorf("requests:\n%s", diff)
			}
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("error %v, want %q in it", err, tc.want)
				}
				if _, err := os.Stat(filepath.Join(dir, Weights)); err == nil && tc.hub[Weights] != weights {
					t.Error("a wrong file has got its name")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := small(t, files).Verify(os.DirFS(dir)); err != nil {
				t.Error(err)
			}
			if parts, _ := filepath.Glob(filepath.Join(dir, "*.part")); len(parts) > 0 {
				t.Errorf("left over: %v", parts)
			}
		})
	}
}

func TestDownloadContinuesAfterABrokenConnection(t *testing.T) {
	t.Parallel()
	files := map[string]string{Weights: strings.Repeat("0123456789", 100_000), Tokenizer: "{}"}
	h := &hub{files: files, breakAt: 700_000}
	base, dir, c := h.start(t), t.TempDir(), small(t, files)
	var most int64
	progress := func(f File, done int64) {
		if f.Name == Weights {
			most = max(most, done)
		}
	}
	err := c.Download(context.Background(), http.DefaultClient, base, dir, progress)
	if err == nil || !strings.Contains(err.Error(), "the next try continues") {
		t.Fatalf("error %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, Weights)); err == nil {
		t.Fatal("half a file has got its name")
	}
	if err := c.Download(context.Background(), http.DefaultClient, base, dir, progress); err != nil {
		t.Fatal(err)
	}
	if most != 1_000_000 {
		t.Errorf("progress came to %d of 1000000", most)
	}
	if len(h.requests) != 3 || !strings.HasPrefix(h.requests[1], Weights+" bytes=") {
		t.Errorf("the second try began anew: %q", h.requests)
	}
}

func TestDownloadOfAnInvalidCardAsksNothing(t *testing.T) {
	t.Parallel()
	c := small(t, map[string]string{Weights: "w", Tokenizer: "{}", "../../x": "x"})
	h := &hub{}
	dir := t.TempDir()
	if err := c.Download(context.Background(), http.DefaultClient, h.start(t), dir, nil); err == nil || !strings.Contains(err.Error(), "not a path inside") {
		t.Errorf("error %v", err)
	}
	if len(h.requests) > 0 {
		t.Errorf("requests %q", h.requests)
	}
}

func TestDownloadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	files := map[string]string{Weights: "w", Tokenizer: "{}"}
	h := &hub{files: files}
	err := small(t, files).Download(ctx, http.DefaultClient, h.start(t), t.TempDir(), nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func put(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
