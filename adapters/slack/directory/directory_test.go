package directory

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

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"footnote/acl"
)

// workspace is an API in memory. Each method fails with its error, if set.
type workspace struct {
	mu      sync.Mutex
	users   map[string]User
	groups  []Group
	rooms   map[string]Channel
	members map[string][]string
	fail    map[string]error
	calls   map[string]int
	page    int
	loop    bool // members repeat their cursor
	during  func(method string)
}

func (w *workspace) begin(method string) error {
	w.mu.Lock()
	w.calls[method]++
	err, during := w.fail[method], w.during
	w.mu.Unlock()
	if during != nil {
		during(method)
	}
	return err
}

func (w *workspace) User(_ context.Context, id string) (User, error) {
	if err := w.begin("user"); err != nil {
		return User{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	u, ok := w.users[id]
	if !ok {
		return User{}, ErrNoUser
	}
	return u, nil
}

func (w *workspace) Users(context.Context, string) ([]User, string, error) {
	if err := w.begin("users"); err != nil {
		return nil, "", err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []User
	for _, u := range w.users {
		out = append(out, u)
	}
	return out, "", nil
}

func (w *workspace) Groups(context.Context) ([]Group, error) {
	if err := w.begin("groups"); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.groups), nil
}

func (w *workspace) Channel(_ context.Context, id string) (Channel, error) {
	if err := w.begin("channel"); err != nil {
		return Channel{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rooms[id], nil
}

func (w *workspace) Members(_ context.Context, channel, cursor string) ([]string, string, error) {
	if err := w.begin("members"); err != nil {
		return nil, "", err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	from, all := 0, w.members[channel]
	_, _ = fmt.Sscan(cursor, &from)
	to := min(len(all), from+w.page)
	switch {
	case w.loop:
		return all[from:to], "1", nil
	case to < len(all):
		return all[from:to], fmt.Sprint(to), nil
	}
	return all[from:to], "", nil
}

func (w *workspace) ChannelsOf(_ context.Context, user, _ string) ([]string, string, error) {
	if err := w.begin("channels"); err != nil {
		return nil, "", err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for id, m := range w.members {
		if slices.Contains(m, user) {
			out = append(out, id)
		}
	}
	return out, "", nil
}

func newWorkspace() *workspace {
	w := &workspace{users: map[string]User{}, rooms: map[string]Channel{}, members: map[string][]string{}, fail: map[string]error{}, calls: map[string]int{}, page: 2}
	for _, u := range []User{{ID: "U1"}, {ID: "U2"}, {ID: "U3", Guest: true}, {ID: "U4", Team: "T2"}, {ID: "U5", Bot: true}, {ID: "U6", Invited: true}, {ID: "U7", Deleted: true}} {
		if u.Team == "" {
			u.Team = "T1"
		}
		w.users[u.ID] = u
	}
	w.groups = []Group{{ID: "S1", Users: []string{"U1", "U2"}, Count: 2}, {ID: "S2", Users: []string{"U1"}, Count: 1}, {ID: "S3", Users: []string{"U1"}, Count: 2}}
	for id, c := range map[string]Channel{
		"C1": {}, "C2": {Private: true}, "C3": {ExtShared: true}, "C4": {PendingExt: true}, "C5": {OrgShared: true}, "D1": {IM: true}, "G1": {MPIM: true, Private: true},
		"C6": {Private: true}, "C7": {Private: true},
	} {
		c.ID = id
		w.rooms[id] = c
	}
	w.members = map[string][]string{
		"C1": {"U1", "U2", "U3", "U5", "U7"}, "C2": {"U1", "U2", "U5"}, "C5": {"U1"}, "G1": {"U1", "U2", "U5"}, "C6": {"U1", "U4"}, "C7": {"U1", "U2", "U6"},
	}
	return w
}

func clauses(a acl.Audience) []string {
	all := acl.NewGrant(acl.NewIdentity("asker"), a).Clauses()
	var out []string
	for _, c := range all[min(1, len(all)):] {
		var s []string
		for _, p := range c {
			s = append(s, strings.TrimPrefix(string(p), "slack:T1:"))
		}
		out = append(out, strings.Join(s, " "))
	}
	return out
}

func TestRooms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, room string
		want       []string
		err        error
	}{
		{"P-10 S-64 public: every member, and the guest in it; closed accounts not counted", "C1", []string{"everyone channel/C1 everyone", "channel/C1 guests"}, nil},
		{"P-10 public for the organisation", "C5", []string{"everyone channel/C5"}, nil},
		{"P-11 P-15 P-30 private: each by what stays, bots not counted", "C2", []string{"everyone channel/C2 everyone usergroup/S1 usergroup/S2", "everyone channel/C2 everyone usergroup/S1"}, nil},
		{"P-11 somebody who is only invited", "C7", []string{"everyone channel/C7 everyone usergroup/S1 usergroup/S2", "everyone channel/C7 everyone usergroup/S1", "channel/C7"}, nil},
		{"P-12 shared", "C3", nil, ErrExternal},
		{"P-12 an invitation waits", "C4", nil, ErrExternal},
		{"P-12 somebody from outside is in it", "C6", nil, ErrExternal},
		{"P-13 direct", "D1", nil, nil},
		{"unknown", "C9", nil, acl.ErrUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := New(newWorkspace(), Options{Team: "T1"})
			a, err := d.Audience(t.Context(), c.room)
			if c.name == "unknown" {
				if err == nil {
					t.Error("no error")
				}
				return
			}
			if !errors.Is(err, c.err) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, clauses(a)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestP13GroupConversationHasPeople(t *testing.T) {
	t.Parallel()
	a, err := New(newWorkspace(), Options{Team: "T1"}).Audience(t.Context(), "G1")
	if err != nil || len(clauses(a)) != 2 || !strings.Contains(clauses(a)[0], "user/U1") {
		t.Errorf("%v %v", clauses(a), err)
	}
}

func TestP11LargeRoomsAreTheFloor(t *testing.T) {
	t.Parallel()
	w := newWorkspace()
	w.members["C2"] = append([]string{"U1", "U2", "U3"}, "U1", "U2")
	a, err := New(w, Options{Team: "T1", MaxPrivate: 3}).Audience(t.Context(), "C2")
	if diff := cmp.Diff([]string{"everyone channel/C2 everyone", "channel/C2 guests"}, clauses(a)); diff != "" || err != nil {
		t.Errorf("%v -want +got:\n%s", err, diff)
	}
	// Beyond what is looked at there may be guests.
	w.members["C1"] = []string{"U1", "U2", "U1", "U2"}
	a, err = New(w, Options{Team: "T1", MaxMembers: 3}).Audience(t.Context(), "C1")
	if diff := cmp.Diff([]string{"everyone channel/C1 everyone", "channel/C1 guests"}, clauses(a)); diff != "" || err != nil {
		t.Errorf("%v -want +got:\n%s", err, diff)
	}
}

// Every failure is an error, or shows less.
func TestFailuresShowLess(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"user", "users", "groups", "channel", "members", "channels"} {
		w := newWorkspace()
		w.fail[method] = errors.New("trouble")
		d := New(w, Options{Team: "T1"})
		if id, err := d.Identify(t.Context(), "U1"); (err == nil) != (method == "users" || method == "channel" || method == "members") || err != nil && id.ID() != "" {
			t.Errorf("%s: identity %v, %v", method, id.Principals(), err)
		}
		if a, err := d.Audience(t.Context(), "C2"); (err == nil) != (method == "users" || method == "channels") || err != nil && acl.NewGrant(acl.NewIdentity("x", acl.Everyone), a).Admits(acl.NewList(acl.Everyone)) {
			t.Errorf("%s: audience %v, %v", method, clauses(a), err)
		}
	}
	w := newWorkspace()
	w.loop = true
	if _, err := New(w, Options{Team: "T1"}).Audience(t.Context(), "C1"); err == nil {
		t.Error("a list that repeats itself is taken for whole")
	}
}

// S-50 … S-69: nothing is served past its age, whether Slack answers or not.
func TestS60NothingOldIsServed(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	w := newWorkspace()
	d := New(w, Options{Team: "T1", MaxAge: time.Minute, Now: func() time.Time { return time.Unix(now.Load(), 0) }})
	if _, err := d.Identify(t.Context(), "U1"); err != nil {
		t.Fatal(err)
	}
	for _, m := range []string{"user", "groups", "channels"} {
		w.fail[m] = errors.New("down")
	}
	now.Store(60)
	if _, err := d.Identify(t.Context(), "U1"); err != nil {
		t.Errorf("within its age: %v", err)
	}
	now.Store(61)
	if id, err := d.Identify(t.Context(), "U1"); err == nil {
		t.Errorf("past its age: %v", id.Principals())
	}
}

// An event that comes while something is read counts: what was read before it
// is not kept.
func TestEventsDuringAReadCount(t *testing.T) {
	t.Parallel()
	w := newWorkspace()
	d := New(w, Options{Team: "T1"})
	once := sync.Once{}
	w.during = func(method string) {
		if method == "groups" {
			once.Do(func() {
				w.mu.Lock()
				w.groups = nil
				w.mu.Unlock()
				d.Changed(Change{Groups: true})
			})
		}
	}
	id, err := d.Identify(t.Context(), "U1")
	if err != nil || slices.Contains(id.Principals(), "slack:T1:usergroup/S1") {
		t.Errorf("%v %v", id.Principals(), err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls["groups"] != 2 {
		t.Errorf("read %d times", w.calls["groups"])
	}
}

func TestS68S65ChangedDropsWhatIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorkspace()
	d := New(w, Options{Team: "T1"})
	look := func() {
		_, _ = d.Identify(t.Context(), "U1")
		_, _ = d.Audience(t.Context(), "C2")
	}
	for _, c := range []struct {
		change Change
		again  []string
	}{
		{Change{}, nil}, {Change{User: "U1"}, []string{"channels", "user"}}, {Change{Groups: true}, []string{"groups"}},
		{Change{Channel: "C2", Member: "U1"}, []string{"channel", "channels", "members"}}, {Change{Channel: "C2"}, []string{"channel", "channels", "members"}},
		{Change{All: true}, []string{"channel", "channels", "groups", "members", "user"}},
	} {
		look()
		w.mu.Lock()
		clear(w.calls)
		w.mu.Unlock()
		version := d.Version()
		d.Changed(c.change)
		look()
		w.mu.Lock()
		var again []string
		for m := range w.calls {
			again = append(again, m)
		}
		w.mu.Unlock()
		slices.Sort(again)
		if diff := cmp.Diff(c.again, again); diff != "" || d.Version() == version {
			t.Errorf("%+v: -want +got:\n%s", c.change, diff)
		}
	}
}

func TestCallersShareAFetch(t *testing.T) {
	t.Parallel()
	w := newWorkspace()
	d := New(w, Options{Team: "T1"})
	let := make(chan struct{})
	w.during = func(string) { <-let }
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { _, _ = d.Identify(t.Context(), "U1") })
	}
	close(let)
	wg.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls["user"] > 2 {
		t.Errorf("%d fetches", w.calls["user"])
	}
}

// Whoever is in a room, a document that the room admits may be read by each.
func TestP14P30RoomsAdmitWhatEachMayRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorkspace()
		ids := []string{"U1", "U2", "U3", "U5", "U6", "U7"}
		in := rapid.SliceOfDistinct(rapid.SampledFrom(ids), func(s string) string { return s }).Draw(t, "members")
		room := rapid.SampledFrom([]string{"C1", "C2", "G1"}).Draw(t, "room")
		w.members[room] = in
		d := New(w, Options{Team: "T1", MaxPrivate: rapid.IntRange(1, 6).Draw(t, "most")})
		a, err := d.Audience(context.Background(), room)
		if err != nil {
			t.Fatal(err)
		}
		list := acl.NewList(rapid.SliceOf(rapid.SampledFrom([]acl.Principal{
			acl.Everyone, "slack:T1:everyone", "slack:T1:guests", "slack:T1:usergroup/S1", "slack:T1:usergroup/S2", "slack:T1:channel/C1", "slack:T1:channel/C2", "slack:T1:user/U1",
		})).Draw(t, "list")...)
		asker := acl.NewIdentity("asker", list.Principals()...)
		if !acl.NewGrant(asker, a).Admits(list) {
			return
		}
		for _, id := range in {
			who, err := d.Identify(context.Background(), id)
			if errors.Is(err, ErrInactive) {
				continue
			}
			if err != nil || !acl.NewGrant(who, acl.AskerOnly()).Admits(list) {
				t.Fatalf("%s in %s (%v) may not read [%s]: %v", id, room, in, list, err)
			}
		}
	})
}

// P-23: of a room that is known nothing is asked.
func TestP23AKnownRoomCostsNoCalls(t *testing.T) {
	t.Parallel()
	w := newWorkspace()
	d := New(w, Options{Team: "T1"})
	first, err := d.Audience(t.Context(), "C2")
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	clear(w.calls)
	w.mu.Unlock()
	again, err := d.Audience(t.Context(), "C2")
	if diff := cmp.Diff(clauses(first), clauses(again)); diff != "" || err != nil {
		t.Errorf("%v -want +got:\n%s", err, diff)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.calls) > 0 {
		t.Errorf("asked %v", w.calls)
	}
}
