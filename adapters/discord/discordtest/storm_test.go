package discordtest_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/bwmarrin/discordgo"

	dt "footnote/adapters/discord/discordtest"
)

// TestStorm runs two real clients on one token that share a claim store, with
// repeated and scattered deliveries and failing edits.
func TestStorm(t *testing.T) {
	t.Parallel()
	x := newTown()
	s := dt.New(t, x.world, dt.WithRules(dt.Rules{Explicit: true}), dt.WithSeed(7))
	register(t, s, x.guild)
	var mu sync.Mutex
	claimed := map[string]bool{}
	for range 2 {
		d := library(t, s, discordgo.IntentsGuilds)
		d.MaxRestRetries = 20
		d.AddHandler(func(d *discordgo.Session, i *discordgo.InteractionCreate) {
			mu.Lock()
			taken := claimed[i.ID]
			claimed[i.ID] = true
			mu.Unlock()
			if !taken {
				respond(t, d, i)
			}
		})
		connect(t, d)
	}
	s.WaitSessions(2)
	s.AddFault(dt.Fault{Route: dt.RouteEditResponse, Status: 502, Calls: func(n int) bool { return n%5 == 0 }})
	s.SetScatter(func(r *rand.Rand, d dt.Delivery) dt.Delivery {
		d.Delay, d.Copies = time.Duration(r.IntN(20))*time.Millisecond, r.IntN(3)
		return d
	})
	const n = 80
	asked := make([]*dt.Interaction, n)
	var wg sync.WaitGroup
	for k := range asked {
		wg.Go(func() {
			who := []string{x.ada, x.bob, x.cy}[k%3]
			asked[k] = s.Command(who, x.open, "ask", map[string]any{"question": fmt.Sprint(k)})
		})
	}
	wg.Wait()
	for k, i := range asked {
		if m := i.WaitAnswer(); m.Content != "about "+fmt.Sprint(k) {
			t.Errorf("question %d got %q", k, m.Content)
		}
	}
	if got := len(s.Questions()); got != n {
		t.Errorf("%d questions noted, want %d", got, n)
	}
	clean(t, s)
}
