package discord

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"footnote/acl"
	dt "footnote/adapters/discord/discordtest"
	"footnote/bot/desk"
	"footnote/bot/ledger"
)

// TestStorm asks many questions in many rooms through two sessions, with
// duplicates and failures of the API, and through one that is started anew
// again and again. FOOTNOTE_STORM=full makes it 2,000 questions of 50 people in
// 20 rooms.
func TestStorm(t *testing.T) {
	t.Parallel()
	questions, people, rooms, restarts := 120, 12, 8, 1
	if full() {
		questions, people, rooms, restarts = 2000, 50, 20, 4
	}
	t.Run("two sessions", func(t *testing.T) { storm(t, questions, people, rooms, 0, 2) })
	t.Run("restarts", func(t *testing.T) { storm(t, questions, people, rooms, restarts, 1) })
}

func storm(t *testing.T, questions, people, rooms, restarts, sessions int) {
	x := newTown()
	var users, channels []string
	for i := range people {
		u := x.world.AddUser(dt.User{Name: fmt.Sprintf("p%d", i)})
		x.world.AddMember(x.guild, u)
		users = append(users, u)
	}
	for i := range rooms {
		c := dt.Channel{GuildID: x.guild, Name: fmt.Sprintf("r%d", i), Type: dt.Text}
		if i%3 == 0 {
			c.Overwrites = []dt.Overwrite{{ID: x.guild, Deny: dt.ViewChannel}, {ID: x.staff, Allow: dt.ViewChannel}, {ID: x.world.App.BotUser, Member: true, Allow: dt.ViewChannel}}
		}
		channels = append(channels, x.world.AddChannel(c))
	}
	staff := map[string]bool{}
	for i, u := range users {
		if i%2 == 0 {
			staff[u] = true
			for g := range x.world.Guilds {
				for m := range x.world.Guilds[g].Members {
					if x.world.Guilds[g].Members[m].User == u {
						x.world.Guilds[g].Members[m].Roles = []string{x.staff}
					}
				}
			}
		}
	}
	canRead := func(user string, m dt.Message) bool {
		return !strings.Contains(m.Content, "docstaff") || staff[user] || user == x.bob || user == x.ada
	}
	s := dt.New(t, x.world, dt.WithSeed(7), dt.WithRules(dt.Rules{Explicit: true, CanRead: canRead, DeadTokenCalls: 5, Claimed: func(string) bool { return true }, Lost: true}))
	l, err := ledger.Open(t.TempDir(), ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	books := newShelf(map[string]acl.List{"all": acl.NewList(acl.Everyone), "staff": acl.NewList(of(x.guild, "role/"+x.staff))})
	start := func() *rig {
		return newRig(t, x, setting{server: s, ledger: l, shelf: books, desk: func(o *desk.Options) {
			o.PerAsker, o.PerRoom, o.Queue, o.Workers, o.Lease = 10_000, 10_000, 10_000, 8, time.Second
			o.Grace, o.Budget = 5*time.Second, 2*time.Second
		}})
	}
	a := start()
	var b *rig
	if sessions == 2 {
		b = start()
	}
	s.WaitSessions(sessions)
	for _, f := range []dt.Fault{
		{Route: dt.RouteEditResponse, Chance: 0.04, Status: 500}, {Route: dt.RouteEditResponse, Chance: 0.03, ResetAfter: true}, {Route: dt.RouteEditResponse, Chance: 0.03, Status: 429, RetryAfter: 0.05},
		{Route: dt.RouteCallback, Chance: 0.05, Status: 503}, {Route: dt.RouteCallback, Chance: 0.05, ResetAfter: true},
	} {
		s.AddFault(f)
	}
	random := rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex
	var asked []*dt.Interaction
	started := time.Now()
	for i := range questions {
		if restarts > 0 && i > 0 && i%(questions/(restarts+1)) == 0 {
			for _, q := range asked { // what a dead process never read is lost on Discord, too
				q.Wait()
			}
			_ = a.stop()
			a = start()
			s.WaitSessions(sessions)
		}
		user, channel := users[random.IntN(len(users))], channels[random.IntN(len(channels))]
		if !s.CanView(user, channel) {
			channel = x.open
		}
		doc := []string{"all", "staff", "nothing"}[random.IntN(3)]
		d := dt.Delivery{}
		if random.IntN(10) < 3 {
			d.Copies = 1 + random.IntN(2)
		}
		q := s.Command(user, channel, "ask", map[string]any{"question": fmt.Sprintf("what about %s %d", doc, i), "private": random.IntN(4) == 0}, d)
		mu.Lock()
		asked = append(asked, q)
		mu.Unlock()
		if i%8 == 7 {
			asked[len(asked)-8].Wait() // no more than a person a few ms
		}
	}
	a.Eventually("all answered", func() bool {
		p, err := l.Pending(context.Background(), 1)
		return err == nil && len(p) == 0
	})
	var acks []time.Duration
	answered, lost := 0, 0
	for _, q := range asked {
		acks = append(acks, q.AckTime())
		if m, ok := q.Response(); ok && !m.Thinking && m.Content != "" {
			answered++
		} else {
			lost++
			d, _ := l.Delivery(context.Background(), "discord|"+s.App().ID+"|"+q.ID)
			t.Logf("not answered: %s, %d copies, %d runs", d.Reason, d.Copies, d.Attempt)
		}
	}
	slices.Sort(acks)
	p99 := acks[len(acks)*99/100]
	counts, _ := l.Counts(context.Background())
	t.Logf("storm: %d sessions, %d questions of %d people in %d rooms, %d restarts, %v: %d answered in place, %d not; ledger %v; worked on %d times; first response p50 %v, p99 %v, most %v",
		sessions, questions, people, rooms, restarts, time.Since(started).Round(time.Millisecond), answered, lost, counts, books.asked, acks[len(acks)/2], p99, acks[len(acks)-1])
	if n := counts[ledger.Failed]; n > 0 {
		t.Errorf("%d questions failed", n)
	}
	if answered != questions {
		t.Errorf("%d of %d questions were answered in their place", answered, questions)
	}
	if p99 > time.Second && full() { // beside other tests a time says nothing
		t.Errorf("first responses took %v at p99", p99)
	}
	_ = a.stop()
	if b != nil {
		_ = b.stop()
	}
	for _, broken := range s.CheckInvariants() {
		t.Error(broken)
	}
}
