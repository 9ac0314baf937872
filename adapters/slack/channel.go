package slack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	slackgo "github.com/slack-go/slack"

	"footnote/adapters/slack/directory"
	"footnote/adapters/slack/event"
	"footnote/adapters/slack/threads"
	"footnote/bot/outbox"
	"footnote/bot/shelf"
)

// Source is a channel whose threads are documents.
type Source struct {
	Channel string
	History time.Duration // how far back; 0: 90 days
	Keeper  shelf.Keeper  // of its threads, and of nothing else
	Share   threads.Share // with other processes that follow it; nil: there are none
}

// followers makes those of the configured channels, once the bot knows itself.
func (a *Adapter) followers() {
	me := a.self.Load()
	for _, s := range a.d.Sources {
		a.follows[s.Channel].Store(threads.New(history{facts{a.api, me.team, me.enterprise != ""}, a.dir.Load()}, s.Keeper, threads.Options{
			Team: me.team, Address: a.address(), Bot: me.User, Channel: s.Channel, History: s.History, Every: a.c.ScanEvery, Pace: a.c.ScanPace,
			Now: a.now, Log: a.log, Share: s.Share,
		}))
	}
}

// Trouble says why a channel that is followed cannot be kept up with until
// somebody does something, "" if it can.
func (a *Adapter) Trouble(channel string) string {
	if f := a.follower(channel); f != nil {
		return f.Trouble()
	}
	return ""
}

func (a *Adapter) follower(channel string) *threads.Follower {
	if at := a.follows[channel]; at != nil {
		return at.Load()
	}
	return nil
}

// heard tells the follower of a channel what an event says of it.
//
// SECURITY: a deletion is in force before it is acknowledged.
func (a *Adapter) heard(ctx context.Context, m event.Message) error {
	f := a.follower(m.Channel)
	switch {
	case f == nil:
	case m.Deleted != "":
		return f.Deleted(ctx, m.Deleted, m.Within)
	case m.Changed != nil:
		return f.Changed(ctx, m.Changed.Root())
	default:
		return f.Changed(ctx, m.Root())
	}
	return nil
}

// history is what a follower needs of Slack.
type history struct {
	facts
	dir *directory.Directory
}

var _ threads.API = history{}

// most is how many messages a page holds; Slack gives fewer to some apps.
const most = 200

func (h history) History(ctx context.Context, channel string, oldest time.Time, cursor string) ([]threads.Message, string, error) {
	var out []threads.Message
	var next string
	err := h.do(ctx, func(api *slackgo.Client) error {
		r, err := api.GetConversationHistoryContext(ctx, &slackgo.GetConversationHistoryParameters{
			ChannelID: channel, Cursor: cursor, Limit: most, Oldest: fmt.Sprintf("%d.000000", oldest.Unix()),
		})
		if err == nil {
			out, next = messages(r.Messages), r.ResponseMetaData.NextCursor
		}
		return err
	})
	return out, next, lasting(err)
}

func (h history) Replies(ctx context.Context, channel, root, cursor string) ([]threads.Message, string, error) {
	var out []threads.Message
	var next string
	err := h.do(ctx, func(api *slackgo.Client) error {
		list, more, after, err := api.GetConversationRepliesContext(ctx, &slackgo.GetConversationRepliesParameters{ChannelID: channel, Timestamp: root, Cursor: cursor, Limit: most})
		if err == nil {
			out = messages(list)
			if next = ""; more {
				next = after
			}
		}
		return err
	})
	if codeOf(err) == "thread_not_found" || codeOf(err) == "message_not_found" {
		return nil, "", threads.ErrNoThread
	}
	return out, next, lasting(err)
}

func (h history) Conversation(ctx context.Context, channel string) (threads.Conversation, error) {
	c, err := h.Channel(ctx, channel) // as it is now: invitations make no event
	if err != nil {
		return threads.Conversation{}, lasting(err)
	}
	if c.IM || c.MPIM {
		return threads.Conversation{}, &threads.Lasting{Text: "it is a direct or group conversation: only channels are taken in"}
	}
	_, err = h.dir.Audience(ctx, channel)
	external := c.ExtShared || c.PendingExt || errors.Is(err, directory.ErrExternal)
	if err != nil && !external {
		return threads.Conversation{}, lasting(err)
	}
	return threads.Conversation{Name: c.Name, External: external}, nil
}

func (h history) Name(ctx context.Context, user string) string { return h.dir.Name(ctx, user) }

// lasting sorts errors into those that pass and those that somebody must end.
func lasting(err error) error {
	var limited *outbox.Limited
	if err == nil || errors.As(err, &limited) {
		return err
	}
	text := ""
	switch codeOf(err) {
	case "missing_scope":
		text = "the bot may not read it: add the bot scopes channels:history and, for private channels, groups:history, and install the app again"
	case "not_in_channel", "channel_not_found":
		text = "the bot is not a member of it: write /invite there, with the bot's name; or the id is wrong"
	case "is_archived":
		text = "it is archived"
	}
	if text == "" {
		return err
	}
	return &threads.Lasting{Text: text}
}

func messages(list []slackgo.Message) []threads.Message {
	out := make([]threads.Message, 0, len(list))
	for _, m := range list {
		t := threads.Message{
			TS: m.Timestamp, Thread: m.ThreadTimestamp, User: m.User, Bot: m.BotID != "" || m.BotProfile != nil, Subtype: m.SubType, Text: m.Text,
			Replies: m.ReplyCount, Latest: m.LatestReply,
		}
		if m.Edited != nil {
			t.Edited = m.Edited.Timestamp
		}
		for _, f := range m.Files {
			if f.Name != "" {
				t.Files = append(t.Files, f.Name)
			}
		}
		out = append(out, t)
	}
	return slices.Clip(out)
}
