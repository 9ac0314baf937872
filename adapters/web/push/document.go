package push

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"footnote/acl"
	"footnote/retrieval/catalog"
	"footnote/retrieval/extract"
	"footnote/retrieval/ingest/inbox"
)

// Document is what the API says of a document.
type Document struct {
	ID        string    `json:"id"`
	State     string    `json:"state"` // of the catalog; queued until ingestion has seen the latest change
	Reason    string    `json:"reason,omitempty"`
	Retryable bool      `json:"retryable"` // it is tried again by itself
	ETag      string    `json:"etag"`
	Revision  string    `json:"revision"`          // of what was sent last
	Serving   string    `json:"serving,omitempty"` // what is searched now
	Chunks    int       `json:"chunks"`            // of Serving
	Bytes     int64     `json:"bytes"`
	Name      string    `json:"name"`
	Title     string    `json:"title,omitempty"`
	Link      string    `json:"link,omitempty"`
	Author    string    `json:"author,omitempty"`
	Modified  time.Time `json:"modified,omitzero"`
	Access    []string  `json:"access"`
	Received  time.Time `json:"received"`
	Warnings  []string  `json:"warnings,omitempty"`
	Members   []Member  `json:"members,omitempty"` // of a mail or an archive that was asked for alone
}

// Member is a document that lies in a mail or an archive.
type Member struct {
	Path      string `json:"path"` // within it
	State     string `json:"state"`
	Reason    string `json:"reason,omitempty"`
	Retryable bool   `json:"retryable"`
	Chunks    int    `json:"chunks"` // of what is searched now
}

// members are the documents that lie in the entry. Ingestion may be behind.
func (a *API) members(e inbox.Entry) []Member {
	if !extract.Holds(e.Name) || a.o.Below == nil {
		return nil
	}
	at := a.o.Box.PathOf(e.ID)
	var out []Member
	for _, rec := range a.o.Below(at) {
		if rec.State == catalog.Removed {
			continue
		}
		m := Member{Path: strings.TrimPrefix(rec.Path, at+"/"), State: string(rec.State), Reason: rec.Reason, Retryable: rec.Retryable}
		if rec.Serving != "" && rec.Serving == rec.Revision {
			m.Chunks = rec.Chunks
		}
		out = append(out, m)
	}
	return out
}

// page is one page of a listing.
type page struct {
	Documents []Document `json:"documents"`
	Next      string     `json:"next,omitempty"` // address of the next page
}

// document joins what the inbox holds and what ingestion made of it.
func (a *API) document(e inbox.Entry) Document {
	d := Document{
		ID: e.ID, State: string(catalog.Queued), ETag: quoted(e.Tag()), Revision: string(e.Revision()), Bytes: e.Size,
		Name: e.Name, Title: e.Title, Link: e.Link, Author: e.Author, Modified: e.Modified, Access: e.Access, Received: e.Received,
	}
	rec, known := a.o.Known(a.o.Box.PathOf(e.ID))
	if !known {
		return d
	}
	d.Serving = string(rec.Serving)
	if rec.Serving != "" && rec.Serving == rec.Revision {
		d.Chunks = rec.Chunks
	}
	if !current(rec, e) {
		return d
	}
	d.State, d.Reason, d.Retryable, d.Warnings = string(rec.State), rec.Reason, rec.Retryable, rec.Warnings
	return d
}

// current reports that the record speaks of the entry: its content, and under
// its list. What is published under a list of its own front matter is under no
// more than the entry's.
func current(rec catalog.Record, e inbox.Entry) bool {
	switch {
	case rec.State == catalog.Removed || rec.Revision != e.Revision():
		return false
	case rec.State != catalog.Published:
		return slices.Equal(rec.Rules, e.Access)
	case rec.Declared != nil:
		return !slices.ContainsFunc(rec.Access, func(p string) bool { return !slices.Contains(e.Access, p) })
	}
	return slices.Equal(rec.Access, e.Access)
}

func quoted(tag string) string { return `"` + tag + `"` }

// put takes a document.
func (a *API) put(w http.ResponseWriter, r *http.Request, t Token, id string) error {
	m, err := readMeta(r, id)
	if err != nil {
		return err
	}
	if err := mayGrant(t, m.Access); err != nil {
		return err
	}
	when, err := readCondition(r.Header)
	if err != nil {
		return err
	}
	select {
	case a.uploads <- struct{}{}:
		defer func() { <-a.uploads }()
	default:
		return problem{Status: http.StatusTooManyRequests, Detail: fmt.Sprintf("%d documents are being received already; send it again in a second.", a.o.Uploads), After: 1}
	}
	if err := a.o.Box.Fits(r.ContentLength); err != nil {
		return err // before the body is sent, where the sender waits for that
	}
	a.patient(w)
	e, change, err := a.o.Box.Put(r.Context(), m, r.Body, when)
	if err != nil {
		return err
	}
	// SECURITY: whom the list no longer names finds nothing from here on. The
	// same again is looked at too, in case the last time ended before this. What
	// is replaced may be in the index, where the catalog has not heard of it yet.
	rec, known := a.o.Known(a.o.Box.PathOf(id))
	if (known || change == inbox.Updated || extract.Holds(e.Name)) && !(change == inbox.Same && current(rec, e)) {
		if err := a.o.Enforce(r.Context(), rec, id); err != nil {
			return err
		}
	}
	if change == inbox.Same {
		a.show(w, http.StatusOK, e)
		return nil
	}
	w.Header().Set("Location", address(id))
	a.show(w, http.StatusAccepted, e)
	return nil
}

// mayGrant holds a list to what the token may give. A list that cannot be
// understood is for the inbox to refuse.
//
// SECURITY: entry by entry, in the one form of a principal.
func mayGrant(t Token, entries []string) error {
	list, err := acl.ParseList(entries)
	if t.Grants.IsZero() || err != nil {
		return nil //nolint:nilerr // refused by Put, with the reason
	}
	may := t.Grants.Principals()
	for _, p := range list.Principals() {
		if !slices.Contains(may, p) {
			return problem{Status: http.StatusForbidden, Field: hAccess, Detail: fmt.Sprintf("This token may not give access to %s, only to %s.", p, t.Grants)}
		}
	}
	return nil
}

// patient gives the body the time that a large one needs; the server's own
// limits are for small requests.
func (a *API) patient(w http.ResponseWriter) {
	c := http.NewResponseController(w)
	until := time.Now().Add(a.o.Patience)
	// Where there are no deadlines, in tests, there is nothing to extend.
	_ = c.SetReadDeadline(until)
	_ = c.SetWriteDeadline(until.Add(10 * time.Second))
}

// get says how a document stands.
func (a *API) get(w http.ResponseWriter, r *http.Request, id string) error {
	if err := noQuery(r); err != nil {
		return err
	}
	e, held, err := a.o.Box.Get(r.Context(), id)
	if err != nil {
		return err
	}
	if held {
		a.show(w, http.StatusOK, e)
		return nil
	}
	if _, known := a.o.Known(a.o.Box.PathOf(id)); known {
		return problem{Status: http.StatusGone, Detail: "The document was taken back.", State: string(catalog.Removed)}
	}
	return inbox.ErrNotFound
}

func (a *API) show(w http.ResponseWriter, status int, e inbox.Entry) {
	w.Header().Set("ETag", quoted(e.Tag()))
	d := a.document(e)
	d.Members = a.members(e)
	write(w, status, "application/json", d)
}

// delete takes a document back.
//
// SECURITY: out of the inbox first, durably, so that no run brings it in again;
// then out of the index. When the answer is sent nobody finds it. What a failed
// attempt left in the index goes with the next one. What is published may not be
// known to the catalog yet.
func (a *API) delete(w http.ResponseWriter, r *http.Request, id string) error {
	if err := noQuery(r); err != nil {
		return err
	}
	when, err := readCondition(r.Header)
	if err != nil {
		return err
	}
	missing := a.o.Box.Delete(r.Context(), id, when)
	rec, known := a.o.Known(a.o.Box.PathOf(id))
	if missing != nil && (!errors.Is(missing, inbox.ErrNotFound) || !known || rec.Serving == "") {
		return missing
	}
	if err := a.o.Enforce(r.Context(), rec, id); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// pageSize bounds a page.
const pageSize, maxPage = 100, 1000

// list shows documents in the order of their ids.
func (a *API) list(w http.ResponseWriter, r *http.Request, t Token) error {
	q := r.URL.Query()
	for name, values := range q {
		if !slices.Contains([]string{"prefix", "after", "limit"}, name) || len(values) > 1 {
			return problem{Status: http.StatusBadRequest, Field: name, Detail: "The query takes prefix, after and limit, each once."}
		}
	}
	n := pageSize
	if v := q.Get("limit"); v != "" {
		var err error
		if n, err = strconv.Atoi(v); err != nil || n < 1 || n > maxPage {
			return problem{Status: http.StatusBadRequest, Field: "limit", Detail: fmt.Sprintf("The limit is a whole number from 1 to %d.", maxPage)}
		}
	}
	prefix := q.Get("prefix")
	// SECURITY: a token lists what it may use, and nothing else.
	switch {
	case strings.HasPrefix(prefix, t.Prefix):
	case strings.HasPrefix(t.Prefix, prefix):
		prefix = t.Prefix
	default:
		return problem{Status: http.StatusForbidden, Field: "prefix", Detail: "This token may only use ids that begin with " + t.Prefix + "."}
	}
	found, err := a.o.Box.List(r.Context(), prefix, q.Get("after"), n+1)
	if err != nil {
		return err
	}
	p := page{Documents: []Document{}}
	for _, e := range found[:min(n, len(found))] {
		p.Documents = append(p.Documents, a.document(e))
	}
	if len(found) > n {
		p.Next = documents + "?" + url.Values{"prefix": {prefix}, "after": {found[n-1].ID}, "limit": {strconv.Itoa(n)}}.Encode()
	}
	write(w, http.StatusOK, "application/json", p)
	return nil
}

// address is the path of a document, as a request has it.
func address(id string) string {
	parts := strings.Split(id, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return documents + "/" + strings.Join(parts, "/")
}
