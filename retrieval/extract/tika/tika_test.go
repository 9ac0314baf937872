package tika_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"footnote/retrieval/extract/bounds"
	"footnote/retrieval/extract/tika"
)

func ask(t *testing.T, h http.HandlerFunc, l bounds.Limits) (string, error) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	s, err := tika.New(server.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	return s.XHTML(context.Background(), "in/a b.doc", []byte("bytes"), l.Filled())
}

func TestADocumentIsPut(t *testing.T) {
	t.Parallel()
	got, err := ask(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPut || r.URL.Path != "/tika" || string(body) != "bytes" || r.Header.Get("Accept") != "text/html" || r.Header.Get("Content-Disposition") != "attachment; filename*=UTF-8''a%20b.doc" {
			w.WriteHeader(http.StatusTeapot)
		}
		_, _ = io.WriteString(w, "<p>Text</p>")
	}, bounds.Limits{})
	if got != "<p>Text</p>" || err != nil {
		t.Errorf("%q %v", got, err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	status := func(n int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://127.0.0.1:1/elsewhere")
			w.WriteHeader(n)
			if n != http.StatusNoContent {
				_, _ = io.WriteString(w, "canary")
			}
		}
	}
	for _, c := range []struct {
		name  string
		h     http.HandlerFunc
		want  string
		again bool
	}{
		{"nothing in it", status(204), "no text found", false},
		{"encrypted", status(422), "cannot read it (status 422)", false},
		{"unknown", status(415), "cannot read it (status 415)", false},
		{"failing", status(500), "failed on it (status 500)", true},
		{"busy", status(503), "failed on it (status 503)", true},
		{"leading elsewhere", status(302), "is no Tika server (status 302)", true},
		{"another server", status(404), "is no Tika server (status 404)", true},
		{"answering with no text", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/octet-stream")
			_, _ = io.WriteString(w, "canary")
		}, "is no Tika server (no text in its answer)", true},
		{"too much text", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", 2000)) }, "more than 0 MB of text", false},
		{"breaking off", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "x")
		}, "broke off its answer", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := ask(t, c.h, bounds.Limits{Text: 1000})
			var known *bounds.Error
			if !errors.As(err, &known) || known.Retryable != c.again || !strings.Contains(known.Reason, c.want) || strings.Contains(known.Reason, "canary") {
				t.Errorf("%#v", err)
			}
		})
	}
}

func TestAServerThatIsDownMayComeBack(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	s, err := tika.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	server.Close()
	_, err = s.XHTML(context.Background(), "a.doc", []byte("x"), bounds.Limits{}.Filled())
	var known *bounds.Error
	if !errors.As(err, &known) || !known.Retryable || !strings.Contains(known.Reason, "cannot be reached: start it") {
		t.Error(err)
	}
}

func TestTheTimeOfADocumentEnds(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stop }))
	defer server.Close()
	defer close(stop)
	s, err := tika.New(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.XHTML(ctx, "a.doc", []byte("x"), bounds.Limits{}.Filled()); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestReads(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"a.doc": true, "a.ODT": true, "a.png": false, "a.exe": false, "README": false} {
		if got := tika.Reads(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for _, bad := range []string{"", "tika:9998", "ftp://x"} {
		if _, err := tika.New(bad); err == nil {
			t.Errorf("%q is an address", bad)
		}
	}
}
