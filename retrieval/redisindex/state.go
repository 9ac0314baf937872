package redisindex

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"footnote/acl"
	"footnote/retrieval"
)

// state is what a search must know before it asks, of one version of a
// generation. It never changes. The next one is made of it by what changed, and
// shares with it what did not: docs, lists and deltas only ever grow at their
// ends.
type state struct {
	version string
	at      string             // the last entry of the log that is in it, "" unknown
	number  int                // counts the states that this process has seen
	overlay map[string]overlay // by publication

	*table
	docs    []doc
	force   []int // by doc: place in lists of the list in force; gone: not visible
	lists   []acl.List
	deltas  []delta
	visible int // docs
	chunks  int // of visible docs
	span    int // chunks that have numbers
}

// table is what states have in common that number documents alike.
type table struct {
	id      int
	before  int   // the table that was numbered anew to make this one
	moved   []int // by doc of that: the number here, or gone
	mu      sync.Mutex
	places  map[string]int // publication -> docs
	numbers map[string]int // packed list -> lists; for extend alone
}

const gone = -1

// doc is a publication that is visible, or was. Its chunks have the
// consecutive numbers from base on.
type doc struct {
	pub  string
	base int
	share
}

// share is what a publication adds to the statistics.
type share struct {
	chunks int
	length int // terms of all chunks, each chunk's saturated
}

// delta is a change of what a list admits, times +1 or -1.
type delta struct {
	list int
	sign int
	share
}

// overlay is a publication whose chunks do not say what is in force.
type overlay struct {
	hidden bool // being written or being deleted
	since  time.Time
	list   acl.List // in force, where it is not hidden
}

func newState() *state {
	return &state{overlay: map[string]overlay{}, table: &table{places: map[string]int{}, numbers: map[string]int{}}}
}

// find is the number of a publication's document, or gone.
func (s *state) find(pub string) int {
	s.mu.Lock()
	n, ok := s.places[pub]
	s.mu.Unlock()
	if !ok || n >= len(s.docs) {
		return gone
	}
	if s.force[n] == gone {
		return gone
	}
	return n
}

// since are the visible publications from a document on.
func (s *state) since(doc int) (pubs []string) {
	for n := doc; n < len(s.docs); n++ {
		if s.force[n] != gone {
			pubs = append(pubs, s.docs[n].pub)
		}
	}
	return pubs
}

// covers reports that whatever a later state admits this one admits, too, and by
// the same clauses of a filter.
func (s *state) covers(later *state) bool {
	if s.table != later.table {
		return false
	}
	for n, list := range later.force {
		if list != gone && (n >= len(s.force) || s.force[n] != list) {
			return false
		}
	}
	for pub, o := range later.overlay {
		if was, ok := s.overlay[pub]; !o.hidden && (!ok || was.hidden || !was.list.Equal(o.list)) {
			return false
		}
	}
	return true
}

// said is what became of publications: their overlay and their entry in the
// directory, "" none. Both are as the server has them.
type said struct{ overlay, directory map[string]string }

func newSaid() said { return said{map[string]string{}, map[string]string{}} }

// news is what became of a visible publication.
type news struct {
	pub    string
	gone   bool
	packed string
	list   acl.List
	share
}

func decodeNews(pub, entry string) (n news, err error) {
	if !isPlain(pub) {
		return n, fmt.Errorf("%w: the directory's publication %q", retrieval.ErrCorrupt, pub)
	}
	if n = (news{pub: pub, gone: entry == ""}); n.gone {
		return n, nil
	}
	if n.share, n.packed, err = decodeEntry(entry); err == nil {
		n.list, err = unpack(n.packed)
	}
	if err != nil {
		return n, fmt.Errorf("%w: the directory's entry of publication %q: %w", retrieval.ErrCorrupt, pub, err)
	}
	return n, nil
}

// The overlay's values are h and the time of hiding in Unix milliseconds, or a
// and the packed list.
func hidden(at time.Time) string         { return "h" + strconv.FormatInt(at.UnixMilli(), 10) }
func accessOverlay(list acl.List) string { return "a" + pack(list) }

func decodeOverlay(v string) (overlay, error) {
	switch {
	case v != "" && v[0] == 'h':
		ms, err := strconv.ParseInt(v[1:], 10, 64)
		return overlay{hidden: true, since: time.UnixMilli(ms)}, err
	case v != "" && v[0] == 'a':
		list, err := unpack(v[1:])
		return overlay{list: list}, err
	}
	return overlay{}, errors.New("neither hidden nor a list")
}

// An entry of the directory is the share of a visible publication, two
// varints, and its packed access list.
func encodeEntry(s share, list acl.List) string {
	b := binary.AppendUvarint(nil, uint64(s.chunks))
	b = binary.AppendUvarint(b, uint64(s.length))
	return string(b) + pack(list)
}

func decodeEntry(v string) (s share, packed string, err error) {
	b := []byte(v)
	for _, to := range []*int{&s.chunks, &s.length} {
		n, size := binary.Uvarint(b)
		if size <= 0 || n > 1<<40 {
			return share{}, "", errors.New("the entry is cut short")
		}
		*to, b = int(n), b[size:]
	}
	if s.chunks < 1 || s.chunks > 1<<24 {
		return share{}, "", errors.New("the entry has a number of chunks that cannot be")
	}
	return s, string(b), nil
}
