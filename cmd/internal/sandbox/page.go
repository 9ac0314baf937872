package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"strings"
	"time"
)

//go:embed page.html sandbox.css sandbox.js
var assets embed.FS

// samples are questions that the demo documents answer, or must not.
var samples = []string{
	"How do I rotate the API key?",
	"When was the contractor's laptop stolen?",
	"How do I reset my password?",
	"연차는 며칠까지 이월할 수 있나요?",
	"Who wrote the company song?",
}

// page serves a stage to a browser.
type page struct {
	s    stage
	name string // Slack, Discord
	html *template.Template
}

func newPage(s stage, name string) (*page, error) {
	t, err := template.New("page.html").Funcs(template.FuncMap{"initial": initial}).ParseFS(assets, "page.html")
	if err != nil {
		return nil, err
	}
	return &page{s, name, t}, nil
}

func initial(name string) string {
	for _, r := range name {
		return string(r)
	}
	return ""
}

func (p *page) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.index)
	mux.HandleFunc("GET /room", p.room)
	mux.HandleFunc("POST /do", p.act)
	mux.Handle("GET /sandbox.css", http.FileServerFS(assets))
	mux.Handle("GET /sandbox.js", http.FileServerFS(assets))
	return guarded(mux)
}

// guarded keeps other sites out: a page elsewhere can make a browser post here,
// but not with a header of ours, and nothing from elsewhere is loaded.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		if r.Method == http.MethodPost && r.Header.Get("X-Sandbox") == "" {
			http.Error(w, "not from the page", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// here is who and where the request is about; unknown ones are the first.
func (p *page) here(r *http.Request) (as person, in place, all []place) {
	as = p.s.people()[0]
	for _, x := range p.s.people() {
		if x.ID == r.FormValue("as") {
			as = x
		}
	}
	all = p.s.places(as)
	in = all[len(all)-1]
	for _, x := range all {
		if x.Open && (x.ID == r.FormValue("in") || in.ID == dm && r.FormValue("in") != dm) {
			in = x
		}
	}
	return as, in, all
}

func (p *page) index(w http.ResponseWriter, r *http.Request) {
	as, in, all := p.here(r)
	p.write(w, "page.html", map[string]any{
		"Platform": p.name, "Theme": strings.ToLower(p.name), "As": as, "In": in, "People": p.s.people(), "Places": all, "Samples": samples,
		"Ways": p.s.ways(in), "Room": p.s.look(as, in),
	})
}

func (p *page) write(w http.ResponseWriter, name string, data any) {
	var b bytes.Buffer
	if err := p.html.ExecuteTemplate(&b, name, data); err != nil {
		http.Error(w, "the page cannot be shown", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = b.WriteTo(w)
}

// patience is how long a request for the room waits for news.
const patience = 20 * time.Second

// room answers with the messages once they differ from what was seen.
func (p *page) room(w http.ResponseWriter, r *http.Request) {
	as, in, _ := p.here(r)
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	var now bytes.Buffer
	var tag string
	err := p.s.wait(ctx, func() bool {
		now.Reset()
		if err := p.html.ExecuteTemplate(&now, "room", p.s.look(as, in)); err != nil {
			return false
		}
		sum := sha256.Sum256(now.Bytes())
		tag = hex.EncodeToString(sum[:8])
		return tag != r.FormValue("seen")
	})
	if err != nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Etag", tag)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.Copy(w, &now)
}

// act does what the person does. A fake panics at what no client would do.
func (p *page) act(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	as, in, _ := p.here(r)
	if r.PostFormValue("as") != as.ID || r.PostFormValue("in") != in.ID {
		http.Error(w, errNot.Error(), http.StatusBadRequest)
		return
	}
	defer func() {
		if v := recover(); v != nil {
			http.Error(w, fmt.Sprintf("%s does not let you: %v", p.name, v), http.StatusBadRequest)
		}
	}()
	err := p.s.do(act{
		as: as, in: in, What: r.PostFormValue("what"), Text: r.PostFormValue("text"), Thread: r.PostFormValue("thread"),
		Message: r.PostFormValue("message"), Action: r.PostFormValue("action"),
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
