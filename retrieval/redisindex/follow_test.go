package redisindex

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"footnote/acl"
	"footnote/acl/system"
	"footnote/retrieval"
	"footnote/retrieval/indextest"
	"footnote/retrieval/redisindex/redistest"
)

// plainly is a state without its numbers, which depend on what this process
// has seen.
type plainly struct {
	Version         string
	Overlay, Shown  map[string]string // publication -> what is in force
	Visible, Chunks int
	Views           []string // of grants
}

var onlookers = []acl.Grant{system.Grant(), member(), member("hr"), acl.NewGrant(acl.NewIdentity("user:eve", acl.Group("hr"), acl.Group("it")), acl.AskerOnly())}

func (s *state) plainly(vs *views) plainly {
	p := plainly{s.version, map[string]string{}, map[string]string{}, s.visible, s.chunks, nil}
	for pub, o := range s.overlay {
		p.Overlay[pub] = fmt.Sprint(o.hidden, o.since.UnixMilli(), o.list)
	}
	for n, d := range s.docs {
		if s.force[n] != gone {
			p.Shown[d.pub] = fmt.Sprint(d.share, s.lists[s.force[n]])
		}
	}
	for _, grant := range onlookers {
		p.Views = append(p.Views, fmt.Sprint(vs.of(s, grant).share))
	}
	return p
}

// anew reads the generation as a process that knows nothing of it.
func anew(g *Generation) *Generation { return newGeneration(g.client, g.o, g.manifest) }

// saved is all keys of a generation as a backup has them.
type saved map[string]string

func (w *followed) save() saved {
	out := saved{}
	for _, k := range w.g.client.Keys(w.t.Context(), w.g.keys.index+":*").Val() {
		v, err := w.g.client.Dump(w.t.Context(), k).Result()
		must(w.t, err)
		out[k] = v
	}
	return out
}

func (w *followed) restore(from saved) {
	ctx := w.t.Context()
	_, err := w.g.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for _, k := range w.g.client.Keys(ctx, w.g.keys.index+":*").Val() {
			p.Del(ctx, k)
		}
		for k, v := range from {
			p.Restore(ctx, k, 0, v)
		}
		return nil
	})
	must(w.t, err)
}

// followed is a generation that some change while others follow it.
type followed struct {
	t       *testing.T
	g       *Generation
	readers []*Generation
	late    *late
	backup  saved
	n       int
}

// late is a client to which something happens between looking and asking.
type late struct {
	client  redis.UniversalClient
	reader  *Generation
	happens func() // once, before the next query
	queries int
}

func newLate(t *testing.T, s *Store) *late {
	l := &late{client: openAt(t, redistest.URL(t), Options{Prefix: s.o.Prefix}).client}
	l.client.AddHook(hook{pipeline: func(cmds []redis.Cmder) {
		if !slices.ContainsFunc(cmds, func(c redis.Cmder) bool { return strings.EqualFold(c.Name(), "ft.search") }) {
			return
		}
		l.queries++
		if do := l.happens; do != nil {
			l.happens = nil
			do()
		}
	}})
	return l
}

func (w *followed) change(t *rapid.T) {
	ctx, id := w.t.Context(), retrieval.DocumentID(fmt.Sprintf("d%d", rapid.IntRange(0, 5).Draw(t, "document")))
	list := acl.NewList(rapid.SampledFrom([]acl.Principal{acl.Everyone, acl.Group("hr"), acl.Group("it")}).Draw(t, "list"))
	words := rapid.SliceOfN(rapid.SampledFrom([]string{"key", "door", "key key", "lock"}), 1, 4).Draw(t, "chunks")
	w.n++
	p := indextest.Publication(string(id), fmt.Sprint("r", w.n), list, words...)
	switch what := rapid.IntRange(0, 13).Draw(t, "change"); what {
	case 0, 1, 2, 3, 4:
		must(w.t, w.g.Publish(ctx, p))
	case 5, 6:
		must(w.t, w.g.Remove(ctx, id))
	case 7, 8:
		_ = w.g.SetAccess(ctx, id, list) // or there is none
	case 9: // a writer ends before its publication is visible, and cleans up or not
		r := newRecord(p)
		_, err := w.g.stage(ctx, p, r.pub)
		must(w.t, err)
		if rapid.Bool().Draw(t, "discard") {
			w.g.discard(ctx, r.pub, true)
		}
	case 10: // or before the tags have followed
		if old, err := w.g.record(ctx, id); err == nil && old != nil {
			next := *old
			next.list = list
			_, err := w.g.swap(ctx, "", id, old, &next)
			must(w.t, err)
		}
	case 11:
		must(w.t, w.g.client.XTrimMaxLen(ctx, w.g.keys.log, int64(rapid.IntRange(0, 3).Draw(t, "left"))).Err())
	case 12: // a program that knows no log
		must(w.t, w.g.Publish(ctx, p))
		must(w.t, w.g.client.Set(ctx, w.g.keys.version, newVersion(), 0).Err())
		if rapid.Bool().Draw(t, "no log at all") {
			must(w.t, w.g.client.Del(ctx, w.g.keys.log).Err())
		}
	case 13: // the server is restored from a backup
		if w.backup == nil || rapid.Bool().Draw(t, "save") {
			w.backup = w.save()
		} else {
			w.restore(w.backup)
		}
	}
}

func (w *followed) check(t *rapid.T) {
	fresh := anew(w.g)
	want, err := fresh.fetch(w.t.Context())
	must(w.t, err)
	for i, r := range w.readers {
		if i > 0 && !rapid.Bool().Draw(t, "looks") {
			continue
		}
		got, err := r.look(w.t.Context())
		must(w.t, err)
		if d := cmp.Diff(want.plainly(&fresh.views), got.plainly(&r.views)); d != "" {
			t.Fatalf("reader %d follows to another state (-read whole +followed):\n%s", i, d)
		}
		for _, grant := range onlookers {
			words := rapid.SampledFrom([]string{"key", "door", "key door", "lock key"}).Draw(t, "words")
			if d := cmp.Diff(find(w.t, fresh, grant, words), find(w.t, r, grant, words)); d != "" {
				t.Fatalf("reader %d finds (-a new reader +reader):\n%s", i, d)
			}
		}
	}
}

// checkLate searches while something happens between the look and the question.
// What is found is what is there afterwards.
func (w *followed) checkLate(t *rapid.T) {
	words := rapid.SampledFrom([]string{"key", "door", "key door", "lock key"}).Draw(t, "words")
	grant := rapid.SampledFrom(onlookers).Draw(t, "onlooker")
	q := retrieval.Query{Terms: strings.Fields(words), Vector: indextest.Vector(30), Depth: rapid.SampledFrom([]int{1, 3, 1000}).Draw(t, "depth"), Count: []string{"key", "lock"}}
	w.late.happens = func() { w.change(t) }
	got, err := w.late.reader.Search(w.t.Context(), grant, q)
	must(w.t, err)
	if w.late.happens != nil { // nothing was admitted, so nothing was asked
		w.late.happens = nil
		return
	}
	want, err := anew(w.g).Search(w.t.Context(), grant, q)
	must(w.t, err)
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("a late change (-found afterwards +found):\n%s", d)
	}
}

// TestFollowing: whatever happened, who followed knows what a process that
// reads all of it knows, and finds the same.
func TestFollowing(t *testing.T) {
	t.Parallel()
	s := openStore(t, Options{})
	late := newLate(t, s)
	rapid.Check(t, func(r *rapid.T) {
		w := &followed{t: t, g: create(t, s), late: late}
		late.reader = newGeneration(late.client, s.o, w.g.manifest)
		for range 3 {
			w.readers = append(w.readers, anew(w.g))
		}
		for range rapid.IntRange(1, 25).Draw(r, "rounds") {
			for range rapid.IntRange(1, 3).Draw(r, "changes") {
				w.change(r)
			}
			w.check(r)
			w.checkLate(r)
		}
	})
}

// TestLosingIsNoReasonToAskAgain: what changes between the look and the question
// has the vectors compared again only if more may be seen by it.
func TestLosingIsNoReasonToAskAgain(t *testing.T) {
	t.Parallel()
	s := openStore(t, Options{})
	for name, c := range map[string]struct {
		happens func(g *Generation) error
		queries int
		sees    string // documents
	}{
		"nothing": {func(*Generation) error { return nil }, 1, "a b c"},
		"a publication is written": {func(g *Generation) error {
			p := indextest.Publication("d", "r1", everyone, "key")
			_, err := g.stage(t.Context(), p, newRecord(p).pub)
			return err
		}, 1, "a b c"},
		"a document is removed": {func(g *Generation) error { return g.Remove(t.Context(), "b") }, 1, "a c"},
		"a document nobody here sees": {func(g *Generation) error {
			return g.Publish(t.Context(), indextest.Publication("hr", "r2", acl.NewList("group:hr"), "key"))
		}, 2, "a b c"},
		"a document is published": {func(g *Generation) error {
			return g.Publish(t.Context(), indextest.Publication("d", "r1", everyone, "key"))
		}, 2, "a b c d"},
		"a document is opened": {func(g *Generation) error { return g.SetAccess(t.Context(), "hr", everyone) }, 2, "a b c hr"},
		"a document is closed": {func(g *Generation) error { return g.SetAccess(t.Context(), "a", acl.NewList("group:hr")) }, 2, "b c"},
		"a document is closed and opened again, which its tags do not say yet": {func(g *Generation) error {
			err := g.SetAccess(t.Context(), "a", acl.NewList("group:hr"))
			old, err2 := g.record(t.Context(), "a")
			if err := errors.Join(err, err2); err != nil {
				return err
			}
			next := *old
			next.list = everyone
			_, err = g.swap(t.Context(), "", "a", old, &next)
			return err
		}, 2, "a b c"},
		"all are removed": {func(g *Generation) error {
			return errors.Join(g.Remove(t.Context(), "a"), g.Remove(t.Context(), "b"), g.Remove(t.Context(), "c"))
		}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := create(t, s)
			for _, id := range []string{"a", "b", "c"} {
				publish(t, g, id, "r1", everyone, "key "+id)
			}
			publish(t, g, "hr", "r1", acl.NewList("group:hr"), "key")
			l := newLate(t, s)
			reader := newGeneration(l.client, g.o, g.manifest)
			find(t, reader, member(), "key")
			l.queries, l.happens = 0, func() { must(t, c.happens(g)) }
			found := find(t, reader, member(), "key")
			var sees []string
			for _, h := range found.Lexical {
				sees = append(sees, string(h.ID.Document))
			}
			slices.Sort(sees)
			if got := strings.Join(sees, " "); got != c.sees || l.queries != c.queries || len(found.Dense) != len(sees) || found.Chunks != len(sees) || found.Holding["key"] != len(sees) {
				t.Errorf("%d queries find %+v; want %d and %q", l.queries, found, c.queries, c.sees)
			}
		})
	}
}

// TestManyFollowTogether: searches of one process, which share what they know,
// each see whole documents while others change them.
func TestManyFollowTogether(t *testing.T) {
	t.Parallel()
	g := create(t, openStore(t, Options{}))
	sizes := []string{"shared", "shared two", "shared three of it"}
	write := func(n int) error {
		id, size := fmt.Sprint("d", n%4), n%len(sizes)+1
		switch n % 7 {
		case 3:
			return g.Remove(context.Background(), retrieval.DocumentID(id))
		case 5:
			if err := g.SetAccess(context.Background(), retrieval.DocumentID(id), acl.NewList(acl.Group("hr"), acl.Principal(fmt.Sprint("group:", n)))); !errors.Is(err, retrieval.ErrNotFound) {
				return err
			}
		}
		return g.Publish(context.Background(), indextest.Publication(id, fmt.Sprint(size), everyone, sizes[:size]...))
	}
	reader := again(t, g)
	ctx, stop := context.WithCancel(t.Context())
	var searchers, writers sync.WaitGroup
	for i, grant := range []acl.Grant{system.Grant(), member(), member("hr"), member()} {
		searchers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				q := retrieval.Query{Terms: []string{"shared"}, Depth: 1000, Count: []string{"shared"}}
				if (n+i)%3 > 0 {
					q.Vector = indextest.Vector(30)
				}
				c, err := reader.Search(context.Background(), grant, q)
				if err == nil {
					err = seesWhole(c, q.Vector != nil)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for w := range 2 {
		writers.Go(func() {
			for n := w; n < 160; n += 2 {
				if err := write(n); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	stop()
	searchers.Wait()
}

// seesWhole reports what is wrong with hits of documents whose revisions say
// their number of chunks.
func seesWhole(c retrieval.Candidates, dense bool) error {
	lexical, near := map[string]int{}, map[string]int{}
	for _, h := range c.Lexical {
		lexical[string(h.ID.Document)+"@"+string(h.ID.Revision)]++
	}
	for _, h := range c.Dense {
		near[string(h.ID.Document)+"@"+string(h.ID.Revision)]++
	}
	for name, n := range lexical {
		if !strings.HasSuffix(name, fmt.Sprint("@", n)) {
			return fmt.Errorf("%s is seen with %d chunks", name, n)
		}
	}
	if dense && !maps.Equal(lexical, near) || c.Chunks != len(c.Lexical) || c.Holding["shared"] != len(c.Lexical) {
		return fmt.Errorf("of %d chunks %d hold the word; by words %v, by vectors %v", c.Chunks, c.Holding["shared"], lexical, near)
	}
	return nil
}

// TestFollowingReadsNothingElse: a process that follows does not read the
// directory again, unless the log does not reach back to what it knows.
func TestFollowingReadsNothingElse(t *testing.T) {
	t.Parallel()
	g := create(t, openStore(t, Options{}))
	publish(t, g, "doc", "r1", everyone, "key one")
	reader := again(t, g)
	whole := 0
	reader.client.AddHook(hook{pipeline: func(cmds []redis.Cmder) {
		if slices.ContainsFunc(cmds, func(c redis.Cmder) bool { return fmt.Sprint(c.Args()...) == fmt.Sprint("hgetall", g.keys.directory) }) {
			whole++
		}
	}})
	ctx := t.Context()
	for _, c := range []struct {
		what  string
		do    func()
		reads int
	}{
		{"the first search", func() {}, 1},
		{"nothing", func() {}, 0},
		{"publications", func() {
			for i := range 30 {
				publish(t, g, fmt.Sprint("d", i%20), fmt.Sprint("r", i), everyone, "key two")
			}
		}, 0},
		{"a removal and a list", func() {
			must(t, g.Remove(ctx, "d3"))
			must(t, g.SetAccess(ctx, "d4", acl.NewList(acl.Group("hr"))))
		}, 0},
		{"the log was cut", func() {
			publish(t, g, "d5", "r9", everyone, "key")
			must(t, g.client.XTrimMaxLen(ctx, g.keys.log, 0).Err())
		}, 1},
		{"it goes on", func() { publish(t, g, "d6", "r9", everyone, "key") }, 0},
		{"a program without log", func() { must(t, g.client.Set(ctx, g.keys.version, newVersion(), 0).Err()) }, 1},
		{"and one with it again", func() { publish(t, g, "d7", "r9", everyone, "key") }, 0},
	} {
		c.do()
		whole = 0
		find(t, reader, member(), "key")
		if whole != c.reads {
			t.Errorf("after %s: the directory was read %d times, want %d", c.what, whole, c.reads)
		}
	}
}

// TestServerWentBack: a server that was restored from a backup shows again what
// was gone, also what lists of terms were read without.
func TestServerWentBack(t *testing.T) {
	t.Parallel()
	w := &followed{t: t, g: create(t, openStore(t, Options{}))}
	reader := anew(w.g)
	see := func(what, words string, want int) {
		t.Helper()
		if c := find(t, reader, member(), words); len(c.Lexical) != want || c.Chunks != len(c.Dense) {
			t.Errorf("%s: %q finds %+v, want %d", what, words, c, want)
		}
	}
	publish(t, w.g, "doc", "r1", everyone, "key one", "key two")
	publish(t, w.g, "other", "r1", everyone, "door")
	backup := w.save()
	see("at first", "door", 1)
	must(t, w.g.Remove(t.Context(), "doc"))
	see("without it", "key", 0)
	w.restore(backup)
	see("restored", "key", 2)
	publish(t, w.g, "new", "r1", everyone, "key")
	see("and changed", "key", 3)
	w.restore(backup)
	publish(t, w.g, "new", "r2", everyone, "key key", "key")
	see("restored and changed at once", "key", 4)
}

// TestLogIsShort: what the log keeps is bounded.
func TestLogIsShort(t *testing.T) {
	t.Parallel()
	g := create(t, openStore(t, Options{}))
	_, err := g.client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for range 2 * logged {
			g.tell(t.Context(), p, nobody)
		}
		return nil
	})
	must(t, err)
	publish(t, g, "doc", "r1", everyone, "key")
	if n := g.client.XLen(t.Context(), g.keys.log).Val(); n < logged || n > logged+200 {
		t.Errorf("the log has %d entries", n)
	}
	if !strings.Contains(move, fmt.Sprintf("'~', %d,", logged)) {
		t.Error("scripts keep another number")
	}
}

// TestVersionsNeverRepeat: a script that is sent again gives another version, or
// none.
func TestVersionsNeverRepeat(t *testing.T) {
	t.Parallel()
	g := create(t, openStore(t, Options{}))
	seen := map[string]bool{}
	look := func(what string) {
		t.Helper()
		v := g.client.Get(t.Context(), g.keys.version).Val()
		if seen[v] {
			t.Errorf("%s: version %s is there again", what, v)
		}
		seen[v] = true
	}
	a, b := acl.NewList(acl.Group("a")), acl.NewList(acl.Group("b"))
	publish(t, g, "doc", "r1", a, "key")
	look("published")
	first, err := g.record(t.Context(), "doc")
	must(t, err)
	next := *first
	next.list = b
	after, err := next.encode()
	must(t, err)
	send := func(from, to string, list acl.List) {
		t.Helper()
		n, err := changeScript.Run(t.Context(), g.client, []string{g.keys.version, g.keys.log, g.keys.documents, g.keys.directory, g.keys.overlay, g.keys.fences},
			"doc", from, to, "", "TOKEN", "", 0, first.pub, accessOverlay(list), encodeEntry(first.share(), list)).Int()
		must(t, err)
		if n != 1 {
			t.Fatalf("the script gives %d", n)
		}
	}
	send(first.raw, after, b)
	look("changed")
	send(after, first.raw, a)
	look("changed back with the same token")
	send(first.raw, after, b)
	look("sent again")
}

// TestNumberingAnew: numbers of what is gone are used up, and given anew before
// they are most; lists of terms and views come along.
func TestNumberingAnew(t *testing.T) {
	t.Parallel()
	lists := []acl.List{everyone, acl.NewList(acl.Group("hr")), acl.NewList(acl.Everyone, acl.Group("it"))}
	s, err := newState().next(newSaid())
	must(t, err)
	kept, known := &views{known: map[string]*view{}}, (*list)(nil)
	packed := string(encodePostings(nil, -1, 0, 1, 2))
	shown, tables := map[int]string{}, map[int]bool{}
	for i := range 6000 {
		what, slot := newSaid(), i*7%23
		pub := fmt.Sprintf("p%015d", i)
		if old := shown[slot]; old != "" {
			what.directory[old] = ""
		}
		what.directory[pub] = encodeEntry(share{1 + i%3, 5}, lists[i%len(lists)])
		shown[slot] = pub
		s, err = s.next(what)
		must(t, err)
		s.number, tables[s.id] = i+1, true
		if i%5 > 0 {
			continue // a list may be behind
		}
		now := known.in(s)
		since := map[string]string{}
		if now == nil {
			for _, pub := range s.since(0) {
				since[pub] = packed
			}
		} else {
			for _, pub := range s.since(now.docs) {
				since[pub] = packed
			}
		}
		known, err = now.bring(s, since)
		must(t, err)
		all, err := newState().next(whole(newState(), map[string]string{}, directoryOf(s)))
		must(t, err)
		for _, grant := range onlookers {
			v := kept.of(s, grant)
			want := (&views{known: map[string]*view{}}).of(all, grant)
			docs := 0
			for n := range all.docs {
				if want.admits(all, n) {
					docs++
				}
			}
			if got := v.frequency(s, known); v.share != want.share || got != docs {
				t.Fatalf("after %d changes a view has %+v, a term %d documents; want %+v and %d", i+1, v.share, got, want.share, docs)
			}
		}
		if len(s.docs) > 2*s.visible+1001 || s.span > 3*len(s.docs) || len(known.runs[0])+len(known.runs[1]) > len(s.docs) {
			t.Fatalf("after %d changes %d numbers are used for %d documents, %d runs", i+1, len(s.docs), s.visible, len(known.runs[0])+len(known.runs[1]))
		}
	}
	if len(tables) < 4 {
		t.Errorf("numbers were given %d times", len(tables))
	}
}

func directoryOf(s *state) map[string]string {
	out := map[string]string{}
	for _, pub := range s.since(0) {
		n := s.find(pub)
		out[pub] = encodeEntry(s.docs[n].share, s.lists[s.force[n]])
	}
	return out
}

// TestDamagedNews: what cannot be read leaves the state as it was.
func TestDamagedNews(t *testing.T) {
	t.Parallel()
	s, err := newState().next(said{directory: map[string]string{"aaaa": encodeEntry(share{2, 4}, everyone)}})
	must(t, err)
	good := encodeEntry(share{1, 1}, everyone)
	for name, what := range map[string]said{
		"a name with blanks": {directory: map[string]string{"a b": good}}, "an entry cut short": {directory: map[string]string{"bbbb": good[:1]}},
		"too many chunks": {directory: map[string]string{"bbbb": encodeEntry(share{1 << 25, 1}, everyone)}},
		"no list":         {directory: map[string]string{"bbbb": good[:2]}}, "another overlay": {overlay: map[string]string{"bbbb": "x"}},
		"an overlay's name": {overlay: map[string]string{"b b": hiddenNow}}, "one good, one bad": {directory: map[string]string{"bbbb": good, "cccc": "\x00"}},
	} {
		if _, err := s.next(what); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if got := slices.Sorted(maps.Keys(s.places)); len(got) != 1 || len(s.docs) != 1 {
		t.Errorf("afterwards there are %v", got)
	}
}

const hiddenNow = "h1"
