package assemble

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"footnote/retrieval/redislink"
)

// Slack tells one replica that somebody joined a group or left a channel; that
// one tells the others on the channel {PREFIX:people}:notices. Words get lost with
// a connection: who subscribes anew forgets what it knows, and nothing that is
// known is older than the adapter's MaxAge anyway.

func (s *Service) peopleChannel() string { return "{" + key(s.c, "people") + "}:notices" }

// shareTime is how long telling the others may take: Slack waits for three
// seconds.
const shareTime = time.Second

// share tells the other replicas; nil without any.
func (s *Service) share() func(context.Context, []byte) error {
	if s.state.Link == nil {
		return nil
	}
	return func(ctx context.Context, word []byte) error {
		ctx, cancel := context.WithTimeout(ctx, shareTime)
		defer cancel()
		return redislink.Failed("telling other replicas what changed", s.state.Link.Publish(ctx, s.peopleChannel(), word).Err())
	}
}

// hear takes the words of the others until ctx is done.
func (s *Service) hear(ctx context.Context) {
	words := s.state.Link.Subscribe(ctx, s.peopleChannel())
	defer func() { _ = words.Close() }() // nothing is sent on it
	all := words.ChannelWithSubscriptions()
	for {
		select {
		case <-ctx.Done():
			return
		case w, open := <-all:
			switch w := w.(type) {
			case *redis.Subscription:
				s.Slack.Changed(nil)
			case *redis.Message:
				s.Slack.Changed([]byte(w.Payload))
			}
			if !open {
				return
			}
		}
	}
}
