// Package push is the HTTP API by which other systems hand documents over.
//
// Its one idea: a document is what lies at its address. PUT puts bytes there,
// under the access list that comes with them, DELETE takes them away, GET says
// how far ingestion is. Each may be repeated; the same again does nothing.
//
//	PUT    /v1/documents/{id}   202 taken, ingestion is under way; 200 it was there just so
//	GET    /v1/documents/{id}   200 state, revision, chunks; 410 taken back; 404
//	DELETE /v1/documents/{id}   204 gone, from search as well; 404
//	GET    /v1/documents        200 pages of the same, by prefix, after, limit
//	GET    /v1/openapi.yaml     200 all of this for machines, without a token
//
// The body of a PUT is the document as it is. What is said of it comes in
// headers: Content-Type (or the ending of the id) names the format,
// Footnote-Access who may read it, Footnote-Title, -Link, -Author and -Modified
// describe it. Their values are percent-encoded UTF-8. Every document has an
// entity tag, so that If-Match and If-None-Match keep senders from overwriting
// one another. Errors are problem+json (RFC 9457).
//
// SECURITY: every request but that for the description carries a bearer token,
// compared in constant time. A token can be bound to a prefix of ids and to the
// principals that it may give access to. An id outside of the prefix is
// forbidden, whether it is there or not. Without an access list nothing is taken.
// A list that becomes narrower and a removal are in force when the answer is
// sent. No log line holds an id, a name, a list or content.
//
// It stores nothing itself, ingests nothing, and terminates no TLS.
package push

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"footnote/acl"
	"footnote/retrieval/catalog"
	"footnote/retrieval/ingest/inbox"
)

// Token is what a sender shows.
type Token struct {
	Secret string
	Prefix string   // of all ids that it may use; "" any
	Grants acl.List // whom it may give access to; zero: anybody
}

// Options of the API. Box, Known, Enforce and at least one token are needed.
type Options struct {
	Tokens []Token
	Box    *inbox.Inbox
	// Known is what the catalog says of the document at a path of the inbox.
	Known func(path string) (catalog.Record, bool)
	// Below is what the catalog says of the documents that lie in the one at the
	// path, ordered by path; nil: nothing.
	Below func(path string) []catalog.Record
	// Enforce puts in force what became narrower of the document.
	Enforce func(ctx context.Context, doc catalog.Record, id string) error
	// Description is the API as OpenAPI.
	Description []byte
	// Uploads is how many bodies are read at once: 4. More are told to wait.
	Uploads int
	// Patience is how long the body of one request may take: 5 minutes.
	Patience time.Duration
	Log      *slog.Logger // nil: none
}

// API serves everything below /v1/.
type API struct {
	o       Options
	secrets [][sha256.Size]byte // of the tokens, by place
	uploads chan struct{}
}

// New makes the API.
//
// SECURITY: no token, and one that is blank, would let everybody in.
func New(o Options) (*API, error) {
	if len(o.Tokens) == 0 || o.Box == nil || o.Known == nil || o.Enforce == nil {
		return nil, errors.New("a push API needs a token, an inbox, the catalog and the index")
	}
	if o.Uploads <= 0 {
		o.Uploads = 4
	}
	if o.Patience <= 0 {
		o.Patience = 5 * time.Minute
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	a := &API{o: o, uploads: make(chan struct{}, o.Uploads)}
	for _, t := range o.Tokens {
		if strings.TrimSpace(t.Secret) == "" {
			return nil, errors.New("a token of the push API is blank")
		}
		a.secrets = append(a.secrets, sha256.Sum256([]byte(t.Secret)))
	}
	return a, nil
}

const (
	documents   = "/v1/documents"
	description = "/v1/openapi.yaml"
)

// ServeHTTP answers one request. Paths are taken as they were sent: nothing
// tidies an id before it is read.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	path := r.URL.EscapedPath()
	if path == description {
		a.describe(w, r)
		return
	}
	token, ok := a.token(r)
	if !ok {
		w.Header().Set("WWW-Authenticate", `Bearer realm="footnote"`)
		fail(w, problem{Status: http.StatusUnauthorized, Detail: "Send the header Authorization: Bearer TOKEN with a token of this API."})
		return
	}
	rest, isDocument := strings.CutPrefix(path, documents+"/")
	switch {
	case path == documents:
		a.serve(w, r, token, methods{http.MethodGet: a.list})
	case isDocument:
		id, err := readID(rest, token)
		if err != nil {
			a.failure(w, err)
			return
		}
		a.serve(w, r, token, methods{
			http.MethodGet:    func(w http.ResponseWriter, r *http.Request, _ Token) error { return a.get(w, r, id) },
			http.MethodPut:    func(w http.ResponseWriter, r *http.Request, t Token) error { return a.put(w, r, t, id) },
			http.MethodDelete: func(w http.ResponseWriter, r *http.Request, _ Token) error { return a.delete(w, r, id) },
		})
	default:
		fail(w, problem{Status: http.StatusNotFound, Detail: "There is nothing here: the documents are at /v1/documents, the description at /v1/openapi.yaml."})
	}
}

// methods are what a path can do.
type methods map[string]func(http.ResponseWriter, *http.Request, Token) error

func (a *API) serve(w http.ResponseWriter, r *http.Request, t Token, all methods) {
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	do, ok := all[method]
	if !ok {
		allow := []string{http.MethodHead}
		for m := range all {
			allow = append(allow, m)
		}
		slices.Sort(allow)
		w.Header().Set("Allow", strings.Join(allow, ", "))
		fail(w, problem{Status: http.StatusMethodNotAllowed, Detail: "Use one of " + strings.Join(allow, ", ") + "."})
		return
	}
	if err := do(w, r, t); err != nil {
		a.failure(w, err)
	}
}

// token finds out which token the request shows.
//
// SECURITY: all are compared, in constant time, so that neither the time nor
// the order says anything of them.
func (a *API) token(r *http.Request) (Token, bool) {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	shown := sha256.Sum256([]byte(strings.TrimSpace(secret)))
	found := -1
	for i := range a.secrets {
		if subtle.ConstantTimeCompare(a.secrets[i][:], shown[:]) == 1 {
			found = i
		}
	}
	if found < 0 || !strings.EqualFold(scheme, "Bearer") {
		return Token{}, false
	}
	return a.o.Tokens[found], true
}

// readID reads the rest of the path.
//
// SECURITY: the prefix is compared with the id as it is stored, not as it was
// written, and the answer does not depend on what is there.
func readID(escaped string, t Token) (string, error) {
	raw, err := url.PathUnescape(escaped)
	if err != nil {
		return "", problem{Status: http.StatusBadRequest, Field: "id", Detail: "The id is not percent-encoded UTF-8."}
	}
	id, err := inbox.ParseID(raw)
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(id, t.Prefix) {
		return "", problem{Status: http.StatusForbidden, Field: "id", Detail: "This token may only use ids that begin with " + t.Prefix + "."}
	}
	return id, nil
}

func (a *API) describe(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		fail(w, problem{Status: http.StatusMethodNotAllowed, Detail: "Use one of GET, HEAD."})
		return
	}
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(a.o.Description)
}

// failure tells what went wrong; what is not the sender's to know is logged
// under a reference.
func (a *API) failure(w http.ResponseWriter, err error) {
	var p problem
	var refusal *inbox.Refusal
	var tooMuch *http.MaxBytesError
	switch {
	case errors.As(err, &p):
	case errors.As(err, &refusal):
		p = problem{Status: http.StatusUnprocessableEntity, Field: refusal.Field, Detail: sentence(refusal.Error())}
		if refusal.Field == "id" {
			p.Status = http.StatusBadRequest
		}
	case errors.Is(err, inbox.ErrTooLarge), errors.As(err, &tooMuch):
		p = problem{Status: http.StatusRequestEntityTooLarge, Detail: sentence(err.Error())}
	case errors.Is(err, inbox.ErrFull):
		p = problem{Status: http.StatusInsufficientStorage, Detail: "No more documents are taken: delete some, or ask the operator."}
	case errors.Is(err, inbox.ErrChanged):
		p = problem{Status: http.StatusPreconditionFailed, Detail: "The document is not as If-Match or If-None-Match says: get it, and decide again."}
	case errors.Is(err, inbox.ErrNotFound):
		p = problem{Status: http.StatusNotFound, Detail: "There is no document with this id."}
	default:
		p = a.internal(err)
	}
	fail(w, p)
}

func (a *API) internal(err error) problem {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || isBroken(err) {
		return problem{Status: http.StatusRequestTimeout, Detail: "The body did not arrive whole, or not in time. Nothing was changed; send it again."}
	}
	ref := rand.Text()[:10]
	a.o.Log.Error("a pushed document could not be dealt with", "reference", ref, "error", err)
	return problem{Status: http.StatusServiceUnavailable, Detail: "It could not be done now; send it again. (Reference: " + ref + ")", After: 5}
}
