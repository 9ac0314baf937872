package redisindex

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"footnote/acl"
	"footnote/retrieval"
)

// FuzzDecoders: whatever lies in the server, decoding gives a value or an
// error, and what decodes as a list encodes to the same list.
func FuzzDecoders(f *testing.F) {
	list := pack(acl.NewList(acl.Everyone, "group:hr"))
	r := &record{pub: strings.Repeat("a", pubLen), meta: meta{Revision: "r1"}, Chunks: 1, list: everyone}
	raw, err := r.encode()
	must(f, err)
	for _, s := range []string{"", list, raw, raw[:20], encodeEntry(share{3, 9}, everyone), encodeName("d", "r"), encodeContents(3, []string{"ta", "tb"}),
		hidden(time.Unix(1, 0)), accessOverlay(everyone), string(encodePostings(nil, -1, 4, 2, 9)), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "9:a", "-1 x",
		"p:{n}:c:aaaa:1", "p:{n}:c:aaaa:-1", "p:{n}:c::1"} {
		f.Add(s)
	}
	k := newKeys("p", "n")
	f.Fuzz(func(t *testing.T, s string) {
		if l, err := unpack(s); err == nil {
			again, err := unpack(pack(l))
			if err != nil || !again.Equal(l) {
				t.Errorf("the list [%s] comes back as [%s], %v", l, again, err)
			}
		}
		if p, err := k.placeOf(s); err == nil && k.chunk(p) != s {
			t.Errorf("the key %q comes back as %q", s, k.chunk(p))
		}
		_, _ = decodeRecord(s)
		_, _, _ = decodeEntry(s)
		_, _ = decodeName(s)
		_, _, _ = decodeContents(s)
		_, _ = decodeOverlay(s)
		_, _ = decodePassage(s, retrieval.ChunkID{})
		_, _ = unpackVector(s, 3)
		what, at, ok := gather(newState(), "token@1-1", []redis.XMessage{{ID: "1-1", Values: map[string]any{"o" + s: s, "a" + s: s, "f": "", "t": "token"}}})
		if !ok || at != "1-1" || s != "" && (what.overlay[s] != s || what.directory[s] != s) {
			t.Errorf("the log says %q at %s, %v", what, at, ok)
		}
		if next, err := newState().next(said{directory: map[string]string{"aaaa": s}}); err == nil && s != "" && (next.visible != 1 || next.chunks < 1) {
			t.Errorf("the entry makes %+v", next)
		}
		last := -1
		_ = decodePostings(s, func(ordinal, count, length int) {
			if ordinal <= last || count < 1 || count > length || length > saturated {
				t.Errorf("postings of %d, %d times in %d, after %d", ordinal, count, length, last)
			}
			last = ordinal
		})
	})
}

func TestPostingsComeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type posting struct{ Ordinal, Count, Length int }
		var want, got []posting
		var b []byte
		last := -1
		for range rapid.IntRange(0, 20).Draw(t, "n") {
			p := posting{Ordinal: last + rapid.IntRange(1, 3000).Draw(t, "step"), Length: rapid.IntRange(1, saturated).Draw(t, "length")}
			p.Count = rapid.IntRange(1, p.Length).Draw(t, "count")
			b = encodePostings(b, last, p.Ordinal, p.Count, p.Length)
			last, want = p.Ordinal, append(want, p)
		}
		if err := decodePostings(string(b), func(o, c, l int) { got = append(got, posting{o, c, l}) }); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	})
}

func TestDamagedPostings(t *testing.T) {
	t.Parallel()
	varints := func(ns ...uint64) string {
		var b []byte
		for _, n := range ns {
			b = binary.AppendUvarint(b, n)
		}
		return string(b)
	}
	for name, s := range map[string]string{
		"cut short": varints(1, 1), "the same chunk twice": varints(1, 1, 1, 0, 1, 1), "no occurrence": varints(1, 0, 5),
		"more occurrences than terms": varints(1, 6, 5), "too long": varints(1, 1, saturated+1), "far away": varints(1<<40, 1, 1),
	} {
		if err := decodePostings(s, func(int, int, int) {}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	s, err := newState().next(said{directory: map[string]string{"aaaa": encodeEntry(share{2, 4}, everyone)}})
	must(t, err)
	var none *list
	if _, err := none.bring(s, map[string]string{"aaaa": varints(3, 1, 2)}); err == nil {
		t.Error("a chunk beyond the document: no error")
	}
}
