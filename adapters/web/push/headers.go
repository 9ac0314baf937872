package push

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"footnote/retrieval/extract"
	"footnote/retrieval/ingest/inbox"
)

// The headers that describe a document.
const (
	hAccess   = "Footnote-Access"   // principals, separated by commas
	hTitle    = "Footnote-Title"    // instead of the document's own
	hLink     = "Footnote-Link"     // of http or https: where the original is read
	hAuthor   = "Footnote-Author"   // kept, and said by GET
	hModified = "Footnote-Modified" // RFC 3339 or the form of HTTP: when the original last changed
)

// describes lists them; others that begin alike are misspelt.
var describes = []string{hAccess, hTitle, hLink, hAuthor, hModified}

// endings are the formats that a Content-Type can name, as endings of a name.
var endings = map[string]string{
	"text/markdown": ".md", "text/x-markdown": ".md", "text/html": ".html", "application/xhtml+xml": ".html",
	"text/csv": ".csv", "text/tab-separated-values": ".tsv", "text/vtt": ".vtt", "application/x-subrip": ".srt",
	"application/json": ".json", "application/x-ndjson": ".ndjson", "application/yaml": ".yaml", "text/yaml": ".yaml", "application/x-yaml": ".yaml",
	"message/rfc822": ".eml", "application/zip": ".zip", "application/pdf": ".pdf",
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document":   ".docx",
	"application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx",
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":         ".xlsx",
}

// vague are types that clients send when they do not know; then the ending of
// the id is asked first.
var vague = []string{"", "application/octet-stream", "application/x-www-form-urlencoded", "binary/octet-stream", "text/plain"}

// readMeta reads what a request says of the document.
func readMeta(r *http.Request, id string) (inbox.Meta, error) {
	m := inbox.Meta{ID: id}
	if err := noQuery(r); err != nil {
		return m, err
	}
	for name := range r.Header {
		if strings.HasPrefix(name, "Footnote-") && !slices.Contains(describes, name) {
			return m, problem{Status: http.StatusBadRequest, Field: name, Detail: "There is no such header; use " + strings.Join(describes, ", ") + "."}
		}
	}
	for _, name := range []string{"Content-Encoding", "Content-Range"} {
		if r.Header.Get(name) != "" {
			return m, problem{Status: http.StatusBadRequest, Field: name, Detail: "Send the document whole and as it is, without " + name + "."}
		}
	}
	var modified string
	for name, to := range map[string]*string{hTitle: &m.Title, hLink: &m.Link, hAuthor: &m.Author, hModified: &modified} {
		var err error
		if *to, err = one(r.Header, name); err != nil {
			return m, err
		}
	}
	var errs [3]error
	m.Modified, errs[0] = readTime(modified)
	m.Access, errs[1] = readAccess(r.Header.Values(hAccess))
	m.Name, errs[2] = readName(r.Header.Get("Content-Type"), id)
	return m, errors.Join(errs[:]...)
}

func noQuery(r *http.Request) error {
	if r.URL.RawQuery == "" {
		return nil
	}
	return problem{Status: http.StatusBadRequest, Detail: "This takes no query: a document is described in headers, for example Footnote-Access: everyone."}
}

// one reads a header that may be there once.
func one(h http.Header, name string) (string, error) {
	values := h.Values(name)
	if len(values) == 0 {
		return "", nil
	}
	v, err := decoded(values[0])
	if err != nil || len(values) > 1 {
		return "", problem{Status: http.StatusUnprocessableEntity, Field: name, Detail: "Send it once, as percent-encoded UTF-8; a percent sign is %25."}
	}
	return v, nil
}

func decoded(v string) (string, error) {
	out, err := url.PathUnescape(v)
	if err == nil && !utf8.ValidString(out) {
		err = errors.New("it is no UTF-8")
	}
	return strings.TrimSpace(out), err
}

// readTime reads a time; none is the zero time.
func readTime(v string) (time.Time, error) {
	if v == "" {
		return time.Time{}, nil
	}
	for _, form := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(form, v); err == nil {
			return t, nil
		}
	}
	t, err := http.ParseTime(v)
	if err != nil {
		return t, problem{Status: http.StatusUnprocessableEntity, Field: hModified, Detail: "It is no time; send for example 2031-04-01T09:00:00Z."}
	}
	return t, nil
}

// readAccess reads the principals of all such headers. A comma separates, and
// so does a percent-encoded one: no principal holds any.
//
// SECURITY: no header, a blank one and an empty entry give no document to
// anybody.
func readAccess(values []string) ([]string, error) {
	if len(values) == 0 {
		return nil, problem{Status: http.StatusUnprocessableEntity, Field: hAccess, Detail: "Say who may read the document, for example Footnote-Access: everyone, or group:NAME, user:NAME, an e-mail address; several with commas."}
	}
	v, err := decoded(strings.Join(values, ","))
	if err != nil {
		return nil, problem{Status: http.StatusUnprocessableEntity, Field: hAccess, Detail: "Send it as percent-encoded UTF-8; a percent sign is %25."}
	}
	return strings.Split(v, ","), nil
}

// readName makes the name that tells the format.
func readName(contentType, id string) (string, error) {
	base := path.Base(id)
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil && contentType != "" {
		return "", unread(contentType)
	}
	ending := endings[kind]
	switch {
	case ending != "":
		return named(base, ending), nil
	case !slices.Contains(vague, kind):
		return "", unread(kind)
	case path.Ext(base) != "" && extract.Supported(base):
		return named(base, path.Ext(base)), nil
	case kind == "text/plain":
		return named(base, ".txt"), nil
	}
	return "", unread("of this kind")
}

// named is the last part of an id with the ending, which a document without a
// title of its own is called by.
func named(base, ending string) string {
	if !strings.EqualFold(path.Ext(base), ending) {
		base += ending
	}
	if len(base) > inbox.MaxName {
		return "document" + ending
	}
	return base
}

func unread(kind string) error {
	return problem{Status: http.StatusUnsupportedMediaType, Field: "Content-Type", Detail: fmt.Sprintf(
		"%q is not read; send a Content-Type such as text/markdown, text/html, text/plain or application/pdf, or an id that ends in .md, .html, .pdf, .docx, …", kind)}
}

// readCondition reads If-Match and If-None-Match.
func readCondition(h http.Header) (inbox.Condition, error) {
	match, none := strings.Join(h.Values("If-Match"), ","), strings.Join(h.Values("If-None-Match"), ",")
	switch {
	case match == "" && none == "":
		return inbox.Condition{}, nil
	case none == "*" && match == "":
		return inbox.Condition{Absent: true}, nil
	case none == "" && match == "*":
		return inbox.Condition{Any: true}, nil
	case none == "":
		var c inbox.Condition
		for tag := range strings.SplitSeq(match, ",") {
			tag, quoted := strings.CutPrefix(strings.TrimSpace(tag), `"`)
			tag, closed := strings.CutSuffix(tag, `"`)
			if !quoted || !closed || tag == "" {
				return c, badCondition()
			}
			c.Tags = append(c.Tags, tag)
		}
		return c, nil
	}
	return inbox.Condition{}, badCondition()
}

func badCondition() error {
	return problem{Status: http.StatusBadRequest, Detail: `Send If-Match with "TAG" of an ETag or with *, or If-None-Match: *, and not both.`}
}
