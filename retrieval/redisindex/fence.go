package redisindex

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"footnote/acl"
	"footnote/retrieval"
	"footnote/retrieval/redislink"
)

// Fences: one process decides about documents, others work for it. Before it
// gives a document away it fences it with a token; every change that a worker
// makes is made under that token and its try, in the script that makes the
// change. A fence falls with another fence, with a later try, and with any
// change that was made without one. So a worker that slept through its lease
// changes nothing. Nor does the one that decides: its changes, and its fences,
// are made only while it holds its lease (the conditions of redislink.While, which
// anything else that a change was decided by can be, too).

// fenceScript sets a fence.
//
//	keys: fences, those of the conditions…
//	args: id, fence, conditions
//	gives 1 if it is set, 0 if a condition does not stand
var fenceScript = redis.NewScript(redislink.Standing + `
if not standing(2, 3) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1`)

// Fence lets the document be changed under the token alone, and from now on by
// nobody who held an earlier one.
func (s *Store) Fence(ctx context.Context, generation string, id retrieval.DocumentID, token string) error {
	doing := fmt.Sprintf("fencing %s", id)
	keys, conditions := redislink.Standings(ctx)
	n, err := fenceScript.Run(ctx, s.client, append([]string{s.fences(generation)}, keys...), append([]any{string(id), fence(token, 0)}, conditions...)...).Int()
	if err == nil && n == 0 {
		return fmt.Errorf("%s: %w", doing, retrieval.ErrFenced)
	}
	return failed(ctx, doing, err)
}

// Fenced reports that the fence of the token stands.
func (s *Store) Fenced(ctx context.Context, generation string, id retrieval.DocumentID, token string) (bool, error) {
	now, err := s.client.HGet(ctx, s.fences(generation), string(id)).Result()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil && len(now) > len(token) && now[:len(token)+1] == token+" ", failed(ctx, fmt.Sprintf("asking for the fence of %s", id), err)
}

// unfenceScript ends the fence of a token.
//
//	keys: fences
//	args: id, token
var unfenceScript = redis.NewScript(`
local now = redis.call('HGET', KEYS[1], ARGV[1])
if now and string.sub(now, 1, #ARGV[2] + 1) == ARGV[2] .. ' ' then redis.call('HDEL', KEYS[1], ARGV[1]) end
return 1`)

// Unfence ends the fence of the token, if it stands.
func (s *Store) Unfence(ctx context.Context, generation string, id retrieval.DocumentID, token string) error {
	return failed(ctx, fmt.Sprintf("ending the fence of %s", id), unfenceScript.Run(ctx, s.client, []string{s.fences(generation)}, string(id), token).Err())
}

// underScript makes a try the one that may change the document.
//
//	keys: fences
//	args: id, token, try
//	gives 1 if it is, 0 if the token's fence fell or a later try has it
var underScript = redis.NewScript(`
local now = redis.call('HGET', KEYS[1], ARGV[1])
if not now or string.sub(now, 1, #ARGV[2] + 1) ~= ARGV[2] .. ' ' then return 0 end
if tonumber(string.sub(now, #ARGV[2] + 2)) > tonumber(ARGV[3]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. ' ' .. ARGV[3])
return 1`)

// Under is the generation for one try (1 is the first) at a document that was
// fenced with the token: it changes that document alone, and only while no later
// try and nobody else has it. Else its changes, and Under itself, give ErrFenced.
func (s *Store) Under(ctx context.Context, generation string, id retrieval.DocumentID, token string, try int) (retrieval.Generation, error) {
	g, err := s.load(ctx, generation)
	if err != nil {
		return nil, err
	}
	n, err := underScript.Run(ctx, s.client, []string{s.fences(generation)}, string(id), token, try).Int()
	if err != nil {
		return nil, failed(ctx, fmt.Sprintf("taking the fence of %s", id), err)
	}
	if n == 0 {
		return nil, fmt.Errorf("%s: %w", id, retrieval.ErrFenced)
	}
	return &fenced{g, id, fence(token, try)}, nil
}

func (s *Store) fences(generation string) string { return newKeys(s.o.Prefix, generation).fences }

func fence(token string, try int) string { return fmt.Sprintf("%s %d", token, try) }

// fenced is a generation for who holds the fence of one document.
type fenced struct {
	*Generation
	id    retrieval.DocumentID
	fence string
}

func (f *fenced) of(id retrieval.DocumentID) error {
	if id != f.id {
		return fmt.Errorf("changing %s under the fence of %s: %w", id, f.id, retrieval.ErrFenced)
	}
	return nil
}

// Publish is Generation's, under the fence.
func (f *fenced) Publish(ctx context.Context, p retrieval.Publication) error {
	if err := f.of(p.Document.ID); err != nil {
		return err
	}
	return f.publishUnder(ctx, f.fence, p)
}

// Remove is Generation's, under the fence.
func (f *fenced) Remove(ctx context.Context, id retrieval.DocumentID) error {
	if err := f.of(id); err != nil {
		return err
	}
	return f.removeUnder(ctx, f.fence, id)
}

// SetAccess is Generation's, under the fence.
func (f *fenced) SetAccess(ctx context.Context, id retrieval.DocumentID, list acl.List) error {
	if err := f.of(id); err != nil {
		return err
	}
	return f.setAccessUnder(ctx, f.fence, id, list)
}
