package redislink_test

import (
	"strings"
	"testing"

	"footnote/retrieval/redisindex/redistest"
	"footnote/retrieval/redislink"
)

// A server that may throw data away is given no documents, also when it was
// changed while it is used; questions go on.
func TestKeeps(t *testing.T) {
	t.Parallel()
	server := redistest.New(t, t.TempDir())
	admin := open(t, redislink.Options{URL: "redis://" + server.Address})
	for policy, refused := range map[string]bool{"noeviction": false, "allkeys-lru": true, "volatile-ttl": true} {
		if err := admin.ConfigSet(t.Context(), "maxmemory-policy", policy).Err(); err != nil {
			t.Fatal(err)
		}
		l := open(t, redislink.Options{URL: "redis://" + server.Address}) // which remembers nothing
		err, full := l.Keeps(t.Context()), l.Room(t.Context(), 1)
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "CONFIG SET maxmemory-policy noeviction") {
			t.Errorf("%s: Keeps gives %v", policy, err)
		}
		if (full != "") != refused || refused && !strings.Contains(full, "CONFIG SET maxmemory-policy noeviction") {
			t.Errorf("%s: Room gives %q", policy, full)
		}
		if err := l.Writes(t.Context(), "awake"); err != nil {
			t.Errorf("%s: a write gives %v", policy, err)
		}
	}
}
