package assemble

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"footnote/acl"
	"footnote/acl/system"
	"footnote/bot/ledger"
	"footnote/cmd/internal/config"
	"footnote/retrieval"
	documents "footnote/retrieval/catalog"
	"footnote/retrieval/indextest"
	"footnote/retrieval/redisindex"
	"footnote/retrieval/redisindex/redistest"
)

// replicaOf is one process's state on the Redis at an address.
type replicaOf struct {
	*State
	cat    *documents.Catalog
	ledger ledger.Store
}

func openReplica(t *testing.T, flags config.Flags, environ map[string]string) *replicaOf {
	t.Helper()
	flags.Data = t.TempDir()
	c, err := config.Load(flags, func(name string) (string, bool) { v, ok := environ[name]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	r := &replicaOf{}
	if r.State, err = openShared(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.State.Close() })
	if r.cat, err = r.Catalog(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.cat.Close() })
	if r.ledger, err = r.Ledger(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.ledger.Close() })
	return r
}

func publication(n int) retrieval.Publication {
	return indextest.Publication(fmt.Sprintf("d%04d", n), "1", acl.NewList(acl.Everyone), "alpha beta", fmt.Sprintf("gamma d%04d", n))
}

func (r *replicaOf) begin(ctx context.Context, t *testing.T) {
	t.Helper()
	g, err := r.Build.Create(ctx, indextest.Manifest())
	if err == nil {
		err = g.Publish(ctx, publication(0))
	}
	if err == nil {
		err = r.Build.Promote(ctx, g.Manifest().Name)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (r *replicaOf) publish(ctx context.Context, n int) error {
	g, err := r.Build.Open(ctx, "")
	if err != nil {
		return err
	}
	return g.Publish(ctx, publication(n))
}

func (r *replicaOf) search(ctx context.Context, _ int) error {
	g, err := r.Ask.Open(ctx, "")
	if err != nil {
		return err
	}
	found, err := g.Search(ctx, acl.NewGrant(acl.NewIdentity("user:ada", acl.Everyone), acl.AskerOnly()), retrieval.Query{Terms: []string{"alpha"}, Vector: indextest.Vector(10), Depth: 10})
	if err == nil && (len(found.Lexical) == 0 || len(found.Dense) == 0) {
		return errors.New("it finds nothing")
	}
	return err
}

func (r *replicaOf) record(n int) documents.Record {
	rec := documents.Record{ID: retrieval.DocumentID(fmt.Sprintf("d%04d", n)), Path: fmt.Sprintf("/docs/%04d", n)}
	rec.Enter(documents.Published, time.Unix(int64(1e9+n), 0))
	return rec
}

func question(n int) ledger.Delivery {
	return ledger.Delivery{Key: fmt.Sprintf("q%04d", n), Platform: "slack", Asker: "ada", Room: "r", Payload: []byte("payload")}
}

// post claims a question and gets to where its answer is about to be posted.
func (r *replicaOf) post(ctx context.Context, n int) error {
	d, _, err := r.ledger.Claim(ctx, question(n), time.Hour)
	for _, s := range []ledger.State{ledger.Answering, ledger.Posting} {
		if err == nil && (d.State != ledger.Posting || s == ledger.Posting) { // an answer may have been lost
			err = r.ledger.Move(ctx, d.Ref(), ledger.Step{State: s})
		}
	}
	if err != nil && errors.Is(err, ledger.ErrLost) {
		return fmt.Errorf("%w: %w", retrieval.ErrUnavailable, err) // claimed by nobody, and lost: claimed anew
	}
	return err
}

// load does one thing again and again, patiently, and counts what was done.
type load struct {
	name string
	do   func(context.Context, int) error
	done atomic.Int64
	gap  atomic.Int64 // failures
}

func (l *load) run(ctx context.Context, t *testing.T) {
	for n := 1; ctx.Err() == nil; {
		err := l.do(ctx, n)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			l.done.Store(int64(n))
			n++
		case errors.Is(err, retrieval.ErrUnavailable):
			l.gap.Add(1)
			time.Sleep(20 * time.Millisecond)
		default:
			t.Errorf("%s %d: %v", l.name, n, err)
			return
		}
	}
}

// The master is killed, or the Sentinels are asked for another, while documents
// are published, questions claimed and searches run: everything goes on by itself
// once a replica took over, what fails meanwhile is unavailable, and of what was
// acknowledged nothing is missing but, if anything, the latest; nothing that is
// about to be posted.
func TestFailover(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args  []string
		begin func(*testing.T, *redistest.Replicated)
	}{
		"killed": {nil, func(_ *testing.T, r *redistest.Replicated) { r.Master.Kill() }},
		"asked for": {[]string{"--min-replicas-to-write", "1"}, func(t *testing.T, r *redistest.Replicated) {
			if said, err := r.Sentinels[0].Say("SENTINEL FAILOVER " + redistest.MasterName); err != nil || said != "+OK\r\n" {
				t.Fatal(said, err)
			}
			mastered(t, r)
			// The Sentinels say so to the old master after some seconds.
			if said, err := r.Master.Say("REPLICAOF " + strings.Replace(r.Replica.Address, ":", " ", 1)); err != nil || said != "+OK\r\n" {
				t.Fatal(said, err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// With everysec each answer waits for the disk, for up to a second.
			servers := redistest.NewReplicated(t, append(c.args, "--appendfsync", "always")...)
			testFailover(t, servers, func() { c.begin(t, servers) })
		})
	}
}

func testFailover(t *testing.T, servers *redistest.Replicated, begin func()) {
	ctx, stop := context.WithCancel(context.Background())
	flags := config.Flags{Redis: servers.URL()}
	one, two := openReplica(t, flags, nil), openReplica(t, flags, nil)
	one.begin(ctx, t)
	loads := []*load{
		{name: "publishing", do: one.publish},
		{name: "searching", do: two.search},
		{name: "cataloguing", do: func(_ context.Context, n int) error { return one.cat.Put(one.record(n)) }},
		{name: "claiming", do: two.post},
	}
	var all sync.WaitGroup
	for _, l := range loads {
		all.Go(func() { l.run(ctx, t) })
	}
	more := func(n int64) {
		t.Helper()
		for _, l := range loads {
			from := l.done.Load()
			redistest.Await(t, func() string {
				if l.done.Load() < from+n && !t.Failed() {
					return fmt.Sprintf("%s stays at %d", l.name, from)
				}
				return ""
			})
		}
	}
	more(10)
	before := map[string]int{}
	for _, l := range loads {
		before[l.name] = int(l.done.Load())
	}
	since := time.Now()
	begin()
	mastered(t, servers)
	more(10)
	outage := time.Since(since)
	stop()
	all.Wait()
	for _, l := range loads {
		t.Logf("%s: %d before, %d after, %d failures, %v in all", l.name, before[l.name], l.done.Load(), l.gap.Load(), outage.Round(time.Millisecond))
		if l.name != "searching" && l.gap.Load() == 0 {
			t.Errorf("%s noticed nothing", l.name)
		}
	}
	fresh := openReplica(t, flags, nil)
	fresh.whole(t)
	g, err := fresh.Ask.Open(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	infos, err := g.Documents(context.Background(), system.Grant())
	if err != nil {
		t.Fatal(err)
	}
	latest(t, "documents", before["publishing"], int(loads[0].done.Load()), func(n int) bool {
		return slices.ContainsFunc(infos, func(d retrieval.DocumentInfo) bool { return string(d.ID) == fmt.Sprintf("d%04d", n) })
	})
	latest(t, "records", before["cataloguing"], int(loads[2].done.Load()), func(n int) bool {
		_, ok := fresh.cat.Get(one.record(n).ID)
		return ok
	})
	for n := 1; n <= int(loads[3].done.Load()); n++ {
		if d, err := fresh.ledger.Delivery(context.Background(), question(n).Key); err != nil || d.State != ledger.Posting {
			t.Errorf("question %d, of %d before, is %q: %v", n, before["claiming"], d.State, err)
		}
	}
}

// mastered waits until the replica is the master.
func mastered(t *testing.T, r *redistest.Replicated) {
	t.Helper()
	redistest.Await(t, func() string {
		said, err := r.Replica.Say("ROLE")
		if err != nil || !strings.Contains(said, "master") {
			return "the replica is " + said
		}
		return ""
	})
}

// latest checks that what is missing of 1 to all were the latest at the failover.
func latest(t *testing.T, what string, before, all int, there func(int) bool) {
	t.Helper()
	var missing []int
	for n := 1; n <= all; n++ {
		if !there(n) {
			missing = append(missing, n)
		}
	}
	if len(missing) == 0 {
		return
	}
	first, last := missing[0], missing[len(missing)-1]
	// One more may have been acknowledged between the look and the kill, by each
	// loop at most a few.
	if last-first+1 != len(missing) || last < before {
		t.Errorf("missing %s: %v, with %d done before", what, missing, before)
	}
	t.Logf("%s lost: %v, with %d done before", what, missing, before)
}

// whole verifies the current generation.
func (r *replicaOf) whole(t *testing.T) {
	t.Helper()
	g, err := r.Build.Open(context.Background(), "")
	if err != nil {
		t.Fatal(err)
	}
	report, err := g.(*redisindex.Generation).Verify(context.Background())
	if err != nil || len(report.Problems) > 0 {
		t.Errorf("the generation: %v, %q", err, report.Problems)
	}
}

// A replica takes over that was behind: what it had not received is gone from
// everything alike, and taken anew by those who need it.
func TestFailover_Behind(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	servers := redistest.NewReplicated(t, "--appendfsync", "always")
	flags := config.Flags{Redis: servers.URL()}
	one, two := openReplica(t, flags, nil), openReplica(t, flags, nil)
	one.begin(ctx, t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(n int) {
		t.Helper()
		must(one.publish(ctx, n))
		must(one.cat.Put(one.record(n)))
		must(two.post(ctx, n))
	}
	write(1)
	must(one.Link.Do(ctx, "WAIT", 1, 5000).Err())
	servers.CutOff(t)
	write(2)
	d, won, err := two.ledger.Claim(ctx, question(3), time.Hour)
	if err != nil || !won {
		t.Fatalf("claiming: %t, %v", won, err)
	}
	must(one.cat.Put(one.record(9)))
	// Both know it before it is lost.
	redistest.Await(t, func() string {
		if _, ok := two.cat.Get(one.record(9).ID); !ok {
			return "the other does not learn of a record"
		}
		return ""
	})
	servers.Master.Kill()
	patiently(t, func() error { return one.search(ctx, 0) })

	// As many records as were lost, so that they have the same numbers.
	patiently(t, func() error { return one.cat.Put(one.record(4)) })
	patiently(t, func() error { return one.cat.Put(one.record(5)) })
	for _, r := range []*replicaOf{one, two, openReplica(t, flags, nil)} {
		redistest.Await(t, func() string {
			for n, want := range map[int]bool{1: true, 2: false, 9: false, 4: true, 5: true} {
				if _, ok := r.cat.Get(r.record(n).ID); ok != want {
					return fmt.Sprintf("record %d is known: %t", n, ok)
				}
			}
			return ""
		})
		r.whole(t)
		g, err := r.Ask.Open(ctx, "")
		must(err)
		if n := g.Counts().Documents; n != 2 {
			t.Errorf("%d documents, want the first two", n)
		}
	}
	for n, want := range map[int]error{1: nil, 2: ledger.ErrNotFound, 3: ledger.ErrNotFound} {
		if _, err := one.ledger.Delivery(ctx, question(n).Key); !errors.Is(err, want) {
			t.Errorf("question %d: %v, want %v", n, err, want)
		}
	}
	// Whoever holds the question records it anew, and nobody else wins it.
	shared, ok := two.ledger.(interface {
		Restore(ctx context.Context, d ledger.Delivery, lease time.Duration) (bool, error)
	})
	if !ok {
		t.Fatal("the ledger restores nothing")
	}
	if back, err := shared.Restore(ctx, d, time.Hour); err != nil || !back {
		t.Errorf("restoring: %t, %v", back, err)
	}
	if _, won, err := one.ledger.Claim(ctx, question(3), time.Hour); err != nil || won {
		t.Errorf("another claims it: %t, %v", won, err)
	}
	must(one.publish(ctx, 2))
	one.whole(t)
}

// patiently does something until it is available.
func patiently(t *testing.T, do func() error) {
	t.Helper()
	redistest.Await(t, func() string {
		err := do()
		switch {
		case err == nil:
			return ""
		case !errors.Is(err, retrieval.ErrUnavailable):
			t.Fatal(err)
		}
		return err.Error()
	})
}

// A master that must have a replica takes nothing without, so that nothing that
// was acknowledged is lost.
func TestFailover_MinReplicas(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	servers := redistest.NewReplicated(t, "--min-replicas-to-write", "1")
	r := openReplica(t, config.Flags{Redis: servers.URL()}, nil)
	r.begin(ctx, t)
	servers.CutOff(t)
	for name, do := range map[string]func() error{
		"publishing":  func() error { return r.publish(ctx, 1) },
		"cataloguing": func() error { return r.cat.Put(r.record(1)) },
		"claiming":    func() error { return r.post(ctx, 1) },
	} {
		if err := do(); !errors.Is(err, retrieval.ErrUnavailable) || !strings.Contains(err.Error(), "without its replicas") {
			t.Errorf("%s gives %v", name, err)
		}
	}
	if err := r.search(ctx, 0); err != nil {
		t.Errorf("searching gives %v", err)
	}
	servers.Master.Kill()
	// The new master has no replica either until one is started.
	patiently(t, func() error { return r.search(ctx, 0) })
	if err := r.publish(ctx, 1); !errors.Is(err, retrieval.ErrUnavailable) {
		t.Errorf("publishing on it gives %v", err)
	}
	r.whole(t)
}
