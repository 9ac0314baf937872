package redisledger

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"footnote/bot/ledger"
)

// record is a delivery as the server has it.
type record struct {
	ledger.Delivery
	by string // token of its last writer
}

// load reads deliveries by their keys, nil for those that are not there.
func (l *Ledger) load(ctx context.Context, c redis.Cmdable, payloads bool, keys ...string) ([]*record, error) {
	fields := []string{"d", "by"}
	if payloads {
		fields = append(fields, "p")
	}
	var cmds []*redis.SliceCmd
	_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, k := range keys {
			cmds = append(cmds, p.HMGet(ctx, l.key("d", k), fields...))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := make([]*record, len(keys))
	for i, cmd := range cmds {
		if out[i], err = decode(cmd.Val()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func decode(fields []any) (*record, error) {
	text, ok := fields[0].(string)
	if !ok {
		return nil, nil
	}
	var r record
	if err := json.Unmarshal([]byte(text), &r.Delivery); err != nil {
		return nil, fmt.Errorf("a delivery cannot be read: %w", err)
	}
	r.by, _ = fields[1].(string)
	if len(fields) > 2 && !r.State.Ended() {
		if p, _ := fields[2].(string); p != "" {
			r.Payload = []byte(p)
		}
	}
	return &r, nil
}

// one reads the delivery with the key, nil if there is none.
func (l *Ledger) one(ctx context.Context, c redis.Cmdable, payload bool, key string) (*record, error) {
	rs, err := l.load(ctx, c, payload, key)
	if err != nil {
		return nil, err
	}
	return rs[0], nil
}

// put writes a delivery and every list in which it stands. was is how it was
// before, nil if it is new.
func (l *Ledger) put(ctx context.Context, p redis.Pipeliner, was *record, d ledger.Delivery, by string) {
	payload := d.Payload
	d.Payload = nil
	at, age := l.key("d", d.Key), float64(d.Received.UnixMilli())
	p.HSet(ctx, at, "d", text(d), "n", d.Attempt, "by", by)
	if was != nil && was.State != d.State {
		p.ZRem(ctx, l.key("is", string(was.State)), d.Key)
	}
	in := redis.Z{Score: age, Member: d.Key}
	p.ZAdd(ctx, l.at+"all", in)
	p.ZAdd(ctx, l.key("is", string(d.State)), in)
	p.ZAdd(ctx, l.key("of", d.Asker), in)
	p.Expire(ctx, l.key("of", d.Asker), l.o.Keep+spare)
	keep := time.Duration(0) // for ever
	if d.State.Ended() {
		keep = l.o.Keep + spare
		p.HDel(ctx, at, "p")
		p.Expire(ctx, at, keep)
		p.ZRem(ctx, l.at+"leases", d.Key)
		for _, at := range l.open(d) {
			p.SRem(ctx, at, d.Key)
		}
	} else {
		for _, at := range l.open(d) {
			p.SAdd(ctx, at, d.Key)
		}
		p.Persist(ctx, at)
		if was == nil {
			p.HSet(ctx, at, "p", payload)
		}
	}
	for _, k := range d.Also {
		p.Set(ctx, l.key("also", k), d.Key, keep)
	}
}

// open are the sets in which an unfinished delivery stands.
func (l *Ledger) open(d ledger.Delivery) []string {
	out := []string{l.key("open", d.Asker)}
	if d.Room != "" {
		out = append(out, l.key("open", d.Room))
	}
	return out
}

// Unfinished counts the unfinished deliveries of an asker and of a room, at
// all replicas.
func (l *Ledger) Unfinished(ctx context.Context, asker, room string) (ofAsker, ofRoom int, err error) {
	var a, r *redis.IntCmd
	_, err = l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		a, r = p.SCard(ctx, l.key("open", asker)), p.SCard(ctx, l.key("open", room))
		return nil
	})
	if err != nil {
		return 0, 0, failed("counting questions", err)
	}
	return int(a.Val()), int(r.Val()), nil
}

func (l *Ledger) lease(ctx context.Context, p redis.Pipeliner, key string, until time.Time) {
	p.ZAdd(ctx, l.at+"leases", redis.Z{Score: float64(until.UnixMilli()), Member: key})
}

// Claim implements ledger.Claims.
func (l *Ledger) Claim(ctx context.Context, d ledger.Delivery, lease time.Duration) (ledger.Delivery, bool, error) {
	d.State = cmp.Or(d.State, ledger.Accepted)
	if err := d.Check(); err != nil {
		return ledger.Delivery{}, false, err
	}
	if err := l.room(ctx); err != nil {
		return ledger.Delivery{}, false, failed("making room", err)
	}
	var out ledger.Delivery
	var won bool
	by := rand.Text()
	err := l.transact(ctx, func(tx *redis.Tx) (func(redis.Pipeliner), error) {
		now := l.now()
		mine, old, err := l.holder(ctx, tx, d, now)
		switch {
		case err != nil:
			return nil, err
		case old != nil && old.by == by: // written when the answer was lost
			out, won = old.Clone(), old.Copies == 0
			return nil, nil
		case old != nil:
			out, won = old.Counted(d), false
			if out.Copies == old.Copies {
				return nil, nil
			}
			return func(p redis.Pipeliner) { l.put(ctx, p, old, out, by) }, nil
		}
		out, won = d.Begun(now), true
		return func(p redis.Pipeliner) {
			if mine != nil { // it was no question, or is past its age
				p.ZRem(ctx, l.key("is", string(mine.State)), d.Key)
			}
			l.put(ctx, p, nil, out, by)
			if !out.State.Ended() {
				l.lease(ctx, p, d.Key, now.Add(lease))
			}
		}, nil
	}, l.names(d)...)
	if err != nil {
		return ledger.Delivery{}, false, failed("claiming a question", err)
	}
	l.sweep()
	switch {
	case !won || out.State.Ended():
		out.Payload = nil
	default:
		out.Payload = slices.Clone(d.Payload)
	}
	return out, won, nil
}

// Restore writes an unfinished delivery as its holder has it, with a lease, if
// the server has lost it. It reports false, and changes nothing, if there is one
// with any of its keys.
func (l *Ledger) Restore(ctx context.Context, d ledger.Delivery, lease time.Duration) (bool, error) {
	if d.State.Ended() {
		return false, nil // it would never end again
	}
	by, done := rand.Text(), false
	err := l.transact(ctx, func(tx *redis.Tx) (func(redis.Pipeliner), error) {
		now := l.now()
		mine, old, err := l.holder(ctx, tx, d, now)
		if done = err == nil && mine == nil && old == nil; !done {
			if mine != nil && mine.by == by { // written when the answer was lost
				done = true
			}
			return nil, err
		}
		return func(p redis.Pipeliner) {
			l.put(ctx, p, nil, d, by)
			l.lease(ctx, p, d.Key, now.Add(lease))
		}, nil
	}, l.names(d)...)
	return done, failed("restoring a question", err)
}

// names are the keys from which a claim is decided.
func (l *Ledger) names(d ledger.Delivery) []string {
	var out []string
	for _, k := range d.Keys() {
		out = append(out, l.key("d", k), l.key("also", k))
	}
	return out
}

// holder returns the delivery that has the key of d, and the one that stands
// in the way of d; nil if there is none.
func (l *Ledger) holder(ctx context.Context, tx *redis.Tx, d ledger.Delivery, now time.Time) (mine, blocks *record, err error) {
	keys := d.Keys()
	found, err := l.load(ctx, tx, false, keys...)
	if err != nil {
		return nil, nil, err
	}
	var also []string
	for _, k := range keys {
		also = append(also, l.key("also", k))
	}
	targets, err := tx.MGet(ctx, also...).Result()
	if err != nil {
		return nil, nil, err
	}
	mine = found[0]
	for i, r := range found {
		if target, ok := targets[i].(string); r == nil && ok {
			if err := tx.Watch(ctx, l.key("d", target)).Err(); err != nil {
				return nil, nil, err
			}
			if r, err = l.one(ctx, tx, false, target); err != nil {
				return nil, nil, err
			}
		}
		if r != nil && !r.Expired(l.o.Keep, now) && r.Blocks(d) {
			return mine, r, nil
		}
	}
	return mine, nil, nil
}

// onDelivery changes one delivery. change returns errStep-wrapped refusals.
func (l *Ledger) onDelivery(ctx context.Context, key string, then func(context.Context, *redis.Tx) error, change func(*record) (func(redis.Pipeliner), error)) error {
	return l.transactThen(ctx, then, func(tx *redis.Tx) (func(redis.Pipeliner), error) {
		r, err := l.one(ctx, tx, false, key)
		if err != nil {
			return nil, err
		}
		if r == nil {
			return nil, ledger.ErrLost
		}
		return change(r)
	}, l.key("d", key))
}

// Move implements ledger.Claims.
func (l *Ledger) Move(ctx context.Context, r ledger.Ref, s ledger.Step) error {
	if err := s.Check(); err != nil {
		return err
	}
	var then func(context.Context, *redis.Tx) error
	if s.State == ledger.Posting {
		then = kept
	}
	by := rand.Text()
	return failed("noting a step", l.onDelivery(ctx, r.Key, then, func(old *record) (func(redis.Pipeliner), error) {
		if old.by == by {
			return nil, nil
		}
		d, err := old.Taken(r, s, l.now())
		if err != nil && !errors.Is(err, ledger.ErrLost) {
			err = fmt.Errorf("%w%w", errStep, err)
		}
		return func(p redis.Pipeliner) { l.put(ctx, p, old, d, by) }, err
	}))
}

// renewScript extends a lease that is still held.
//
//	keys: delivery leases
//	args: key, attempt, until
//	gives 1, or 0 if it is lost
var renewScript = redis.NewScript(`
if redis.call('HGET', KEYS[1], 'n') ~= ARGV[2] or not redis.call('ZSCORE', KEYS[2], ARGV[1]) then return 0 end
redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
return 1`)

// Renew implements ledger.Claims.
func (l *Ledger) Renew(ctx context.Context, lease time.Duration, held ...ledger.Ref) ([]ledger.Ref, error) {
	until := l.now().Add(lease).UnixMilli()
	var lost []ledger.Ref
	for _, r := range held {
		kept, err := renewScript.Run(ctx, l.client, []string{l.key("d", r.Key), l.at + "leases"}, r.Key, r.Attempt, until).Int()
		if err != nil {
			return nil, failed("renewing a lease", err)
		}
		if kept == 0 {
			lost = append(lost, r)
		}
	}
	return lost, nil
}

// Resume implements ledger.Claims.
func (l *Ledger) Resume(ctx context.Context, lease time.Duration) ([]ledger.Delivery, error) {
	now := l.now()
	keys, err := l.client.ZRangeByScore(ctx, l.at+"leases", &redis.ZRangeBy{Min: "-inf", Max: strconv.FormatInt(now.UnixMilli(), 10)}).Result()
	if err != nil {
		return nil, failed("looking for unfinished questions", err)
	}
	var out []ledger.Delivery
	for _, k := range keys {
		d, err := l.takeOver(ctx, k, now, lease)
		if errors.Is(err, ledger.ErrLost) {
			continue // another was faster
		}
		if err != nil {
			return out, failed("taking a question over", err)
		}
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b ledger.Delivery) int {
		return cmp.Or(a.Received.Compare(b.Received), cmp.Compare(a.Key, b.Key))
	})
	return out, nil
}

func (l *Ledger) takeOver(ctx context.Context, key string, now time.Time, lease time.Duration) (ledger.Delivery, error) {
	var out ledger.Delivery
	by := rand.Text()
	err := l.transact(ctx, func(tx *redis.Tx) (func(redis.Pipeliner), error) {
		r, err := l.one(ctx, tx, true, key)
		if err != nil {
			return nil, err
		}
		if r != nil && r.by == by {
			out = r.Delivery
			return nil, nil
		}
		until, err := tx.ZScore(ctx, l.at+"leases", key).Result()
		if errors.Is(err, redis.Nil) {
			return nil, ledger.ErrLost
		}
		if err != nil {
			return nil, err
		}
		if r == nil || r.State.Ended() {
			return func(p redis.Pipeliner) { p.ZRem(ctx, l.at+"leases", key) }, nil
		}
		if int64(until) > now.UnixMilli() {
			return nil, ledger.ErrLost
		}
		out = r.Clone()
		out.Attempt++
		return func(p redis.Pipeliner) {
			l.put(ctx, p, r, out, by)
			l.lease(ctx, p, key, now.Add(lease))
		}, nil
	}, l.key("d", key))
	if err == nil && out.Key == "" {
		err = ledger.ErrLost
	}
	return out, err
}

// Delivery returns a delivery by its key or one of its further keys, with its
// payload while it is unfinished. ErrNotFound if there is none.
func (l *Ledger) Delivery(ctx context.Context, key string) (ledger.Delivery, error) {
	r, err := l.one(ctx, l.client, true, key)
	if err == nil && r == nil {
		var target string
		if target, err = l.client.Get(ctx, l.key("also", key)).Result(); errors.Is(err, redis.Nil) {
			return ledger.Delivery{}, ledger.ErrNotFound
		}
		if err == nil {
			r, err = l.one(ctx, l.client, true, target)
		}
	}
	if err != nil {
		return ledger.Delivery{}, failed("reading a delivery", err)
	}
	if r == nil || r.Expired(l.o.Keep, l.now()) {
		return ledger.Delivery{}, ledger.ErrNotFound
	}
	return r.Delivery, nil
}

// Of lists an asker's own deliveries, newest first, without payloads.
func (l *Ledger) Of(ctx context.Context, asker string, limit int) ([]ledger.Delivery, error) {
	return l.list(ctx, l.key("of", asker), limit)
}

// Latest lists deliveries of everybody, newest first, without payloads.
func (l *Ledger) Latest(ctx context.Context, limit int) ([]ledger.Delivery, error) {
	return l.list(ctx, l.at+"all", limit)
}

// page is how many records are read at once.
const page = 200

func (l *Ledger) list(ctx context.Context, from string, limit int) ([]ledger.Delivery, error) {
	out := []ledger.Delivery{}
	now := l.now()
	for start := 0; len(out) < limit; start += page {
		keys, err := l.client.ZRevRange(ctx, from, int64(start), int64(start+page-1)).Result()
		if err != nil {
			return nil, failed("listing deliveries", err)
		}
		if len(keys) == 0 {
			break
		}
		found, err := l.load(ctx, l.client, false, keys...)
		if err != nil {
			return nil, failed("listing deliveries", err)
		}
		for _, r := range found {
			if r != nil && len(out) < limit && !r.Expired(l.o.Keep, now) {
				out = append(out, r.Delivery)
			}
		}
	}
	return out, nil
}

// Pending lists unfinished deliveries, oldest first, without payloads.
func (l *Ledger) Pending(ctx context.Context, limit int) ([]ledger.Delivery, error) {
	keys, err := l.client.ZRange(ctx, l.at+"leases", 0, -1).Result()
	if err != nil || len(keys) == 0 {
		return []ledger.Delivery{}, failed("listing deliveries", err)
	}
	found, err := l.load(ctx, l.client, false, keys...)
	if err != nil {
		return nil, failed("listing deliveries", err)
	}
	out := []ledger.Delivery{}
	for _, r := range found {
		if r != nil && !r.State.Ended() {
			out = append(out, r.Delivery)
		}
	}
	slices.SortFunc(out, func(a, b ledger.Delivery) int {
		return cmp.Or(a.Received.Compare(b.Received), cmp.Compare(a.Key, b.Key))
	})
	return out[:min(limit, len(out))], nil
}

var states = []ledger.State{
	ledger.Received, ledger.Accepted, ledger.Answering, ledger.Posting, ledger.Answered, ledger.Refused, ledger.Failed, ledger.Ignored,
}

// Counts says how many deliveries are in each state.
func (l *Ledger) Counts(ctx context.Context) (map[ledger.State]int, error) {
	cmds := map[ledger.State]*redis.IntCmd{}
	_, err := l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, s := range states {
			from := "-inf"
			if s.Ended() {
				from = l.oldest(l.o.Keep)
			}
			cmds[s] = p.ZCount(ctx, l.key("is", string(s)), from, "+inf")
		}
		return nil
	})
	if err != nil {
		return nil, failed("counting deliveries", err)
	}
	out := map[ledger.State]int{}
	for s, cmd := range cmds {
		if n := int(cmd.Val()); n > 0 {
			out[s] = n
		}
	}
	return out, nil
}

// oldest is the score of what is just within an age.
func (l *Ledger) oldest(keep time.Duration) string {
	return strconv.FormatInt(l.now().Add(-keep).UnixMilli(), 10)
}
