package discord

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	dt "footnote/adapters/discord/discordtest"
)

// long is an answer of several parts.
func long(lines int) string {
	return strings.TrimSpace(strings.Repeat("This sentence is about what everybody here may read, and it is not short at all.\n", lines))
}

// D-40, D-35: what does not fit goes on in a thread; the sources come last.
func TestD40LongAnswersGoOnInAThread(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	r.shelf.say["all"] = long(40)
	m := r.ask(x.cy, x.open, "what about all @everyone?").WaitAnswer()
	r.WaitThread(x.open)
	r.idle()
	m, _ = r.Message(m.ID)
	if m.Thread == "" {
		t.Fatalf("no thread at the response: %+v", m)
	}
	rest := r.FromBot(m.Thread)
	t.Run("D-35 at most three parts in order, the sources in the last one", func(t *testing.T) {
		if len(rest) < 1 || len(rest) > 2 || !strings.Contains(rest[len(rest)-1].Content, "Sources") || strings.Contains(m.Content, "Sources") || rest[0].Nonce == "" {
			t.Errorf("in the thread: %+v", rest)
		}
	})
	button(t, rest[len(rest)-1], "s1")
	if c, _ := r.Channel(m.Thread); strings.Contains(c.Name, "@everyone") || len([]rune(c.Name)) > 100 {
		t.Errorf("the thread is named %q", c.Name)
	}
	r.clean()
}

// D-41, D-42, D-43: where there can be no thread, the response goes on.
func TestD41NoThread(t *testing.T) {
	t.Parallel()
	x := newTown()
	for name, tt := range map[string]struct {
		channel string
		private bool
		spoil   func(*rig)
	}{
		"D-43 a private answer":    {x.open, true, func(*rig) {}},
		"D-41 in a thread already": {x.thread, false, func(*rig) {}},
		"D-41 in a voice channel":  {x.voice, false, func(*rig) {}},
		"D-41 no permission": {x.open, false, func(r *rig) {
			r.SetOverwrite(x.open, dt.Overwrite{ID: r.App().BotUser, Member: true, Deny: dt.CreatePublicThreads})
		}},
		"D-42 refused by Discord":   {x.open, false, func(r *rig) { r.AddFault(dt.Fault{Route: dt.RouteMessageThread, Status: 400, Code: 160005}) }},
		"D-42 the thread is locked": {x.open, false, func(r *rig) { r.AddFault(dt.Fault{Route: dt.RouteMessage, Status: 400, Code: 50083}) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, x, setting{})
			tt.spoil(r)
			r.shelf.say["all"] = long(40)
			i := r.Command(x.cy, tt.channel, "ask", map[string]any{"question": "what about all", "private": tt.private})
			i.WaitAnswer()
			r.idle()
			parts := r.Responses(i.ID)
			if len(parts) < 2 || len(parts) > 3 || !strings.Contains(parts[len(parts)-1].Content, "Sources") {
				t.Fatalf("%d parts", len(parts))
			}
			for _, p := range parts {
				if (p.EphemeralTo != "") != tt.private {
					t.Errorf("D-35: a part is shown to %q", p.EphemeralTo)
				}
			}
			r.clean()
		})
	}
}

// A part that finds no place does not take the sources with it.
func TestD41RestIsLost(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	r.AddFault(dt.Fault{Route: dt.RouteFollowup, Status: 403, Code: 50001})
	r.shelf.say["all"] = long(40)
	i := r.Command(x.cy, x.open, "ask", map[string]any{"question": "what about all", "private": true})
	i.WaitAnswer()
	r.idle()
	m, _ := i.Response()
	if !strings.Contains(m.Content, "Shortened") || !strings.Contains(m.Content, "Sources") {
		t.Errorf("what is left: %s", m.Content)
	}
	button(t, m, "s1")
	r.clean()
}

// B-78, B-79: an answer of any length arrives, and none of it is kept.
func TestD35LongAnswers(t *testing.T) {
	t.Parallel()
	x, r := inTown(t)
	for _, lines := range []int{23, 24, 60, 600} {
		t.Run(fmt.Sprintf("B-78 %d sentences", lines), func(t *testing.T) {
			r.shelf.say["all"] = long(lines)
			i := r.Command(x.cy, x.open, "ask", map[string]any{"question": "what about all", "private": true})
			i.WaitAnswer()
			r.idle()
			parts := r.Responses(i.ID)
			if last := parts[len(parts)-1]; len(parts) > 3 || !strings.Contains(last.Content, "Sources") || strings.Contains(last.Content, "Shortened") != (lines > 60) {
				t.Errorf("%d parts, the last one %s", len(parts), last.Content)
			}
		})
	}
	t.Run("B-79 no text of an answer is kept", func(t *testing.T) {
		r.ask(x.cy, x.open, "what about all").WaitAnswer()
		r.idle()
		list, err := r.ledger.Latest(t.Context(), 10)
		if err != nil || len(list) != 5 {
			t.Fatalf("%d deliveries, %v", len(list), err)
		}
		for _, d := range list {
			a, err := r.ledger.AnswerTo(t.Context(), d.Key)
			whole, _ := json.Marshal(a)
			if err != nil || len(whole) > 1000 || strings.Contains(string(whole)+string(d.Payload), "This sentence") {
				t.Errorf("kept %.300s, %v", whole, err)
			}
		}
	})
	r.clean()
}

func TestThreadForEachAnswer(t *testing.T) {
	t.Parallel()
	x := newTown()
	r := newRig(t, x, setting{config: func(c *Config) { c.Threads = true }})
	m := r.ask(x.cy, x.open, "what about all").WaitAnswer()
	r.idle()
	if m, _ = r.Message(m.ID); m.Thread == "" {
		t.Error("no thread")
	}
	r.clean()
}
