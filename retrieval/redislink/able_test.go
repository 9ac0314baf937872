package redislink

import (
	"strings"
	"testing"
)

func TestRoomLeft(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, info string
		left       int64
		bounded    bool
	}{
		{"no limit", "used_memory:1000\r\nmaxmemory:0\r\n", 0, false},
		{"not told", "", 0, false},
		{"large", "used_memory:1000\r\nmaxmemory:1600000000\r\nmaxmemory_human:1.49G\r\n", 1_500_000_000 - 1000, true},
		{"small", "used_memory:0\r\nmaxmemory:10485760\r\n", 6 << 20, true},
		{"full", "used_memory:10485760\r\nmaxmemory:10485760\r\n", -4 << 20, true},
		{"buffers do not count", "used_memory:2097152\r\nmem_not_counted_for_evict:1048576\r\nmaxmemory:10485760\r\n", 5 << 20, true},
	} {
		left, _, bounded := leftOf(tt.info)
		if bounded != tt.bounded || bounded && left != tt.left {
			t.Errorf("%s: %d %t, want %d %t", tt.name, left, bounded, tt.left, tt.bounded)
		}
	}
}

// What a server does when its memory is full, and whether it did.
func TestThrowsAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		info    string
		says    string // "": data is kept
		evicted int64
	}{
		"not told":                 {"", "", 0},
		"keeps":                    {"maxmemory_policy:noeviction\r\n", "", 0},
		"throws anything away":     {"maxmemory_policy:allkeys-lru\r\n", "is allkeys-lru", 0},
		"throws away what expires": {"maxmemory_policy:volatile-ttl\r\n", "is volatile-ttl", 0},
		"did so before":            {"maxmemory_policy:noeviction\r\nevicted_keys:929\r\n", "", 929},
	} {
		facts := parse(c.info)
		says := throwsAway(facts)
		if (says == "") != (c.says == "") || !strings.Contains(says, c.says) || says != "" && !strings.Contains(says, "CONFIG SET maxmemory-policy noeviction") {
			t.Errorf("%s: it says %q, want a word on %q", name, says, c.says)
		}
		if n := evicted(facts); n != c.evicted {
			t.Errorf("%s: %d keys were thrown away, want %d", name, n, c.evicted)
		}
	}
}
