// Package redisledger is the ledger that replicas share, on a Redis.
//
// Its one idea: the same decisions, made under another lock. What may happen to
// a delivery is decided by package ledger; here a decision is written only if
// nothing that it was made from has changed since (WATCH, MULTI, EXEC), else it
// is made anew. So of any number of replicas one wins a claim.
//
// Keys, under {PREFIX:ledger}, one hash slot of a cluster:
//
//	:d:KEY       hash    a delivery: d JSON, n attempt, p payload until it ends, by its last writer
//	:also:KEY    string  a further key of a delivery -> its key
//	:all         zset    deliveries by arrival, Unix ms; :is:STATE and :of:ASKER likewise
//	:open:WHERE  set     unfinished deliveries of an asker or a room
//	:leases      zset    unfinished deliveries by the end of their lease
//	:a:ID        hash    an answer: a JSON; :q:ID string, its question; :to:KEY string, the latest to a delivery
//	:answers     zset    answers by age
//	:feedback    hash    JSON by answer and person, with :feedback:at by age; :help and :gaps likewise
//	:audit       list    JSON, the latest first
//
// Every write carries a token of its own: when the connection fails while the
// server may have taken it, the write is tried again and finds itself done.
// Leases are by the replicas' clocks, which must agree to within seconds. They
// outlive a process: what a killed one held is taken over when its lease ends.
//
// Durable means: acknowledged by the server, and on its disk and at a replica, if
// it has one, before a message is posted. With appendfsync everysec the loss of
// power may take the last second, and the end of its process what it held back
// while a slow disk wrote; so may a replica that takes over and was behind, also
// where it was asked to: the old master takes writes for another moment. With
// min-replicas-to-write 1 it cannot have it that a message is about to be posted
// unless a replica has it, too.
// Restore gives a question back by whoever holds it. An end that is lost is
// looked for again by whoever takes the question over, if it had begun to post.
package redisledger

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"math/big"
	"net"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"footnote/bot/ledger"
	"footnote/retrieval/redislink"
)

// Options of a ledger; zero values mean the defaults.
type Options struct {
	ledger.Options
	Prefix string // of all keys: footnote
}

// Ledger is a ledger on a Redis. It is safe for concurrent use, also of other
// processes.
type Ledger struct {
	client redis.UniversalClient
	o      Options
	at     string // beginning of all keys

	mu     sync.Mutex // of what follows
	swept  time.Time
	closed bool
	sweeps sync.WaitGroup
}

var _ ledger.Store = (*Ledger)(nil)

// Open makes a ledger with a client of the caller's, who closes it.
func Open(client redis.UniversalClient, o Options) *Ledger {
	o.Fill()
	return &Ledger{client: client, o: o, at: "{" + cmp.Or(o.Prefix, "footnote") + ":ledger}:"}
}

// Close waits for tidying that is under way.
func (l *Ledger) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.sweeps.Wait()
	return nil
}

func (l *Ledger) now() time.Time { return ledger.Stamp(l.o.Now()) }

func (l *Ledger) key(kind, id string) string { return l.at + kind + ":" + id }

// spare is how much longer the server keeps what is past its age by our clock.
const spare = time.Hour

// transact makes a decision and writes it in one step, again and again until
// nothing it read has changed meanwhile. watched are the keys that decide
// reads; those that it finds on its way it must watch itself. decide returns
// what is to be written, nil for nothing. It may run many times.
func (l *Ledger) transact(ctx context.Context, decide func(*redis.Tx) (func(redis.Pipeliner), error), watched ...string) error {
	return l.transactThen(ctx, nil, decide, watched...)
}

// transactThen is transact with something to do on the connection once it is
// written, without which it is no success.
func (l *Ledger) transactThen(ctx context.Context, then func(context.Context, *redis.Tx) error, decide func(*redis.Tx) (func(redis.Pipeliner), error), watched ...string) error {
	for try := 0; ; try++ {
		err := l.client.Watch(ctx, func(tx *redis.Tx) error {
			write, err := decide(tx)
			if err == nil && write != nil {
				_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error { write(p); return nil })
			}
			if err != nil || then == nil {
				return err
			}
			return then(ctx, tx)
		}, watched...)
		if !again(err, try) {
			return err
		}
		if err := pause(ctx, try); err != nil {
			return err
		}
	}
}

// keeping is how long a write waits for the disk: with everysec a second at most
// while that keeps up.
const keeping = 1200 * time.Millisecond

// kept waits until the writes of a connection are on the server's disk, and at a
// replica where one follows. It is for what must not be lost with the server's
// process or its machine: that a message is about to be posted. With appendfsync
// everysec an acknowledged write may still be in the process while the disk is
// busy, and a replica may not have it yet; whoever took over would post the
// message again. What cannot be had in time is done without (a server without a
// log of writes, or older than WAITAOF, keeps nothing anyway), unless the server
// must have a replica (min-replicas-to-write): then a replica that left has taken
// over, perhaps.
func kept(ctx context.Context, tx *redis.Tx) error {
	if err := tx.Do(ctx, "WAITAOF", 1, 0, keeping.Milliseconds()).Err(); redislink.Unavailable(err) {
		return err
	}
	if _, err := redislink.Received(ctx, tx, ""); redislink.Unavailable(err) || errors.Is(err, redislink.ErrAlone) {
		return err
	}
	return nil
}

const (
	conflicts = 100 // tries until contention is given up
	cuts      = 2   // tries until a connection that fails is given up
)

// again reports that a transaction should be tried again.
func again(err error, try int) bool {
	var answer redis.Error
	var network net.Error
	switch {
	case err == nil || errors.Is(err, ledger.ErrLost) || errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrFull):
		return false
	case errors.Is(err, redis.TxFailedErr):
		return try < conflicts
	case errors.Is(err, redislink.ErrAlone) || errors.As(err, &answer) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, errStep):
		return false
	case errors.Is(err, redislink.ErrOpen) || errors.As(err, &network) && network.Timeout():
		return false // it has taken its time already
	}
	return try < cuts
}

// errStep marks a refusal of package ledger: trying again cannot help.
var errStep = errors.New("")

// pause lets others get their turn: up to 2 ms for each try, at most 20 ms.
func pause(ctx context.Context, try int) error {
	n, err := rand.Int(rand.Reader, big.NewInt(int64(min(try+1, 10))*int64(2*time.Millisecond)))
	if err != nil {
		return err
	}
	return redislink.Pause(ctx, time.Duration(n.Int64()))
}

// failed says what was being done. Errors that callers tell apart stay.
func failed(doing string, err error) error {
	if err == nil || errors.Is(err, ledger.ErrLost) || errors.Is(err, ledger.ErrNotFound) || errors.Is(err, ledger.ErrFull) {
		return err
	}
	return redislink.Failed("the ledger: "+doing, err)
}
