package acl

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"footnote/acl/internal/bypass"
)

// List is a document's access list: who may read it. Its zero value admits
// nobody; a document with the zero list is refused at ingestion, not public.
type List struct{ principals []Principal }

// NewList makes a list, sorted and without doubles. The empty principal names
// nobody and is left out.
func NewList(principals ...Principal) List {
	p := slices.DeleteFunc(slices.Clone(principals), func(p Principal) bool { return p == "" })
	slices.Sort(p)
	return List{slices.Compact(p)}
}

// ParseList reads entries as ParsePrincipal does. No entries is an error: an
// empty list is far more often a mistake than a wish.
func ParseList(entries []string) (List, error) {
	if len(entries) == 0 {
		return List{}, fmt.Errorf("an access list needs at least one principal, for example everyone")
	}
	ps := make([]Principal, 0, len(entries))
	for _, e := range entries {
		p, err := ParsePrincipal(e)
		if err != nil {
			return List{}, err
		}
		ps = append(ps, p)
	}
	return NewList(ps...), nil
}

// Principals returns a copy, sorted.
func (l List) Principals() []Principal { return slices.Clone(l.principals) }

// IsZero reports that the list admits nobody.
func (l List) IsZero() bool { return len(l.principals) == 0 }

// Equal reports that both lists name the same principals.
func (l List) Equal(o List) bool { return slices.Equal(l.principals, o.principals) }

// String lists the principals, separated by ", ".
func (l List) String() string { return join(l.principals) }

// meets reports whether the list names a principal of the clause.
func (l List) meets(c []Principal) bool {
	for _, p := range l.principals {
		if _, ok := slices.BinarySearch(c, p); ok {
			return true
		}
	}
	return false
}

// Identity is an authenticated person: the id that the platform vouches for
// and every principal that the person holds. The zero Identity holds nothing.
type Identity struct {
	id         Principal
	principals []Principal
}

// NewIdentity makes an identity that holds its own id and the principals
// given. Callers pass only what they have verified.
func NewIdentity(id Principal, holds ...Principal) Identity {
	if id == "" {
		return Identity{}
	}
	return Identity{id: id, principals: NewList(append(slices.Clone(holds), id)...).principals}
}

// ID returns the person's own principal, "" for the zero Identity.
func (i Identity) ID() Principal { return i.id }

// Principals returns a copy of what the person holds, sorted.
func (i Identity) Principals() []Principal { return slices.Clone(i.principals) }

// Audience is everyone who will be able to read a reply, besides the asker.
// The zero Audience permits nothing: an audience must be stated.
type Audience struct {
	stated  bool
	private bool
	viewers [][]Principal
}

// AskerOnly is the audience of direct and ephemeral messages.
func AskerOnly() Audience { return Audience{stated: true, private: true} }

// Room is the audience of a shared place. Each viewer stands for a person or
// a class of people who can read there, by the principals known to be held; a
// document qualifies only if every viewer may read it. A viewer without
// principals qualifies nothing, and so does a room without viewers.
func Room(viewers ...[]Principal) Audience {
	a := Audience{stated: true}
	for _, v := range viewers {
		a.viewers = append(a.viewers, NewList(v...).principals)
	}
	return a
}

// Private reports that only the asker will see the reply.
func (a Audience) Private() bool { return a.private }

// Grant is the authority of one question: the asker's and the audience's.
// It can be made only here, and its zero value admits nothing. Grants are
// values and safe for concurrent use.
type Grant struct {
	clauses [][]Principal
	system  bool
}

// NewGrant combines asker and audience. Anything unknown on either side
// yields a grant that admits nothing.
//
// SECURITY: the only way to a grant for a person.
func NewGrant(asker Identity, audience Audience) Grant {
	if !audience.stated || len(asker.principals) == 0 || !audience.private && len(audience.viewers) == 0 {
		return Grant{}
	}
	clauses := [][]Principal{asker.principals}
	for _, v := range audience.viewers {
		if !slices.ContainsFunc(clauses, func(c []Principal) bool { return slices.Equal(c, v) }) {
			clauses = append(clauses, v)
		}
	}
	return Grant{clauses: clauses}
}

// Bypass makes the grant that admits every document with a list. Only
// acl/system can name the token's type.
//
// SECURITY: see acl/system.
func Bypass(bypass.Token) Grant { return Grant{system: true} }

// Admits reports whether the grant lets a document with this list through.
//
// SECURITY: the access decision; every read path ends here or in an
// equivalent that the conformance suite compares with it.
func (g Grant) Admits(l List) bool {
	if l.IsZero() || !g.system && len(g.clauses) == 0 {
		return false
	}
	for _, c := range g.clauses {
		if !l.meets(c) {
			return false
		}
	}
	return true
}

// System reports that this is the bypass, which has no clauses to filter by.
func (g Grant) System() bool { return g.system }

// Clauses returns a copy of the conjunction for indexes that evaluate it
// themselves: a document must meet every clause; no clauses means no access
// unless System.
func (g Grant) Clauses() [][]Principal {
	out := make([][]Principal, len(g.clauses))
	for i, c := range g.clauses {
		out[i] = slices.Clone(c)
	}
	return out
}

// Digest identifies the effective access set, for cache keys: equal digests
// admit the same documents. It reveals no principal.
func (g Grant) Digest() string {
	b := []byte{0}
	if g.system {
		b[0] = 1
	}
	for _, c := range g.clauses {
		b = binary.AppendUvarint(b, uint64(len(c)))
		for _, p := range c {
			b = append(binary.AppendUvarint(b, uint64(len(p))), p...)
		}
	}
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:16])
}

// Explain says in one sentence for the operator why a document with this
// list is or is not admitted. It names principals: never show it to askers.
func (g Grant) Explain(l List) string {
	switch {
	case l.IsZero():
		return "denied: the document has no access list"
	case g.system:
		return "admitted: operator's bypass"
	case len(g.clauses) == 0:
		return "denied: the grant is empty (unknown asker or audience)"
	}
	for i, c := range g.clauses {
		if !l.meets(c) {
			who := "the asker"
			if i > 0 {
				who = fmt.Sprintf("viewer %d of the room", i)
			}
			return fmt.Sprintf("denied: %s holds none of [%s], only [%s]", who, l, join(c))
		}
	}
	return fmt.Sprintf("admitted: all %d clauses meet [%s]", len(g.clauses), l)
}

func join(ps []Principal) string {
	s := make([]string, len(ps))
	for i, p := range ps {
		s[i] = string(p)
	}
	return strings.Join(s, ", ")
}
