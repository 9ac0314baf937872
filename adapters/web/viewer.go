package web

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"footnote/acl"
	"footnote/bot"
	"footnote/bot/ledger"
	"footnote/retrieval"
)

// answers is what the viewer needs of a ledger.
type answers interface {
	Answer(ctx context.Context, id string) (ledger.Answer, error)
	NoteAudit(ctx context.Context, a ledger.Audit) error
}

// opener is what the viewer needs of a bot.
type opener interface {
	Open(ctx context.Context, asker acl.Identity, audience acl.Audience, id retrieval.DocumentID, rev retrieval.Revision, from, to int) (bot.Opened, error)
}

// ViewerOptions connect a viewer. Base, Key, Answers, Bot and Identify are
// required.
type ViewerOptions struct {
	Base    string // address of the server as people reach it: https://footnote.example.org
	Key     []byte // of LoadKey
	Answers answers
	Bot     opener
	// Identify says who the person is now, by the key that Link was given. An
	// error means nobody.
	Identify func(ctx context.Context, person string) (acl.Identity, error)
	Lifetime time.Duration // of links: 10 min
	Around   int           // code points shown before and after the passage: 1,500
	Now      func() time.Time
	Log      *slog.Logger // nil: none
}

// Viewer shows cited passages.
type Viewer struct {
	o    ViewerOptions
	base *url.URL
}

// NewViewer makes a viewer.
func NewViewer(o ViewerOptions) (*Viewer, error) {
	base, err := url.Parse(strings.TrimRight(o.Base, "/"))
	if err != nil || base.Scheme != "https" && base.Scheme != "http" || base.Host == "" || base.RawQuery+base.Fragment != "" {
		return nil, fmt.Errorf("the address of the source viewer, %q, must be like https://footnote.example.org", o.Base)
	}
	if len(o.Key) != keyLen || o.Answers == nil || o.Bot == nil || o.Identify == nil {
		return nil, errors.New("a source viewer needs a key, answers, a bot and a directory")
	}
	if o.Lifetime <= 0 {
		o.Lifetime = 10 * time.Minute
	}
	if o.Around <= 0 {
		o.Around = 1500
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Viewer{o, base}, nil
}

const (
	keyFile = "viewer.key"
	keyLen  = 32
)

// LoadKey reads the key of the viewer's links from the data directory, and
// makes it if it is absent. Whoever reads it can forge links.
func LoadKey(dir string) ([]byte, error) {
	path := filepath.Join(dir, keyFile)
	key, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return makeKey(path)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the viewer's key: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading the viewer's key: %w", err)
	}
	switch {
	case len(key) != keyLen:
		return nil, fmt.Errorf("%s has %d bytes, not %d: delete it, and a new one is made; links shown before stop working", path, len(key), keyLen)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s can be read by others: chmod 600 it, or delete it for a new one", path)
	}
	return key, nil
}

// makeKey makes a key so that of two processes at once both use one.
func makeKey(path string) ([]byte, error) {
	key := make([]byte, keyLen)
	_, _ = rand.Read(key) // never fails
	f, err := os.CreateTemp(filepath.Dir(path), ".viewer-*")
	if err != nil {
		return nil, fmt.Errorf("making the viewer's key: %w", err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(key)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("making the viewer's key: %w", err)
	}
	if err := os.Link(f.Name(), path); errors.Is(err, fs.ErrExist) {
		return LoadKey(filepath.Dir(path))
	} else if err != nil {
		return nil, fmt.Errorf("making the viewer's key: %w", err)
	}
	return key, nil
}

// Link is the address under which the person can open source n of the answer,
// until it expires. It is shown to that person alone.
func (v *Viewer) Link(answer string, n int, person string) string {
	until := v.o.Now().Add(v.o.Lifetime).Unix()
	u := v.base.JoinPath("source", answer, strconv.Itoa(n))
	u.RawQuery = url.Values{
		"p": {person}, "e": {strconv.FormatInt(until, 10)}, "s": {v.sign(answer, n, person, until)},
	}.Encode()
	return u.String()
}

// sign is the signature of a link. Lengths keep one field from running into
// the next.
func (v *Viewer) sign(answer string, n int, person string, until int64) string {
	h := hmac.New(sha256.New, v.o.Key)
	b := []byte("footnote source link 1\x00")
	b = append(binary.AppendUvarint(b, uint64(len(answer))), answer...)
	b = append(binary.AppendUvarint(b, uint64(len(person))), person...)
	b = binary.BigEndian.AppendUint64(b, uint64(n))
	h.Write(binary.BigEndian.AppendUint64(b, uint64(until)))
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// request is what a link says, once its signature and age are good.
type request struct {
	answer, person string
	n              int
}

// verify reads a link.
//
// SECURITY: the person is who the signature says, and nothing else says it.
func (v *Viewer) verify(r *http.Request) (request, bool) {
	q := r.URL.Query()
	n, errN := strconv.Atoi(r.PathValue("n"))
	until, errUntil := strconv.ParseInt(q.Get("e"), 10, 64)
	if errN != nil || errUntil != nil || n < 1 || q.Get("p") == "" {
		return request{}, false
	}
	got := request{r.PathValue("answer"), q.Get("p"), n}
	want := v.sign(got.answer, got.n, got.person, until)
	if !hmac.Equal([]byte(want), []byte(q.Get("s"))) || v.o.Now().Unix() >= until {
		return request{}, false
	}
	return got, true
}

// ServeHTTP shows a source, what became of its revision, or the one page for
// everything that is not to be seen.
func (v *Viewer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	p, status := page{}, http.StatusNotFound
	if link, ok := v.verify(r); ok {
		var err error
		if p, status, err = v.look(r.Context(), link); err != nil {
			v.o.Log.Error("a source could not be opened", "answer", link.answer, "error", err)
			http.Error(w, "The source cannot be shown right now. Please try again.", http.StatusServiceUnavailable)
			return
		}
		v.note(r.Context(), link, status)
	}
	render(w, status, p)
}

// secure sets what keeps a page from being run, framed, kept or followed.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; style-src '"+styleHash+"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Robots-Tag", "noindex, nofollow, noarchive")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Type", "text/html; charset=utf-8")
}

// look finds out what the person may see. An error means that this is not
// known now.
func (v *Viewer) look(ctx context.Context, link request) (page, int, error) {
	answer, err := v.o.Answers.Answer(ctx, link.answer)
	if errors.Is(err, ledger.ErrNotFound) {
		return page{}, http.StatusNotFound, nil
	} else if err != nil {
		return page{}, 0, err
	}
	source, ok := answer.Source(link.n)
	if !ok {
		return page{}, http.StatusNotFound, nil
	}
	// SECURITY: who the person is, is asked anew; not known means nobody.
	asker, err := v.o.Identify(ctx, link.person)
	if errors.Is(err, acl.ErrUnknown) {
		return page{}, http.StatusNotFound, nil
	} else if err != nil {
		return page{}, 0, err
	}
	return v.open(ctx, asker, link.n, source)
}

// open opens the source as the person.
//
// SECURITY: by the rule of a search in a direct message, whatever the answer
// once showed in a channel.
func (v *Viewer) open(ctx context.Context, asker acl.Identity, n int, s ledger.Source) (page, int, error) {
	opened, err := v.o.Bot.Open(ctx, asker, acl.AskerOnly(), s.Document, s.Revision, s.From, s.To)
	if err == nil {
		return show(n, opened, v.o.Around), http.StatusOK, nil
	}
	if !errors.Is(err, retrieval.ErrNotFound) {
		return page{}, 0, err
	}
	// The cited revision may be gone while the person may read the document.
	// A removed document has no access list any more: who could read it last is
	// not known, so that it is to everybody as one that never was.
	current, err := v.o.Bot.Open(ctx, asker, acl.AskerOnly(), s.Document, "", 0, 0)
	switch {
	case err == nil:
		return page{Tombstone: true, N: n, Title: current.Document.Title, Modified: current.Document.Modified}, http.StatusGone, nil
	case !errors.Is(err, retrieval.ErrNotFound):
		return page{}, 0, err
	}
	return page{}, http.StatusNotFound, nil
}

// note keeps who opened what.
func (v *Viewer) note(ctx context.Context, link request, status int) {
	result := map[int]string{http.StatusOK: "shown", http.StatusGone: "gone"}[status]
	if result == "" {
		result = "not_available"
	}
	err := v.o.Answers.NoteAudit(ctx, ledger.Audit{
		Actor: link.person, Action: "open_source", Subject: link.answer + "/" + strconv.Itoa(link.n), Result: result,
	})
	if err != nil {
		v.o.Log.Error("an opened source could not be noted", "error", err)
	}
}
