package redisledger

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"footnote/bot/ledger"
)

// text is a value as it is kept.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings, numbers and times
	}
	return string(b)
}

// PutAnswer records an answer, or replaces it. It is recorded before it is
// posted, so that no button refers to nothing.
func (l *Ledger) PutAnswer(ctx context.Context, a ledger.Answer) error {
	if err := a.Check(); err != nil {
		return err
	}
	if a.At.IsZero() {
		a.At = l.now()
	}
	a.At = ledger.Stamp(a.At)
	if err := l.roomForAnswers(ctx); err != nil {
		return failed("making room", err)
	}
	_, err := l.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		keep := l.o.KeepAnswers + spare
		p.Set(ctx, l.key("a", a.ID), text(a), keep)
		p.Set(ctx, l.key("q", a.ID), a.Question, l.o.Keep+spare)
		p.Set(ctx, l.key("to", a.Delivery), a.ID, keep)
		p.ZAdd(ctx, l.at+"answers", redis.Z{Score: float64(a.At.UnixMilli()), Member: a.ID})
		return nil
	})
	return failed("recording an answer", err)
}

// Posted notes where an answer was posted.
func (l *Ledger) Posted(ctx context.Context, id string, message []byte) error {
	if err := (ledger.Step{Posted: message}).Check(); err != nil {
		return err
	}
	return failed("noting where an answer is", l.transact(ctx, func(tx *redis.Tx) (func(redis.Pipeliner), error) {
		a, err := l.answer(ctx, tx, id)
		if err != nil {
			return nil, err
		}
		a.Message = message
		return func(p redis.Pipeliner) { p.Set(ctx, l.key("a", id), text(a), redis.KeepTTL) }, nil
	}, l.key("a", id)))
}

// Answer returns an answer, ErrNotFound if there is none or no longer.
func (l *Ledger) Answer(ctx context.Context, id string) (ledger.Answer, error) {
	a, err := l.answer(ctx, l.client, id)
	if err != nil {
		return ledger.Answer{}, failed("reading an answer", err)
	}
	if l.now().Sub(a.At) > l.o.Keep {
		return a, nil
	}
	a.Question, err = l.client.Get(ctx, l.key("q", id)).Result()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return a, failed("reading an answer", err)
}

// AnswerTo returns the latest answer to the delivery with the key.
func (l *Ledger) AnswerTo(ctx context.Context, key string) (ledger.Answer, error) {
	id, err := l.client.Get(ctx, l.key("to", key)).Result()
	if errors.Is(err, redis.Nil) {
		return ledger.Answer{}, ledger.ErrNotFound
	}
	if err != nil {
		return ledger.Answer{}, failed("reading an answer", err)
	}
	return l.Answer(ctx, id)
}

// answer reads an answer without its question.
func (l *Ledger) answer(ctx context.Context, c redis.Cmdable, id string) (ledger.Answer, error) {
	var a ledger.Answer
	b, err := c.Get(ctx, l.key("a", id)).Bytes()
	if errors.Is(err, redis.Nil) {
		return a, ledger.ErrNotFound
	}
	if err == nil {
		err = json.Unmarshal(b, &a)
	}
	if err == nil && l.now().Sub(a.At) > l.o.KeepAnswers {
		err = ledger.ErrNotFound
	}
	return a, err
}

// Rate records feedback; the last word of a person on an answer counts.
// ErrNotFound if there is no such answer.
func (l *Ledger) Rate(ctx context.Context, f ledger.Feedback) error {
	if err := f.Check(); err != nil {
		return err
	}
	if _, err := l.answer(ctx, l.client, f.Answer); err != nil {
		return failed("recording feedback", err)
	}
	f.At = l.now()
	return failed("recording feedback", l.note(ctx, "feedback", mark(f.Answer, f.User), text(f), f.At))
}

// mark names what a person did about an answer. Ids hold no NUL.
func mark(answer, user string) string { return answer + "\x00" + user }

// note puts an entry into a list by age.
func (l *Ledger) note(ctx context.Context, list, id, value string, at time.Time) error {
	_, err := l.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, l.at+list, id, value)
		p.ZAdd(ctx, l.at+list+":at", redis.Z{Score: float64(at.UnixMilli()), Member: id})
		return nil
	})
	return err
}

// noted reads the entries of such a list that are within their age, oldest
// first.
func noted[T any](ctx context.Context, l *Ledger, list string) ([]T, error) {
	ids, err := l.client.ZRangeByScore(ctx, l.at+list+":at", &redis.ZRangeBy{Min: l.oldest(l.o.Keep), Max: "+inf"}).Result()
	if err != nil {
		return nil, err
	}
	var out []T
	for some := range slices.Chunk(ids, page) {
		values, err := l.client.HMGet(ctx, l.at+list, some...).Result()
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			s, _ := v.(string)
			var entry T
			if s == "" {
				continue // swept in between
			}
			if err := json.Unmarshal([]byte(s), &entry); err != nil {
				return nil, err
			}
			out = append(out, entry)
		}
	}
	return out, nil
}

// asked is a request with the token of the call that made it.
type asked struct {
	ledger.HelpRequest
	By string `json:"by"`
}

// AskHuman records that a person wants a human to look. It reports whether
// that is new. ErrNotFound if there is no such answer.
func (l *Ledger) AskHuman(ctx context.Context, id, user string) (bool, error) {
	a := asked{ledger.HelpRequest{Answer: id, User: user, At: l.now()}, rand.Text()}
	if err := a.Check(); err != nil {
		return false, err
	}
	if _, err := l.answer(ctx, l.client, id); err != nil {
		return false, failed("asking for a human", err)
	}
	var first *redis.StringCmd
	_, err := l.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.HSetNX(ctx, l.at+"help", mark(id, user), text(a))
		p.ZAddNX(ctx, l.at+"help:at", redis.Z{Score: float64(a.At.UnixMilli()), Member: mark(id, user)})
		first = p.HGet(ctx, l.at+"help", mark(id, user))
		return nil
	})
	if err != nil {
		return false, failed("asking for a human", err)
	}
	return first.Val() == text(a), nil
}

// HelpRequests lists who asked for a human, oldest first.
func (l *Ledger) HelpRequests(ctx context.Context) ([]ledger.HelpRequest, error) {
	out, err := noted[ledger.HelpRequest](ctx, l, "help")
	return out, failed("listing requests", err)
}

// Feedback lists what was said of an answer, oldest first; "" is of all.
func (l *Ledger) Feedback(ctx context.Context, id string) ([]ledger.Feedback, error) {
	out, err := noted[ledger.Feedback](ctx, l, "feedback")
	if err != nil {
		return nil, failed("listing feedback", err)
	}
	return slices.DeleteFunc(out, func(f ledger.Feedback) bool { return id != "" && f.Answer != id }), nil
}

// NoteGap records a question that was refused. The text is kept only with
// Options.GapText.
func (l *Ledger) NoteGap(ctx context.Context, id, question string) error {
	g := ledger.Gap{ID: id, At: l.now(), Question: question}
	if err := g.Check(); err != nil {
		return err
	}
	if !l.o.GapText {
		g.Question = ""
	}
	return failed("recording a gap", l.note(ctx, "gaps", id, text(g), g.At))
}

// Gaps lists refused questions, oldest first.
func (l *Ledger) Gaps(ctx context.Context) ([]ledger.Gap, error) {
	out, err := noted[ledger.Gap](ctx, l, "gaps")
	return out, failed("listing gaps", err)
}

// NoteAudit records an action.
func (l *Ledger) NoteAudit(ctx context.Context, a ledger.Audit) error {
	if err := a.Check(); err != nil {
		return err
	}
	a.At = l.now()
	_, err := l.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.LPush(ctx, l.at+"audit", text(a))
		p.LTrim(ctx, l.at+"audit", 0, int64(l.o.MaxDeliveries-1))
		p.Expire(ctx, l.at+"audit", l.o.Keep+spare)
		return nil
	})
	return failed("recording an action", err)
}

// Audits lists the latest actions, newest first.
func (l *Ledger) Audits(ctx context.Context, limit int) ([]ledger.Audit, error) {
	found, err := l.client.LRange(ctx, l.at+"audit", 0, int64(limit-1)).Result()
	if err != nil || limit <= 0 {
		return nil, failed("listing actions", err)
	}
	var out []ledger.Audit
	for _, s := range found {
		var a ledger.Audit
		if err := json.Unmarshal([]byte(s), &a); err != nil {
			return nil, failed("listing actions", err)
		}
		if l.now().Sub(a.At) <= l.o.Keep {
			out = append(out, a)
		}
	}
	return out, nil
}

// room sees to it that one more delivery can be kept.
func (l *Ledger) room(ctx context.Context) error {
	n, err := l.client.ZCard(ctx, l.at+"all").Result()
	if err != nil || int(n) < l.o.MaxDeliveries {
		return err
	}
	ended, err := l.oldestEnded(ctx, int(n)/16+1)
	switch {
	case err != nil:
		return err
	case len(ended) == 0:
		return ledger.ErrFull
	}
	return l.drop(ctx, ended)
}

// gone is a delivery that is to be forgotten.
type gone struct {
	key   string
	state ledger.State
	at    float64
}

// oldestEnded lists deliveries that have ended: those that were no question
// first, then the oldest.
func (l *Ledger) oldestEnded(ctx context.Context, limit int) ([]gone, error) {
	var out []gone
	for _, s := range states {
		if !s.Ended() {
			continue
		}
		zs, err := l.client.ZRangeWithScores(ctx, l.key("is", string(s)), 0, int64(limit-1)).Result()
		if err != nil {
			return nil, err
		}
		for _, z := range zs {
			out = append(out, gone{z.Member.(string), s, z.Score})
		}
	}
	question := func(g gone) int {
		if g.state == ledger.Ignored {
			return 0
		}
		return 1
	}
	slices.SortFunc(out, func(a, b gone) int { return cmp.Or(question(a)-question(b), cmp.Compare(a.at, b.at)) })
	return out[:min(limit, len(out))], nil
}

// drop forgets ended deliveries. Their further keys lead to nothing then, and
// go by themselves.
func (l *Ledger) drop(ctx context.Context, all []gone) error {
	for some := range slices.Chunk(all, page) {
		_, err := l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, g := range some {
				dropScript.Eval(ctx, p, []string{l.key("d", g.key), l.key("is", string(g.state)), l.at + "all"}, g.key)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// dropScript forgets a delivery that is still in the state in which it was
// found.
//
//	keys: delivery state all
//	args: key
var dropScript = redis.NewScript(`
if redis.call('ZREM', KEYS[2], ARGV[1]) == 1 then
  redis.call('DEL', KEYS[1])
  redis.call('ZREM', KEYS[3], ARGV[1])
end
return 1`)

func (l *Ledger) roomForAnswers(ctx context.Context) error {
	n, err := l.client.ZCard(ctx, l.at+"answers").Result()
	if err != nil || int(n) < l.o.MaxAnswers {
		return err
	}
	ids, err := l.client.ZRange(ctx, l.at+"answers", 0, n/16).Result()
	if err != nil {
		return err
	}
	return l.dropAnswers(ctx, ids)
}

func (l *Ledger) dropAnswers(ctx context.Context, ids []string) error {
	for some := range slices.Chunk(ids, page) {
		_, err := l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, id := range some {
				p.Del(ctx, l.key("a", id), l.key("q", id))
				p.ZRem(ctx, l.at+"answers", id)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sweep forgets what is past its age, every hour, in the background. One
// replica does it.
func (l *Ledger) sweep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if l.closed || now.Sub(l.swept) < time.Hour {
		return
	}
	l.swept = now
	l.sweeps.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		// What fails is tried again in an hour; until then it is past its age
		// to every reader all the same.
		_ = l.Sweep(ctx)
	})
}

// Sweep forgets what is past its age.
func (l *Ledger) Sweep(ctx context.Context) error {
	var errs []error
	past := &redis.ZRangeBy{Min: "-inf", Max: "(" + l.oldest(l.o.Keep)}
	for _, s := range states {
		if !s.Ended() {
			continue
		}
		keys, err := l.client.ZRangeByScore(ctx, l.key("is", string(s)), past).Result()
		errs = append(errs, err)
		var all []gone
		for _, k := range keys {
			all = append(all, gone{key: k, state: s})
		}
		errs = append(errs, l.drop(ctx, all))
	}
	ids, err := l.client.ZRangeByScore(ctx, l.at+"answers", &redis.ZRangeBy{Min: "-inf", Max: "(" + l.oldest(l.o.KeepAnswers)}).Result()
	errs = append(errs, err, l.dropAnswers(ctx, ids))
	for _, list := range []string{"feedback", "help", "gaps"} {
		errs = append(errs, l.sweepList(ctx, list, past))
	}
	return failed("tidying", errors.Join(append(errs, l.sweepAudit(ctx))...))
}

func (l *Ledger) sweepList(ctx context.Context, list string, past *redis.ZRangeBy) error {
	ids, err := l.client.ZRangeByScore(ctx, l.at+list+":at", past).Result()
	if err != nil {
		return err
	}
	for some := range slices.Chunk(ids, page) {
		if _, err := l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.HDel(ctx, l.at+list, some...)
			members := make([]any, len(some))
			for i, id := range some {
				members[i] = id
			}
			p.ZRem(ctx, l.at+list+":at", members...)
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// sweepAudit takes actions past their age off the end of the list.
func (l *Ledger) sweepAudit(ctx context.Context) error {
	for more := true; more; {
		err := l.transact(ctx, func(tx *redis.Tx) (func(redis.Pipeliner), error) {
			last, err := tx.LRange(ctx, l.at+"audit", -page, -1).Result()
			if err != nil {
				return nil, err
			}
			old := l.old(last)
			more = old == page
			if old == 0 {
				return nil, nil
			}
			return func(p redis.Pipeliner) { p.LTrim(ctx, l.at+"audit", 0, int64(-old-1)) }, nil
		}, l.at+"audit")
		if err != nil {
			return err
		}
	}
	return nil
}

// old counts the actions at the end of the list that are past their age.
func (l *Ledger) old(list []string) (n int) {
	for _, s := range slices.Backward(list) {
		var a ledger.Audit
		if err := json.Unmarshal([]byte(s), &a); err == nil && l.now().Sub(a.At) <= l.o.Keep {
			return n
		}
		n++
	}
	return n
}
