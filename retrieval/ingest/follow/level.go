package follow

import (
	"slices"
	"sync"
	"time"

	"footnote/retrieval/ingest"
)

// Level is the service level of one kind of change since the start.
type Level struct {
	Kind  ingest.Effect `json:"kind"`
	Count int           `json:"count"`
	P50   time.Duration `json:"p50"`
	P95   time.Duration `json:"p95"`
	Max   time.Duration `json:"max"`
}

// Target is what the 95th percentile of a kind should not exceed.
func Target(kind ingest.Effect) time.Duration {
	if kind == ingest.Renewal {
		return 10 * time.Second
	}
	return 5 * time.Second
}

// kept is how many of the latest times of a kind percentiles are taken from.
const kept = 10_000

// clock measures changes by kind. It is safe for concurrent use.
type clock struct {
	mu    sync.Mutex
	count map[ingest.Effect]int
	most  map[ingest.Effect]time.Duration
	times map[ingest.Effect][]time.Duration // the latest, as a ring
}

func newClock() *clock {
	return &clock{count: map[ingest.Effect]int{}, most: map[ingest.Effect]time.Duration{}, times: map[ingest.Effect][]time.Duration{}}
}

func (c *clock) took(kind ingest.Effect, d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ring := c.times[kind]; len(ring) < kept {
		c.times[kind] = append(ring, d)
	} else {
		ring[c.count[kind]%kept] = d
	}
	c.count[kind]++
	c.most[kind] = max(c.most[kind], d)
}

// levels are those of all kinds, measured or not.
func (c *clock) levels() []Level {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Level
	for _, kind := range []ingest.Effect{ingest.Renewal, ingest.AccessChange, ingest.Removal} {
		sorted := slices.Sorted(slices.Values(c.times[kind]))
		out = append(out, Level{kind, c.count[kind], percentile(sorted, 50), percentile(sorted, 95), c.most[kind]})
	}
	return out
}

// percentile is by nearest rank: the least value that p percent do not exceed.
func percentile(sorted []time.Duration, p int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(0, (len(sorted)*p+99)/100-1)]
}
