package redislink

import (
	"fmt"
	"strings"
	"testing"
)

// info is what a server says of itself that is all right.
const info = `redis_version:8.2.3
redis_mode:standalone
role:master
connected_slaves:0
used_memory:90
used_memory_human:90B
maxmemory:0
maxmemory_human:0B
maxmemory_policy:noeviction
aof_enabled:1
aof_last_write_status:ok
aof_last_bgrewrite_status:ok
`

// What is said of a server by what it says of itself.
func TestFindings(t *testing.T) {
	t.Parallel()
	const follows = "connected_slaves:1\nmin_slaves_good_slaves:1\nslave0:ip=10.0.0.2,port=6379,state="
	for name, c := range map[string]struct {
		more       string // lines that win
		where      string
		bad, doubt bool
		says       string
	}{
		"alone":                      {says: "has no replica"},
		"alone, named by Sentinels":  {where: "redis://s (master m)", doubt: true, says: "nothing can take its place"},
		"a replica keeps up":         {more: follows + "online,offset=1,lag=0", says: "has 1 replica(s)"},
		"a replica is late":          {more: follows + "online,offset=1,lag=60", doubt: true, says: "10.0.0.2:6379 has not been heard of for 60 seconds"},
		"a replica copies":           {more: follows + "send_bulk,offset=0,lag=0", doubt: true, says: "is not ready (send_bulk)"},
		"a replica of no form":       {more: "connected_slaves:1\nmin_slaves_good_slaves:1", doubt: true, says: "is not ready"},
		"writes without its replica": {more: "connected_slaves:1\nslave0:ip=a,port=1,state=online,lag=1", doubt: true, says: "min-replicas-to-write 1"},
		"is a replica":               {more: "role:slave\nmaster_host:10.0.0.1\nmaster_port:6379", bad: true, says: "replica of 10.0.0.1:6379"},
		"throws away":                {more: "maxmemory_policy:allkeys-lru", bad: true, says: "noeviction"},
		"threw away":                 {more: "evicted_keys:929", bad: true, says: "has thrown 929 keys away"},
		"threw nothing away":         {more: "evicted_keys:0", says: "its limit is"},
		"nearly full":                {more: "maxmemory:95", doubt: true, says: "raise maxmemory"},
		"half full":                  {more: "maxmemory:180", says: "its limit is"},
		"keeps no log":               {more: "aof_enabled:0", doubt: true, says: "appendonly yes"},
		"cannot write its log":       {more: "aof_last_write_status:err", bad: true, says: "disk"},
		"cannot shorten its log":     {more: "aof_last_bgrewrite_status:err", doubt: true, says: "could not be made shorter"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			facts := parse(info + c.more + "\n")
			l := &Link{where: c.where}
			all := append(append(l.role(facts), memory(facts), persistence(facts)), lost(facts)...)
			var bad, doubt bool
			for _, f := range all {
				bad, doubt = bad || f.Bad, doubt || f.Doubt
				if (f.Bad || f.Doubt) && f.Do == "" {
					t.Errorf("nothing is said to do about %q", f.What)
				}
			}
			if bad != c.bad || doubt != c.doubt || !strings.Contains(fmt.Sprint(all), c.says) {
				t.Errorf("it says %+v, want bad %t, doubt %t and a word on %q", all, c.bad, c.doubt, c.says)
			}
		})
	}
}

func TestEncryption(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		url   string
		doubt bool
		says  string
	}{
		"TLS":               {"rediss://cache", false, "is encrypted"},
		"this machine":      {"redis://127.0.0.1", false, "stays on this machine"},
		"this machine too":  {"redis://[::1]:6380", false, "stays on this machine"},
		"its name":          {"redis://localhost", false, "stays on this machine"},
		"another":           {"redis://cache:6379", true, "rediss://"},
		"another by number": {"redis://10.0.0.1?master_name=m", true, "rediss://"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := Open(Options{URL: c.url})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if f := l.encryption(); f.Doubt != c.doubt || !strings.Contains(f.What+f.Do, c.says) {
				t.Errorf("it says %+v", f)
			}
		})
	}
}

// said is an answer of a server.
type said string

func (s said) Error() string { return string(s) }
func (said) RedisError()     {}

func TestHybrid(t *testing.T) {
	t.Parallel()
	for answer, want := range map[said]string{
		"ERR unknown command 'FT.HYBRID', with args beginning with: ": "has no FT.HYBRID",
		"ERR wrong number of arguments for 'FT.HYBRID' command":       "has FT.HYBRID",
		"NOPERM User bot has no permissions to run it":                "has FT.HYBRID",
	} {
		if found := hybrid(answer); len(found) != 1 || found[0].Bad || found[0].Doubt || !strings.Contains(found[0].What, want) {
			t.Errorf("%s: %+v", answer, found)
		}
	}
	if found := hybrid(fmt.Errorf("no answer")); found != nil {
		t.Errorf("without an answer: %+v", found)
	}
}
