package desk

import (
	"fmt"
	"slices"
	"time"
)

// Health is how the desk is doing.
type Health struct {
	Waiting   int
	Running   int
	Oldest    time.Duration // wait of the question that has waited longest
	Resumed   int           // taken over from an earlier or another process
	Panics    int
	Platforms map[string]Inbound
}

// Inbound is what one platform delivered since the start.
type Inbound struct {
	Received   int
	Duplicates int
	Shed       int // turned away because too many waited
	Stale      int
	Errors     int           // not taken: the ledger failed or was too slow
	Last       time.Time     // latest delivery, zero if none yet
	AckP99     time.Duration // of the latest deliveries: until they could be acknowledged
}

// counters are what Health is made of.
type counters struct {
	resumed, panics int
	platforms       map[string]*platform
}

type platform struct {
	Inbound
	acks [512]time.Duration // ring
	n    int                // acks ever
}

func (c *counters) of(name string) *platform {
	p := c.platforms[name]
	if p == nil {
		p = &platform{}
		c.platforms[name] = p
	}
	return p
}

// arrived notes a delivery, or says why none can be taken.
func (d *Desk) arrived(name string, at time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.handlers[name] == nil {
		return fmt.Errorf("taking a question: the platform %q has no handler", name)
	}
	p := d.count.of(name)
	p.Received++
	p.Last = at
	if d.phase == stopped {
		p.Errors++
		return fmt.Errorf("taking a question: %w", ErrStopped)
	}
	return nil
}

func (d *Desk) acknowledged(name string, r received, took time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.count.of(name)
	p.acks[p.n%len(p.acks)] = took
	p.n++
	switch {
	case r.err != nil:
		p.Errors++
	case r.verdict == Duplicate:
		p.Duplicates++
	case r.verdict == Stale:
		p.Stale++
	case r.verdict != Accepted:
		p.Shed++
	}
}

// Health says how the desk is doing.
func (d *Desk) Health() Health {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := Health{
		Waiting: d.line.length, Running: d.running, Resumed: d.count.resumed, Panics: d.count.panics,
		Platforms: map[string]Inbound{},
	}
	if it := d.line.oldest(); it != nil {
		h.Oldest = d.o.Now().Sub(it.since)
	}
	for name, p := range d.count.platforms {
		in := p.Inbound
		in.AckP99 = p.p99()
		h.Platforms[name] = in
	}
	return h
}

func (p *platform) p99() time.Duration {
	acks := slices.Sorted(slices.Values(p.acks[:min(p.n, len(p.acks))]))
	if len(acks) == 0 {
		return 0
	}
	return acks[(len(acks)*99+99)/100-1]
}
