package redislink

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"
)

// Writes reports that the server takes a write: one that is full, or a replica,
// answers everything else. It writes the key, which ends by itself.
func (l *Link) Writes(ctx context.Context, key string) error {
	return Failed("trying a write", l.Set(ctx, key, "1", time.Second).Err())
}

// Keeps refuses a server that throws data away when its memory is full. One that
// does not tell is taken at its word.
func (l *Link) Keeps(ctx context.Context) error {
	info, _ := l.Info(ctx, "memory").Result() // "" tells nothing: what is away is found by all else
	if loses := throwsAway(parse(info)); loses != "" {
		return fmt.Errorf("%s: %s", l.where, loses)
	}
	return nil
}

// throwsAway says what is wrong with the policy for full memory, "" nothing.
func throwsAway(facts map[string]string) string {
	p := facts["maxmemory_policy"]
	if p == "" || p == "noeviction" {
		return ""
	}
	return "its policy for full memory is " + p + ", which would throw documents and questions away: " +
		"CONFIG SET maxmemory-policy noeviction, and in the server's configuration"
}

// Evicted is how many keys the server has thrown away since it was started, 0 if
// it does not tell.
func (l *Link) Evicted(ctx context.Context) int64 {
	info, _ := l.Info(ctx, "stats").Result() // likewise
	return evicted(parse(info))
}

func evicted(facts map[string]string) int64 {
	n, _ := strconv.ParseInt(facts["evicted_keys"], 10, 64)
	return n
}

// What is kept for questions: one part in so many of the server's memory, and
// bytes at least, since its buffers come and go.
const (
	sparePart  = 16
	spareBytes = 4 << 20
)

// glance is how long a look at the memory is good for: others fill it, too.
const glance = 50 * time.Millisecond

// room is what the last look at the memory found.
type room struct {
	mu      sync.Mutex
	at      time.Time
	left    int64  // for documents, less what was promised since
	most    string // the server's limit, for people
	bounded bool   // there is a limit
	loses   string // why what is written may be lost, "" it is kept
}

// Room says why documents must not take so many bytes of memory, "" that they
// may: what is left is for questions, whose every step is a write, and a server
// that throws data away gets none. It looks
// every glance and counts what it has promised since. A server that does not
// tell has room.
func (l *Link) Room(ctx context.Context, bytes int64) string {
	r := &l.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.at) > glance {
		r.at = now
		info, _ := l.Info(ctx, "memory").Result() // "" tells nothing
		r.left, r.most, r.bounded = leftOf(info)
		r.loses = throwsAway(parse(info))
	}
	if r.loses != "" {
		return "Redis is not safe: " + r.loses
	}
	if !r.bounded || r.left >= bytes {
		r.left -= bytes
		return ""
	}
	return fmt.Sprintf("the memory of Redis is full (of its maxmemory of %s some is kept for questions): raise maxmemory, or remove documents", r.most)
}

// leftOf is how many bytes INFO memory leaves to documents. What the server
// counts against its limit leaves out its buffers for replicas and the log.
func leftOf(info string) (left int64, most string, bounded bool) {
	facts := parse(info)
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(facts[name], 10, 64)
		return n
	}
	limit := number("maxmemory")
	return limit - max(limit/sparePart, spareBytes) - number("used_memory") + number("mem_not_counted_for_evict"), facts["maxmemory_human"], limit > 0
}
