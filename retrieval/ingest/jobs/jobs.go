package jobs

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"footnote/retrieval"
	"footnote/retrieval/catalog"
	"footnote/retrieval/ingest"
	"footnote/retrieval/redislink"
)

// Options of a queue; zero values mean the defaults.
type Options struct {
	Prefix   string        // of all keys: footnote
	Lease    time.Duration // after which a worker that is not heard of is given up: 10 s
	Tries    int           // that may end without the worker saying how: 3
	Deadline time.Duration // of one try: 30 min
	// Room says why documents may not take so many bytes of the server now, ""
	// that they may. What fails so is tried again. nil: there is always room.
	Room func(ctx context.Context, bytes int64) string
}

func (o Options) filled() Options {
	o.Prefix = cmp.Or(o.Prefix, "footnote")
	o.Lease = cmp.Or(o.Lease, 10*time.Second)
	o.Tries = cmp.Or(o.Tries, 3)
	o.Deadline = cmp.Or(o.Deadline, 30*time.Minute)
	if o.Room == nil {
		o.Room = func(context.Context, int64) string { return "" }
	}
	return o
}

// index is what the queue needs of the index that all share.
type index interface {
	Fence(ctx context.Context, generation string, id retrieval.DocumentID, token string) error
	Fenced(ctx context.Context, generation string, id retrieval.DocumentID, token string) (bool, error)
	Unfence(ctx context.Context, generation string, id retrieval.DocumentID, token string) error
	// Under gives a generation for changes to the document under its fence.
	Under(ctx context.Context, generation string, id retrieval.DocumentID, token string, try int) (retrieval.Generation, error)
}

// Queue is the jobs of one recipe. It is safe for concurrent use.
type Queue struct {
	client redis.UniversalClient
	index  index
	o      Options
	at     string // beginning of all keys
	alone  sync.RWMutex
}

var _ ingest.Hands = (*Queue)(nil)

// New makes a queue with a client of the caller's, who closes it. Queues with
// the same prefix and stamp are one, in whatever process. It sends nothing.
func New(client redis.UniversalClient, ix index, stamp catalog.Stamp, o Options) (*Queue, error) {
	o = o.filled()
	recipe, err := json.Marshal(stamp)
	if err != nil {
		return nil, fmt.Errorf("naming the queue of jobs: %w", err)
	}
	sum := sha256.Sum256(recipe)
	return &Queue{client: client, index: ix, o: o, at: "{" + o.Prefix + ":jobs}:" + hex.EncodeToString(sum[:4])}, nil
}

func (q *Queue) stream() string                     { return q.at + ":q" }
func (q *Queue) open() string                       { return q.at + ":open" }
func (q *Queue) job(id retrieval.DocumentID) string { return q.at + ":j:" + string(id) }
func (q *Queue) bytes(token string) string          { return q.at + ":b:" + token }
func (q *Queue) keep() int                          { return int((24 * time.Hour).Seconds()) }

const group = "workers"

// part is how much of a document goes to the server at once, so that each
// command keeps its deadline.
const part = 1 << 20

// Do implements ingest.Hands.
func (q *Queue) Do(ctx context.Context, t ingest.Task, data []byte, told func(catalog.State) error) (ingest.Done, error) {
	token, err := q.join(ctx, t)
	if err == nil && token == "" {
		if full := q.o.Room(ctx, int64(len(data))); full != "" {
			return ingest.Done{}, &ingest.Fault{Reason: full, Retryable: true}
		}
		token, err = q.put(ctx, t, data)
	}
	if err != nil {
		return ingest.Done{}, redislink.Failed("giving a document to a worker", err)
	}
	return q.await(ctx, t.ID, token, told)
}

// join finds the same job and its token, "" if it must be made: also if its
// fence fell, so that nothing can come of it.
func (q *Queue) join(ctx context.Context, t ingest.Task) (string, error) {
	fields, err := q.client.HMGet(ctx, q.job(t.ID), "same", "token", "done").Result()
	if err != nil {
		return "", err
	}
	same, _ := fields[0].(string)
	token, _ := fields[1].(string)
	if token == "" || same != t.Same() {
		return "", nil
	}
	if fields[2] != nil {
		return token, nil // the catalog does not know of it yet: else it were forgotten
	}
	for _, g := range generations(t) {
		if stands, err := q.index.Fenced(ctx, g, t.ID, token); err != nil || !stands {
			return "", err
		}
	}
	return token, nil
}

func generations(t ingest.Task) []string {
	if t.Current == "" {
		return []string{t.Generation}
	}
	return []string{t.Generation, t.Current}
}

// put makes the job: first its bytes, then the fences, then the job itself, so
// that nobody takes half a job.
func (q *Queue) put(ctx context.Context, t ingest.Task, data []byte) (string, error) {
	token := strings.ToLower(rand.Text())
	task, err := json.Marshal(t)
	if err != nil {
		return "", err
	}
	parts, err := q.upload(ctx, token, data)
	for _, g := range generations(t) {
		if err == nil {
			err = q.index.Fence(ctx, g, t.ID, token)
		}
	}
	if err != nil {
		_ = q.client.Unlink(context.WithoutCancel(ctx), q.bytes(token)).Err() // they expire as well
		return "", err
	}
	return token, putScript.Run(ctx, q.client, []string{q.stream(), q.open(), q.job(t.ID), q.bytes(token)},
		string(t.ID), token, task, t.Same(), parts, q.keep(), group, q.bytes("")).Err()
}

// uploading is how long bytes are kept that have no job yet.
const uploading = 10 * time.Minute

func (q *Queue) upload(ctx context.Context, token string, data []byte) (parts int, err error) {
	for from := 0; from < len(data); from += part {
		_, err := q.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.HSet(ctx, q.bytes(token), strconv.Itoa(parts), data[from:min(from+part, len(data))])
			p.Expire(ctx, q.bytes(token), uploading)
			return nil
		})
		if err != nil {
			return 0, err
		}
		parts++
	}
	return parts, nil
}

// Times between looks at a job that is waited for.
const (
	firstLook = 20 * time.Millisecond
	lastLook  = 250 * time.Millisecond
)

// await looks at a job until it ended. A server that does not answer is waited
// for.
func (q *Queue) await(ctx context.Context, id retrieval.DocumentID, token string, told func(catalog.State) error) (ingest.Done, error) {
	last := ""
	for wait := firstLook; ; wait = min(wait*5/4, lastLook) {
		fields, err := q.client.HMGet(ctx, q.job(id), "token", "state", "done").Result()
		switch {
		case ctx.Err() != nil:
			return ingest.Done{}, ctx.Err()
		case err == nil && fields[0] != token:
			return ingest.Done{}, &ingest.Fault{Reason: "the work on it was given up for something newer; it is looked at again", Retryable: true}
		case err == nil && fields[2] != nil:
			var d ingest.Done
			s, _ := fields[2].(string)
			return d, redislink.Failed("reading how a job ended", json.Unmarshal([]byte(s), &d))
		case err == nil:
			if s, _ := fields[1].(string); s != last {
				last, wait = s, firstLook
				if err := told(catalog.State(s)); err != nil {
					return ingest.Done{}, err
				}
			}
		case !redislink.Unavailable(err):
			return ingest.Done{}, redislink.Failed("waiting for a job", err)
		}
		if err := redislink.Pause(ctx, wait); err != nil {
			return ingest.Done{}, err
		}
	}
}

// Forget implements ingest.Hands.
func (q *Queue) Forget(ctx context.Context, id retrieval.DocumentID) error {
	return redislink.Failed("ending a job", q.drop(ctx, id, "", ""))
}

// drop ends a job, only that of the token and with the worker where these are
// given: first its fences, so that who looks again after a cut finds them by the
// job; a worker finds either gone.
func (q *Queue) drop(ctx context.Context, id retrieval.DocumentID, token, worker string) error {
	fields, err := q.client.HMGet(ctx, q.job(id), "token", "task", "holder").Result()
	if err != nil {
		return err
	}
	mine, _ := fields[0].(string)
	if mine != "" && (token == "" || token == mine) && (worker == "" || worker == fields[2]) {
		if err := q.unfence(ctx, id, mine, fields[1]); err != nil {
			return err
		}
		token = mine
	}
	return dropScript.Run(ctx, q.client, []string{q.stream(), q.open(), q.job(id)}, string(id), token, worker, group, q.bytes("")).Err()
}

// unfence ends the fences of a token in the generations of its task.
func (q *Queue) unfence(ctx context.Context, id retrieval.DocumentID, token string, task any) error {
	var t ingest.Task
	text, _ := task.(string)
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return err
	}
	for _, g := range generations(t) {
		if err := q.index.Unfence(ctx, g, id, token); err != nil {
			return err
		}
	}
	return nil
}

// Open implements ingest.Hands.
func (q *Queue) Open(ctx context.Context) ([]retrieval.DocumentID, error) {
	all, err := q.client.SMembers(ctx, q.open()).Result()
	out := make([]retrieval.DocumentID, len(all))
	for i, id := range all {
		out[i] = retrieval.DocumentID(id)
	}
	return out, redislink.Failed("listing the jobs", err)
}

// silence is how long a worker may be silent, several times a lease or a look
// for jobs, until it is taken for gone.
func (q *Queue) silence() time.Duration { return max(5*time.Second, 2*q.o.Lease) }

// Deserted counts the jobs while no worker is there to do them; 0 if one is.
func (q *Queue) Deserted(ctx context.Context) (int, error) {
	jobs, err := q.client.SCard(ctx, q.open()).Result()
	if err != nil || jobs == 0 {
		return 0, redislink.Failed("counting the jobs", err)
	}
	if n, err := q.workers(ctx); err != nil || n > 0 {
		return 0, redislink.Failed("asking for workers", err)
	}
	return int(jobs), nil
}
