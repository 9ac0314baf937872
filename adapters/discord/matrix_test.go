package discord

import (
	"slices"
	"strings"
	"testing"

	dt "footnote/adapters/discord/discordtest"
	"footnote/bot/desk"
)

// TestMatrix asks in every kind of place, as every kind of person, for every
// kind of document. The fake knows who could see each message, and the oracle
// who may read what: whatever is said aloud, all who see it may read.
func TestMatrix(t *testing.T) {
	t.Parallel()
	x := newTown()
	thread := func(name string, kind dt.ChannelType, parent string) string {
		return x.world.AddChannel(dt.Channel{GuildID: x.guild, Name: name, Type: kind, Parent: parent, Owner: x.bob, Members: []string{x.bob, x.ada}})
	}
	places := map[string]string{
		"a text channel": x.open, "a channel of a role": x.closed, "a thread": x.thread, "a thread of a channel of a role": x.hidden,
		"a forum post": thread("post", dt.PublicThread, x.forum), "a voice channel": x.voice, "an announcement channel": x.news,
		"a private thread": thread("secret", dt.PrivateThread, x.open), "a private thread of a channel of a role": thread("secret staff", dt.PrivateThread, x.closed),
		"an announcement thread": thread("news", dt.AnnouncementThread, x.news),
	}
	r := newRig(t, x, setting{desk: func(o *desk.Options) { o.PerAsker, o.PerRoom, o.Queue = 1000, 1000, 1000 }})
	may := map[string][]string{"all": {x.ada, x.bob, x.cy}, "staff": {x.bob}, "bob": {x.bob}, "nobody": nil}
	r.ChangeMember(x.guild, x.dan, func(m *dt.Member) { m.Pending = true })
	type query struct {
		*dt.Interaction
		place, user, doc string
		private          bool
	}
	var asked []query
	for place, channel := range places {
		for _, user := range []string{x.ada, x.bob, x.cy, x.dan} {
			for doc := range may {
				for _, private := range []bool{false, true} {
					if r.CanView(user, channel) {
						i := r.Command(user, channel, "ask", map[string]any{"question": "what about " + doc, "private": private}, dt.Delivery{Force: true})
						asked = append(asked, query{i, place, user, doc, private})
					}
				}
			}
		}
	}
	if len(asked) < 150 {
		t.Errorf("only %d questions", len(asked))
	}
	for _, q := range asked {
		m := q.WaitAnswer()
		answered, allowed := strings.Contains(m.Content, "doc"+q.doc), slices.Contains(may[q.doc], q.user)
		wrong := ""
		switch {
		case answered && !allowed:
			wrong = "answered to somebody who may not read it"
		case q.private && answered != allowed:
			wrong = "not answered in private"
		case q.private != (m.EphemeralTo == q.user):
			wrong = "shown to others than was asked for"
		case q.doc == "all" && answered != allowed:
			wrong = "not answered aloud"
		}
		if wrong != "" {
			t.Errorf("%s in %s, %s, private %v: %s: %s", q.user, q.place, q.doc, q.private, wrong, m.Content)
		}
	}
	r.clean()
}
