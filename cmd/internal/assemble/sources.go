package assemble

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"footnote/retrieval/ingest/follow"
	"footnote/retrieval/redislink"
)

// Sources are how the sources stand: what the last pass of any process left, in
// the data directory or on the Redis.
func (s *State) Sources(ctx context.Context) ([]follow.Status, error) {
	if s.Link == nil {
		return follow.ReadStatus(s.c.Data)
	}
	var all []follow.Status
	raw, err := s.Link.Get(ctx, key(s.c, "passes")).Bytes()
	switch {
	case errors.Is(err, redis.Nil):
		return nil, nil
	case err != nil:
		return nil, redislink.Failed("reading how the sources stand", err)
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("reading how the sources stand: %w", err)
	}
	return all, nil
}

// keepSources replaces what Sources gives.
func (s *State) keepSources(ctx context.Context, all []follow.Status) error {
	if s.Link == nil {
		return follow.WriteStatus(s.c.Data, all)
	}
	before, err := s.Sources(ctx)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(sinceBefore(before, all))
	if err != nil {
		return err
	}
	return redislink.Failed("keeping how the sources stand", s.Link.Set(ctx, key(s.c, "passes"), raw, 0).Err())
}

// sinceBefore is how the sources stand for everybody. A process that has made no
// pass over one yet leaves it as it was. So does one for which the Redis was
// away: that is nothing of the source, and whoever keeps up with it next would
// not know that it is over.
func sinceBefore(before, now []follow.Status) []follow.Status {
	out := slices.Clone(now)
	for i, s := range out {
		if !s.Waits && (s.Error != "" || !s.Scanned.IsZero()) {
			continue
		}
		out[i].Error, out[i].Waits = "", false
		if at := slices.IndexFunc(before, func(b follow.Status) bool { return b.Source == s.Source && b.Root == s.Root }); at >= 0 {
			out[i] = before[at]
		}
	}
	return out
}

// sources are how the sources stand, for a process that may keep up with them.
// One that leaves that to another replica says what that one found: what it
// knows itself is of the time when it did so.
func (s *Service) sources(ctx context.Context) []follow.Status {
	own := s.Ingester.Loop.Status()
	if s.state.Link == nil || s.lead.is() {
		return own
	}
	all, err := s.state.Sources(ctx)
	if err != nil {
		return own // that the Redis is away is said elsewhere
	}
	return sinceBefore(all, unknown(own))
}

// unknown are sources of which nothing is known.
func unknown(all []follow.Status) []follow.Status {
	out := make([]follow.Status, len(all))
	for i, s := range all {
		out[i] = follow.Status{Source: s.Source, Root: s.Root}
	}
	return out
}
