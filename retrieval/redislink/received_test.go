package redislink_test

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"footnote/retrieval"
	"footnote/retrieval/redisindex/redistest"
	"footnote/retrieval/redislink"
)

// A replica is waited for where one follows; a server that lost its place is not
// taken for one that is alone.
func TestReceived(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	const touch = "footnote:touch"
	received := func(t *testing.T, s *redistest.Server, touch string) (ok bool, err error) {
		t.Helper()
		l := open(t, redislink.Options{URL: "redis://" + s.Address})
		err = l.Watch(ctx, func(tx *redis.Tx) (err error) {
			ok, err = redislink.Received(ctx, tx, touch)
			return err
		})
		return ok, err
	}
	t.Run("alone", func(t *testing.T) {
		t.Parallel()
		if ok, err := received(t, redistest.New(t, t.TempDir()), touch); !ok || err != nil {
			t.Errorf("%t, %v", ok, err)
		}
	})
	t.Run("with a replica", func(t *testing.T) {
		t.Parallel()
		servers := redistest.NewReplicated(t)
		if ok, err := received(t, servers.Master, touch); !ok || err != nil {
			t.Errorf("%t, %v", ok, err)
		}
		if said, err := servers.Replica.Say("GET " + touch); err != nil || said != "$1\r\n1\r\n" {
			t.Errorf("the replica has %q, %v", said, err)
		}
		if _, err := received(t, servers.Replica, touch); !errors.Is(err, redislink.ErrAlone) || !errors.Is(err, retrieval.ErrUnavailable) {
			t.Errorf("a replica gives %v", err)
		}
	})
	t.Run("without the replica that it must have", func(t *testing.T) {
		t.Parallel()
		s := redistest.New(t, t.TempDir())
		// Written while it need not have one yet.
		l := open(t, redislink.Options{URL: "redis://" + s.Address})
		err := l.Watch(ctx, func(tx *redis.Tx) error {
			if err := tx.Set(ctx, "key", 1, 0).Err(); err != nil {
				return err
			}
			if err := l.ConfigSet(ctx, "min-replicas-to-write", "1").Err(); err != nil {
				return err
			}
			_, err := redislink.Received(ctx, tx, "")
			return err
		})
		if !errors.Is(err, redislink.ErrAlone) {
			t.Errorf("it gives %v", err)
		}
		if _, err := received(t, s, touch); !redislink.Unavailable(err) {
			t.Errorf("a write gives %v", err)
		}
	})
}
