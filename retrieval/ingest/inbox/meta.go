package inbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"footnote/acl"
	"footnote/retrieval"
	"footnote/retrieval/extract"
)

// Limits of what is said of a document.
const (
	MaxID     = 512  // bytes
	MaxName   = 255  // bytes
	MaxTitle  = 500  // bytes
	MaxAuthor = 200  // bytes
	MaxLink   = 2048 // bytes
	MaxAccess = 100  // principals
)

// Refusal says what is wrong with what was sent, in words for the sender. It
// holds nothing of the content.
type Refusal struct {
	Field  string // id, name, title, link, author, mark, modified, access or content
	Reason string // goes on after the field: "is empty"
}

func (r *Refusal) Error() string { return r.Field + " " + r.Reason }

// Meta is what a sender says of a document.
type Meta struct {
	ID       string    `json:"id"`                // see ParseID
	Name     string    `json:"name"`              // of a file: its ending names the format
	Title    string    `json:"title,omitempty"`   // "" the document's own
	Link     string    `json:"link,omitempty"`    // of http or https: opens the original
	Author   string    `json:"author,omitempty"`  // shown to operators and senders alone
	Modified time.Time `json:"modified,omitzero"` // of the original, whole seconds; zero: not known
	Access   []string  `json:"access"`            // as acl.ParseList reads it
	Mark     string    `json:"mark,omitempty"`    // the sender's own note of the version; shown to nobody
}

// ParseID brings an id into its one form, NFC. An id is 1 to 512 bytes of UTF-8
// that can be seen, in parts between slashes; no part is empty, "." or "..", or
// begins or ends with a space, so that two ids are never one path.
func ParseID(s string) (string, error) {
	no := func(reason string) (string, error) { return "", &Refusal{"id", reason} }
	if !utf8.ValidString(s) {
		return no("is no UTF-8")
	}
	id := norm.NFC.String(s)
	switch {
	case id == "":
		return no("is empty")
	case len(id) > MaxID:
		return no(fmt.Sprintf("is longer than %d bytes", MaxID))
	}
	for _, r := range id {
		if !unicode.IsPrint(r) || r == '\\' || r == utf8.RuneError {
			return no(fmt.Sprintf("holds %U, which cannot be in an id", r))
		}
	}
	for part := range strings.SplitSeq(id, "/") {
		switch {
		case part == "":
			return no("begins or ends with a slash, or holds two in a row")
		case part == "." || part == "..":
			return no(`holds a part that is "." or ".."`)
		case strings.TrimSpace(part) != part:
			return no("holds a part that begins or ends with a space")
		}
	}
	return id, nil
}

// checked brings what was sent into its one form, or says what is wrong.
func (m Meta) checked() (Meta, error) {
	id, err := ParseID(m.ID)
	if err != nil {
		return m, err
	}
	m.ID = id
	for _, t := range []struct {
		field string
		value *string
		most  int
	}{{"name", &m.Name, MaxName}, {"title", &m.Title, MaxTitle}, {"author", &m.Author, MaxAuthor}, {"link", &m.Link, MaxLink}, {"mark", &m.Mark, MaxAuthor}} {
		if err := oneLine(t.field, t.value, t.most); err != nil {
			return m, err
		}
	}
	if m.Name == "" || strings.ContainsAny(m.Name, `/\`) || !extract.Supported(m.Name) {
		return m, &Refusal{"name", "does not end as a format that is read does, for example .md, .html, .pdf or .docx"}
	}
	if m.Link != "" && !isLink(m.Link) {
		return m, &Refusal{"link", "is no address of http or https without a user in it"}
	}
	if y := m.Modified.Year(); !m.Modified.IsZero() && (y < 1900 || y > 9999) {
		return m, &Refusal{"modified", "is not a time from 1900 on"}
	}
	m.Modified = m.Modified.UTC().Truncate(time.Second)
	m.Access, err = access(m.Access)
	return m, err
}

// access reads the list into its one form.
//
// SECURITY: none, an empty one and one that cannot be understood are refused.
func access(entries []string) ([]string, error) {
	if len(entries) > MaxAccess {
		return nil, &Refusal{"access", fmt.Sprintf("names more than %d principals", MaxAccess)}
	}
	list, err := acl.ParseList(entries)
	if err != nil {
		return nil, &Refusal{"access", "cannot be used: " + err.Error()}
	}
	out := []string{}
	for _, p := range list.Principals() {
		out = append(out, string(p))
	}
	return out, nil
}

func oneLine(field string, value *string, most int) error {
	v := norm.NFC.String(strings.TrimSpace(*value))
	switch {
	case !utf8.ValidString(v):
		return &Refusal{field, "is no UTF-8"}
	case len(v) > most:
		return &Refusal{field, fmt.Sprintf("is longer than %d bytes", most)}
	case strings.ContainsFunc(v, func(r rune) bool { return !unicode.IsPrint(r) && !unicode.Is(unicode.Zs, r) || r == utf8.RuneError }):
		return &Refusal{field, "holds a character that does not show"}
	}
	*value = v
	return nil
}

func isLink(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && !strings.ContainsAny(s, " <>\"|\\")
}

// Entry is a document that the inbox holds.
type Entry struct {
	Meta
	Size     int64     `json:"size"`     // bytes of the content
	Sum      string    `json:"sha256"`   // of the content, hex
	Received time.Time `json:"received"` // when it last changed
}

// List is the access list. It is never zero: what is stored was checked.
func (e Entry) List() acl.List {
	l, err := acl.ParseList(e.Access)
	if err != nil {
		return acl.List{}
	}
	return l
}

// Revision names what ingestion publishes: content and all that shows of the
// description, but not the access list.
func (e Entry) Revision() retrieval.Revision {
	shown := e.Meta
	shown.Access, shown.Author, shown.Mark = nil, "", ""
	return retrieval.Revision(hash(shown, e.Sum))
}

// Tag changes with anything that a sender sets. It is "" for the zero Entry.
func (e Entry) Tag() string {
	if e.ID == "" {
		return ""
	}
	return hash(e.Meta, e.Sum)
}

// hash is 16 hex digits.
func hash(m Meta, content string) string {
	head, _ := json.Marshal(m) // it has no value that could fail
	sum := sha256.Sum256(slices.Concat(head, []byte(content)))
	return hex.EncodeToString(sum[:8])
}
