package discord

import (
	"strings"
	"testing"

	dt "footnote/adapters/discord/discordtest"
)

func TestAskIsDeferredThenAnswered(t *testing.T) {
	t.Parallel()
	r := newRig(t, newTown(), setting{})
	i := r.ask(r.town.cy, r.town.open, "what about all?")
	if kind := i.Wait(); kind != respondDeferred {
		t.Errorf("first response %d", kind)
	}
	m := i.WaitAnswer()
	if m.EphemeralTo != "" || !strings.Contains(m.Content, "docall") || !strings.Contains(m.Content, "[1]") {
		t.Errorf("answer %+v", m)
	}
	s := r.Click(r.town.bob, m, button(t, m, "s1")).WaitAnswer()
	if s.EphemeralTo != r.town.bob || !strings.Contains(string(s.Embeds), "the passage of docall") {
		t.Errorf("source %+v", s)
	}
	r.clean()
}

var _ = dt.Message{}
