package discord

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	dt "footnote/adapters/discord/discordtest"
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
	r := newRig(t, x, setting{})
	may := map[string][]string{"all": {x.ada, x.bob, x.cy}, "staff": {x.bob}, "bob": {x.bob}, "nobody": nil}
	r.ChangeMember(x.guild, x.dan, func(m *dt.Member) { m.Pending = true })
	asked := 0
	for place, channel := range places {
		for _, user := range []string{x.ada, x.bob, x.cy, x.dan} {
			if !r.CanView(user, channel) {
				continue
			}
			for doc, readers := range may {
				for _, private := range []bool{false, true} {
					asked++
					name := fmt.Sprintf("%s in %s, %s, private %v", user, place, doc, private)
					m := r.Command(user, channel, "ask", map[string]any{"question": "what about " + doc, "private": private}, dt.Delivery{Force: true}).WaitAnswer()
					answered := strings.Contains(m.Content, "doc"+doc)
					allowed := slices.Contains(readers, user)
					switch {
					case answered && !allowed:
						t.Errorf("%s: answered", name)
					case private && (answered != allowed || m.EphemeralTo != user):
						t.Errorf("%s: answered %v, to %q", name, answered, m.EphemeralTo)
					case !private && m.EphemeralTo != "":
						t.Errorf("%s: answered in private", name)
					case !private && doc == "all" && answered != allowed:
						t.Errorf("%s: answered %v", name, answered)
					}
				}
			}
		}
	}
	if asked < 150 {
		t.Errorf("only %d questions", asked)
	}
	r.clean()
}
