package jobs

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"footnote/retrieval"
	"footnote/retrieval/catalog"
	"footnote/retrieval/ingest"
	"footnote/retrieval/redislink"
)

// worker does tasks: an ingest.Pipeline.
type worker interface {
	Work(ctx context.Context, t ingest.Task, data []byte, open func(string) (retrieval.Generation, error), told func(catalog.State)) (ingest.Done, error)
}

// Why a try ends before its work does.
var (
	errTaken = errors.New("the job is another's, or another job, by now")
	errLate  = errors.New("the job took longer than its deadline")
)

// Work does jobs, one after another, until ctx is done. Run it several times
// for several at once. A server that does not answer is waited for.
func (q *Queue) Work(ctx context.Context, w worker, log *slog.Logger) error {
	h := &hand{Queue: q, worker: w, log: log, me: strings.ToLower(rand.Text())[:12]}
	for down := false; ctx.Err() == nil; {
		m, err := h.next(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			if !down {
				log.Warn("no jobs can be had for now", "error", err)
			}
			down = true
			_ = redislink.Pause(ctx, time.Second)
		default:
			down = false
			if m != nil {
				h.handle(ctx, *m)
			}
		}
	}
	return nil
}

// hand is one worker of a process.
type hand struct {
	*Queue
	worker worker
	log    *slog.Logger
	me     string
	looked time.Time // for jobs of workers that are gone
}

// next is an entry to look at, nil if there is none now.
func (h *hand) next(ctx context.Context) (*redis.XMessage, error) {
	if time.Since(h.looked) > h.o.Lease/2 {
		h.looked = time.Now()
		m, err := h.abandoned(ctx)
		if m != nil {
			h.looked = time.Time{} // there may be more
		}
		if m != nil || err != nil {
			return m, err
		}
	}
	found, err := h.client.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: group, Consumer: h.me, Streams: []string{h.stream(), ">"}, Count: 1, Block: min(time.Second, h.o.Lease/2),
	}).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return nil, nil
	case err != nil && strings.HasPrefix(err.Error(), "NOGROUP"):
		return nil, h.create(ctx)
	case err != nil:
		return nil, err
	}
	return &found[0].Messages[0], nil
}

// create makes the group over all that is in the stream.
func (h *hand) create(ctx context.Context) error {
	err := h.client.XGroupCreateMkStream(ctx, h.stream(), group, "0").Err()
	if err != nil && strings.HasPrefix(err.Error(), "BUSYGROUP") {
		return nil
	}
	return err
}

// gone is how long a worker that holds nothing is remembered.
const gone = time.Hour

// abandoned is an entry of a worker that has not been heard of for a lease, nil
// if there is none. Workers that are long gone are forgotten.
func (h *hand) abandoned(ctx context.Context) (*redis.XMessage, error) {
	found, _, err := h.client.XAutoClaim(ctx, &redis.XAutoClaimArgs{
		Stream: h.stream(), Group: group, Consumer: h.me, MinIdle: h.o.Lease, Start: "0", Count: 1,
	}).Result()
	switch {
	case err != nil && strings.HasPrefix(err.Error(), "NOGROUP"):
		return nil, h.create(ctx)
	case err != nil:
		return nil, err
	case len(found) > 0:
		return &found[0], nil
	}
	all, err := h.client.XInfoConsumers(ctx, h.stream(), group).Result()
	for _, c := range all {
		if c.Pending == 0 && c.Idle > gone && c.Name != h.me {
			err = errors.Join(err, h.client.XGroupDelConsumer(ctx, h.stream(), group, c.Name).Err())
		}
	}
	return nil, err
}

// taken is a job that this worker has.
type taken struct {
	id    retrieval.DocumentID
	entry string
	token string
	task  ingest.Task
	parts int
	try   int  // the next one, before it has begun
	begun bool // and is counted
}

// handle works on the job of an entry, as long as it is replaced by another
// under its hands.
func (h *hand) handle(ctx context.Context, m redis.XMessage) {
	id, _ := m.Values["d"].(string)
	for ctx.Err() == nil {
		j, err := h.take(ctx, retrieval.DocumentID(id), m.ID)
		if err != nil {
			h.log.Warn("a job could not be taken; it is when its lease has run out", "error", err)
			return
		}
		if j == nil {
			return
		}
		if err := h.try(ctx, j); !errors.Is(err, errTaken) {
			return
		}
	}
}

// take takes the job, nil if there is nothing to do for this worker.
func (h *hand) take(ctx context.Context, id retrieval.DocumentID, entry string) (*taken, error) {
	spent, err := json.Marshal(ingest.Done{Reason: fmt.Sprintf(
		"it ended the worker %d times, or kept it longer than %v; split it or give workers more memory, then: footnote docs retry", h.o.Tries, h.o.Deadline)})
	if err != nil {
		return nil, err
	}
	got, err := takeScript.Run(ctx, h.client, []string{h.stream(), h.job(id)},
		entry, h.me, h.o.Lease.Milliseconds(), h.o.Tries, spent, h.keep(), group).Slice()
	if err != nil {
		return nil, err
	}
	if what, _ := got[0].(int64); what != 2 {
		return nil, nil
	}
	j := &taken{id: id, entry: entry}
	j.token, _ = got[1].(string)
	task, _ := got[2].(string)
	parts, _ := got[3].(int64)
	try, _ := got[4].(int64)
	j.parts, j.try = int(parts), int(try)
	return j, json.Unmarshal([]byte(task), &j.task)
}

// try works on a job and says how that ended.
func (h *hand) try(ctx context.Context, j *taken) error {
	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(h.o.Deadline, func() { cancel(errLate) })
	defer late.Stop()
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		h.hold(work, j, cancel)
	}()
	done, err := h.apart(work, j)
	why := context.Cause(work)
	cancel(nil)
	<-kept
	switch {
	case err == nil:
		err = h.finish(ctx, j, done)
	case errors.Is(why, errTaken):
		return errTaken
	case errors.Is(err, retrieval.ErrFenced):
		err = h.patiently(ctx, func(ctx context.Context) error { return h.drop(ctx, j.id, j.token, h.me) })
	case errors.Is(why, errLate):
		err = h.give(ctx, j, 0)
	case ctx.Err() != nil || errors.Is(err, retrieval.ErrUnavailable):
		err = h.give(ctx, j, j.unused())
	default:
		err = h.finish(ctx, j, ingest.Done{Reason: err.Error(), Retryable: true})
	}
	if err != nil {
		h.log.Warn("how a job ended could not be said; it is tried again", "error", err)
	}
	return err
}

// apart does a job with which a worker ended before while nothing else is done
// in this process, so that others are not taken for what ends it.
func (h *hand) apart(ctx context.Context, j *taken) (ingest.Done, error) {
	if j.try == 1 {
		h.alone.RLock()
		defer h.alone.RUnlock()
	} else {
		h.alone.Lock()
		defer h.alone.Unlock()
	}
	// A job that waits for its turn has not ended a process that ends now.
	if err := h.begin(ctx, j); err != nil {
		return ingest.Done{}, err
	}
	return h.do(ctx, j)
}

// begin counts the try.
func (h *hand) begin(ctx context.Context, j *taken) error {
	n, err := beginScript.Run(ctx, h.client, []string{h.job(j.id)}, h.me, j.token).Int()
	switch {
	case err != nil:
		return redislink.Failed("beginning a job", err)
	case n == 0:
		return fmt.Errorf("the job is another's: %w", retrieval.ErrFenced)
	}
	j.try, j.begun = n, true
	return nil
}

// do fetches the bytes and works on them.
func (h *hand) do(ctx context.Context, j *taken) (ingest.Done, error) {
	var data []byte
	for i := range j.parts {
		b, err := h.client.HGet(ctx, h.bytes(j.token), strconv.Itoa(i)).Bytes()
		if errors.Is(err, redis.Nil) {
			return ingest.Done{}, fmt.Errorf("the bytes are gone: %w", retrieval.ErrFenced)
		}
		if err != nil {
			return ingest.Done{}, redislink.Failed("fetching a document", err)
		}
		data = append(data, b...)
	}
	return h.worker.Work(ctx, j.task, data, func(generation string) (retrieval.Generation, error) {
		g, err := h.index.Under(ctx, generation, j.id, j.token, j.try)
		return &bounded{g, h.o.Room}, err
	}, func(s catalog.State) {
		// It can only be seen; a state that is lost changes nothing.
		_ = noteScript.Run(ctx, h.client, []string{h.job(j.id)}, h.me, j.token, "state", string(s)).Err()
	})
}

// bounded is a generation that takes a document only if there is room for it. A
// run keeps generations in maps: it is a pointer.
type bounded struct {
	retrieval.Generation
	room func(context.Context, int64) string
}

// Publish is the generation's.
func (b *bounded) Publish(ctx context.Context, p retrieval.Publication) error {
	if full := b.room(ctx, size(p)); full != "" {
		return &ingest.Fault{Reason: full, Retryable: true}
	}
	return b.Generation.Publish(ctx, p)
}

// size is about what a publication takes of the server's memory, in bytes, rather
// more than less: each vector twice, texts and terms several times.
func size(p retrieval.Publication) int64 {
	n := 4 * len(p.Document.Canonical)
	for _, c := range p.Chunks {
		n += 8*len(c.Vector) + 4096 + len(c.States)
	}
	return int64(n)
}

// hold renews the lease until ctx is done, and cancels the work when somebody
// else has the job.
func (h *hand) hold(ctx context.Context, j *taken, cancel context.CancelCauseFunc) {
	for redislink.Pause(ctx, h.o.Lease/4) == nil {
		n, err := keepScript.Run(ctx, h.client, []string{h.stream(), h.job(j.id)},
			h.me, j.token, h.o.Lease.Milliseconds(), j.entry, group, h.keep()).Int()
		if err == nil && n == 0 {
			cancel(errTaken)
			return
		}
	}
}

// finish says how the job ended. It stays until the catalog says so, too.
func (h *hand) finish(ctx context.Context, j *taken, d ingest.Done) error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return h.patiently(ctx, func(ctx context.Context) error {
		n, err := noteScript.Run(ctx, h.client, []string{h.job(j.id)}, h.me, j.token, "done", text).Int()
		if err == nil && n == 0 {
			return errTaken
		}
		return err
	})
}

// unused is how many tries a job that is given back did not use.
func (j *taken) unused() int {
	if j.begun {
		return 1
	}
	return 0
}

// give gives the job back, with as many tries as it has not used.
func (h *hand) give(ctx context.Context, j *taken, unused int) error {
	return h.patiently(ctx, func(ctx context.Context) error {
		return giveScript.Run(ctx, h.client, []string{h.stream(), h.job(j.id)}, h.me, j.token, unused, string(j.id), group).Err()
	})
}

// parting is how long a worker that is being stopped tries to say so.
const parting = 3 * time.Second

// patiently says something to the server, and waits for one that does not
// answer; not for long after ctx is done.
func (h *hand) patiently(ctx context.Context, say func(context.Context) error) error {
	for {
		last := ctx.Err() != nil
		err := func() error {
			late, cancel := context.WithTimeout(context.WithoutCancel(ctx), parting)
			defer cancel()
			return say(late)
		}()
		if err == nil || last || !errors.Is(redislink.Failed("", err), retrieval.ErrUnavailable) {
			return err
		}
		_ = redislink.Pause(ctx, time.Second)
	}
}
