package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"footnote/retrieval"
	"footnote/retrieval/ingest"
	"footnote/retrieval/redislink"
)

// Standing is how the jobs of one recipe stand.
type Standing struct {
	Recipe  string
	Waiting int           // documents that no worker has
	Taken   int           // documents that a worker has
	Ended   int           // documents that are done, which the catalog does not say yet
	Failed  int           // of these, as failures
	Again   int           // documents that are not done and were tried before
	Oldest  time.Duration // since the oldest job that is not done was put into the stream
	Workers int           // heard of lately
}

// Survey tells how the jobs under the prefix stand, by recipe. It looks at all
// keys of the Redis.
func Survey(ctx context.Context, client redis.UniversalClient, prefix string) ([]Standing, error) {
	at := "{" + cmp.Or(prefix, "footnote") + ":jobs}:"
	recipes, err := recipes(ctx, client, at)
	if err != nil {
		return nil, redislink.Failed("looking for jobs", err)
	}
	var out []Standing
	for _, r := range recipes {
		q := &Queue{client: client, o: Options{}.filled(), at: at + r}
		s, err := q.standing(ctx)
		if err != nil {
			return nil, redislink.Failed("looking at the jobs", err)
		}
		s.Recipe = r
		out = append(out, s)
	}
	return out, nil
}

var isRecipe = regexp.MustCompile(`^[0-9a-f]{8}$`).MatchString

func recipes(ctx context.Context, client redis.UniversalClient, at string) ([]string, error) {
	var out []string
	for cursor := uint64(0); ; {
		found, next, err := client.Scan(ctx, cursor, at+"*:q", 10_000).Result()
		if err != nil {
			return nil, err
		}
		for _, key := range found {
			if r := strings.TrimSuffix(strings.TrimPrefix(key, at), ":q"); isRecipe(r) {
				out = append(out, r)
			}
		}
		if cursor = next; cursor == 0 {
			slices.Sort(out)
			return slices.Compact(out), nil
		}
	}
}

func (q *Queue) standing(ctx context.Context) (s Standing, err error) {
	now, err := q.client.Time(ctx).Result()
	if err != nil {
		return s, err
	}
	ids, err := q.client.SMembers(ctx, q.open()).Result()
	if err != nil {
		return s, err
	}
	for some := range slices.Chunk(ids, 500) {
		var jobs []*redis.SliceCmd
		_, err := q.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, id := range some {
				jobs = append(jobs, p.HMGet(ctx, q.job(retrieval.DocumentID(id)), "entry", "done", "until", "tries"))
			}
			return nil
		})
		if err != nil {
			return s, err
		}
		for _, j := range jobs {
			s.add(j.Val(), now)
		}
	}
	s.Workers, err = q.workers(ctx)
	return s, err
}

// add counts a job by its entry, done, until and tries.
func (s *Standing) add(job []any, now time.Time) {
	entry, _ := job[0].(string)
	if entry == "" {
		return // gone by now
	}
	if done, ended := job[1].(string); ended {
		var d ingest.Done
		s.Ended++
		if json.Unmarshal([]byte(done), &d) != nil || d.Reason != "" {
			s.Failed++
		}
		return
	}
	if until := number(job[2]); until > now.UnixMilli() {
		s.Taken++
	} else {
		s.Waiting++
	}
	since, _, _ := strings.Cut(entry, "-")
	s.Oldest = max(s.Oldest, now.Sub(time.UnixMilli(number(since))))
	// The first try is counted while it runs.
	if number(job[3]) > 1 {
		s.Again++
	}
}

func number(v any) int64 {
	s, _ := v.(string)
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// workers counts those that were heard of lately.
func (q *Queue) workers(ctx context.Context) (n int, err error) {
	all, err := q.client.XInfoConsumers(ctx, q.stream(), group).Result()
	if err != nil && (strings.HasPrefix(err.Error(), "NOGROUP") || strings.HasPrefix(err.Error(), "ERR no such key")) {
		return 0, nil
	}
	for _, c := range all {
		if c.Idle < q.silence() {
			n++
		}
	}
	return n, err
}
