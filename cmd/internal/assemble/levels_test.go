package assemble

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"footnote/acl"
	"footnote/cmd/internal/config"
	"footnote/retrieval"
	"footnote/retrieval/analysis"
)

// measured is a service over a folder, with the shipped models.
type measured struct {
	*testing.T
	*Service
	docs string
	api  http.Handler
}

const pushSecret = "0123456789abcdef0123456789abcdef"

// push asks the push API, whose listener a service without web.listen lacks.
func (m *measured) push(method, id, access, body string, want int) {
	m.Helper()
	r := httptest.NewRequest(method, "/v1/documents/"+id, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+pushSecret)
	if access != "" {
		r.Header.Set("Footnote-Access", access)
	}
	w := httptest.NewRecorder()
	if m.api.ServeHTTP(w, r); w.Code != want {
		m.Fatalf("%s %s: %d %s", method, id, w.Code, w.Body)
	}
}

func newMeasured(t *testing.T, documents int) *measured {
	t.Helper()
	dir := t.TempDir()
	m := &measured{T: t, docs: filepath.Join(dir, "docs")}
	for n := range documents {
		m.write(fmt.Sprintf("a/%d.md", n), note(n, 0))
	}
	c := config.Default()
	c.Data = filepath.Join(dir, "data")
	c.Models.Runtime = os.Getenv("FOOTNOTE_ONNXRUNTIME")
	if c.Models.Runtime == "" {
		found, err := filepath.Glob(filepath.Join("..", "..", "..", ".cache", "native", runtime.GOOS+"-"+runtime.GOARCH, "libonnxruntime.*"))
		if err != nil || len(found) == 0 {
			t.Fatalf("there is no ONNX runtime (%v); make native", err)
		}
		c.Models.Runtime = found[0]
	}
	c.Sources = []config.Source{{Name: "docs", Folder: m.docs, Access: acl.NewList(acl.Everyone)}}
	var err error
	secret, err := config.LookupSecret("TOKEN", func(name string) (string, bool) { return pushSecret, name == "TOKEN" })
	if err != nil {
		t.Fatal(err)
	}
	tokens := []config.PushToken{{Secret: secret}}
	m.Service, err = OpenService(t.Context(), c, config.Platforms{Push: tokens}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if m.api, err = m.newPush(tokens); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- m.Service.Run(ctx, func(string) {}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	m.until("the first pass", func() bool { return !m.Ingester.Loop.Status()[0].Scanned.IsZero() })
	return m
}

func (m *measured) write(rel, text string) {
	m.Helper()
	path := filepath.Join(m.docs, rel)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	if err != nil {
		m.Fatal(err)
	}
}

// note is a short document about the nth thing, at a version.
func note(n, version int) string {
	return fmt.Sprintf("# Device %d\n\nThe device %s needs %s oil.\n", n, word("wombat", n), word("quokka", n, version))
}

// word is a word that nothing splits or shortens, another one for other numbers.
func word(stem string, ns ...int) string {
	for _, n := range ns {
		stem += "z" + strings.Map(func(r rune) rune { return r - '0' + 'b' }, strconv.Itoa(n))
	}
	return stem + "zk"
}

// long is a document of a hundred kilobytes that no cache knows, with one word
// to find it by.
func long(n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Manual %d\n\nIt begins with %s.\n\n", n, word("numbat", n))
	for i := 0; b.Len() < 100_000; i++ {
		fmt.Fprintf(&b, "Step %d of manual %d: turn valve %d by %d degrees, wait %d minutes, and note the pressure in the log.\n\n", i, n, (i*7919+n)%997, (i*31+n)%360, (i+n)%59)
	}
	return b.String()
}

var reader = acl.NewIdentity(acl.User("ben"), acl.Everyone)

// finds reports whether a search finds a document by a word of its own, and
// whether it can then be opened.
func (m *measured) finds(stem string, ns ...int) bool {
	m.Helper()
	ctx := context.Background()
	g, err := m.Store.Open(ctx, "")
	if err != nil {
		m.Fatal(err)
	}
	found, err := g.Search(ctx, acl.NewGrant(reader, acl.AskerOnly()), retrieval.Query{Terms: analysis.Terms(word(stem, ns...)), Depth: 5})
	if err != nil {
		m.Fatal(err)
	}
	return len(found.Lexical) > 0
}

// opens reports whether a document can be opened as a source.
func (m *measured) opens(id retrieval.DocumentID) bool {
	_, err := m.Bot.Open(context.Background(), reader, acl.AskerOnly(), id, "", 0, 0)
	return err == nil
}

func (m *measured) id(rel string) retrieval.DocumentID {
	r, _ := m.Ingester.Catalog.At(filepath.Join(m.docs, rel))
	return r.ID
}

// until polls, since what is measured is what a reader sees.
func (m *measured) until(what string, is func() bool) {
	m.Helper()
	deadline := time.After(5 * time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-deadline:
			m.Fatalf("%s did not come in five minutes", what)
		case <-tick.C:
		}
	}
}

// TestServiceLevels changes, deletes and closes documents under a running
// service with the shipped models, and looks from outside when that is seen in
// search and in source opening. FOOTNOTE_LEVELS is the number of rounds; then
// the targets are held, and the figures logged.
func TestServiceLevels(t *testing.T) {
	rounds := 2
	if s := os.Getenv("FOOTNOTE_LEVELS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		rounds = n
	}
	m := newMeasured(t, 10*rounds)
	took := map[string][]time.Duration{}
	act := func(kind string, change func(), seen func() bool) {
		start := time.Now()
		change()
		m.until(kind, seen)
		took[kind] = append(took[kind], time.Since(start))
	}
	for n := range rounds {
		name := fmt.Sprintf("a/%d.md", n)
		act("edit", func() { m.write(name, note(n, 1)) }, func() bool {
			return m.finds("quokka", n, 1) && !m.finds("quokka", n, 0)
		})
		act("100 kB", func() { m.write(fmt.Sprintf("b/%d.txt", n), long(n)) }, func() bool { return m.finds("numbat", n) })
		id := m.id(name)
		act("removal", func() {
			if err := os.Remove(filepath.Join(m.docs, name)); err != nil {
				t.Fatal(err)
			}
		}, func() bool { return !m.finds("wombat", n) && !m.opens(id) })
		id = m.id(fmt.Sprintf("b/%d.txt", n))
		act("access", func() { m.write("b/.access.yaml", "access: [group:hr]\n") }, func() bool { return !m.finds("numbat", n) && !m.opens(id) })
		act("access", func() { m.write("b/.access.yaml", "access: [everyone]\n") }, func() bool { return m.finds("numbat", n) && m.opens(id) })
	}
	for n := range rounds {
		id := fmt.Sprintf("%d.txt", n)
		act("PUT of 100 kB", func() { m.push("PUT", id, "everyone", long(2000+n), 202) }, func() bool { return m.finds("numbat", 2000+n) })
		act("PUT for others", func() { m.push("PUT", id, "group:hr", long(2000+n), 202) }, func() bool { return !m.finds("numbat", 2000+n) })
		act("PUT for all", func() { m.push("PUT", id, "everyone", long(2000+n), 202) }, func() bool { return m.finds("numbat", 2000+n) })
		act("DELETE", func() { m.push("DELETE", id, "", "", 204) }, func() bool { return !m.finds("numbat", 2000+n) })
	}
	m.busy(rounds, took, act)
	for _, kind := range []string{"edit", "100 kB", "removal", "access", "PUT of 100 kB", "PUT for others", "PUT for all", "DELETE", "removal beside 10 new documents of 100 kB"} {
		all := took[kind]
		slices.Sort(all)
		p95 := all[max(0, (len(all)*95+99)/100-1)]
		t.Logf("%-42s %3d changes  p50 %6.2f s  p95 %6.2f s", kind, len(all), all[len(all)/2].Seconds(), p95.Seconds())
		limit := 5 * time.Second
		if kind == "100 kB" || kind == "edit" || kind == "PUT of 100 kB" {
			limit = 10 * time.Second
		}
		if os.Getenv("FOOTNOTE_LEVELS") != "" && p95 > limit {
			t.Errorf("%s takes %v at the 95th percentile, more than %v", kind, p95, limit)
		}
	}
	for _, l := range m.Ingester.Loop.Levels() {
		t.Logf("by the loop: %-8s %4d changes  p50 %6.2f s  p95 %6.2f s", l.Kind, l.Count, l.P50.Seconds(), l.P95.Seconds())
		if l.Count == 0 {
			t.Errorf("the loop measured no change of %s", l.Kind)
		}
	}
}

// busy removes documents while many others are being embedded.
func (m *measured) busy(rounds int, took map[string][]time.Duration, act func(string, func(), func() bool)) {
	m.Helper()
	for n := range 10 {
		m.write(fmt.Sprintf("c/%d.txt", n), long(1000+n))
	}
	for n := rounds; n < 2*rounds; n++ {
		act("removal beside 10 new documents of 100 kB", func() {
			if err := os.Remove(filepath.Join(m.docs, fmt.Sprintf("a/%d.md", n))); err != nil {
				m.Fatal(err)
			}
		}, func() bool { return !m.finds("wombat", n) })
	}
}
