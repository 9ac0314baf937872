package redislink

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Finding is one thing that was looked at on the server.
type Finding struct {
	Bad   bool   // footnote does not work right until it is mended
	Doubt bool   // it works, but something is unsafe or could not be seen
	What  string // what is the case
	Do    string // what to do, "" if nothing
}

// engine is the oldest version of the Query Engine that is known to work:
// the one that all tests run against.
const engine = 21000

// Check looks at the server: versions, the Query Engine's policies, whether it
// keeps its data, and what it does when its memory is full.
func (l *Link) Check(ctx context.Context) []Finding {
	info, err := l.Info(ctx, "server", "memory", "persistence", "replication", "cluster").Result()
	if denied(err) {
		return []Finding{{Doubt: true, What: "the user may not ask the server about itself", Do: "allow it INFO: see deploy/redis"}}
	}
	if err != nil {
		return []Finding{{Bad: true, What: fmt.Sprintf("%s does not answer: %v", l.where, err), Do: "check that it runs, its address (redis.url), user and password"}}
	}
	facts := parse(info)
	out := []Finding{{What: fmt.Sprintf("%s is Redis %s, %s", l.where, facts["redis_version"], facts["redis_mode"])}}
	if facts["redis_mode"] == "cluster" && !strings.HasSuffix(l.where, "(cluster)") {
		out = append(out, Finding{Bad: true, What: "it is a node of a cluster, and asked as if it were all of it", Do: "add ?cluster=true to redis.url"})
	}
	out = append(out, role(facts), memory(facts), persistence(facts))
	return append(out, l.engine(ctx)...)
}

// parse reads the lines "name:value" of INFO.
func parse(info string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(info) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			out[k] = v
		}
	}
	return out
}

func denied(err error) bool { return err != nil && strings.HasPrefix(err.Error(), "NOPERM") }

func role(facts map[string]string) Finding {
	if r := facts["role"]; r != "master" {
		return Finding{Bad: true, What: "it is a " + r + ", which takes no writes", Do: "set redis.url to the master, or to the Sentinels with ?master_name="}
	}
	return Finding{What: "it takes writes"}
}

func memory(facts map[string]string) Finding {
	p := facts["maxmemory_policy"]
	what := fmt.Sprintf("it uses %s of memory, its limit is %s, its policy %s", facts["used_memory_human"], facts["maxmemory_human"], p)
	if p != "noeviction" {
		return Finding{Bad: true, What: what + ": when memory is full it would throw documents and questions away", Do: "CONFIG SET maxmemory-policy noeviction, and in the server's configuration"}
	}
	return Finding{What: what}
}

func persistence(facts map[string]string) Finding {
	if facts["aof_enabled"] != "1" {
		return Finding{Doubt: true, What: "it keeps no log of writes (AOF): after a crash the last minutes are lost, among them questions that were taken", Do: "CONFIG SET appendonly yes, and in the server's configuration"}
	}
	if s := facts["aof_last_write_status"]; s != "ok" && s != "" {
		return Finding{Bad: true, What: "its last write to the log failed: " + s, Do: "check the server's disk"}
	}
	return Finding{What: "it keeps a log of writes (AOF)"}
}

// engine looks at the Query Engine.
func (l *Link) engine(ctx context.Context) []Finding {
	version, err := l.version(ctx)
	switch {
	case denied(err):
		return []Finding{{Doubt: true, What: "the user may not list the server's modules", Do: "allow it MODULE|LIST: see deploy/redis"}}
	case err != nil:
		return []Finding{{Bad: true, What: fmt.Sprintf("its modules cannot be listed: %v", err)}}
	case version == 0:
		return []Finding{{Bad: true, What: "it has no Query Engine", Do: "use Redis 8, which has one, or load the module redisearch"}}
	}
	what := fmt.Sprintf("its Query Engine is version %d.%d.%d", version/10000, version/100%100, version%100)
	out := []Finding{{Bad: version < engine, What: what}}
	if version < engine {
		out[0].Do = fmt.Sprintf("use %d.%d or later", engine/10000, engine/100%100)
	}
	return append(out, l.policies(ctx)...)
}

// version is that of the module "search", 0 if there is none.
func (l *Link) version(ctx context.Context) (int64, error) {
	modules, err := l.Do(ctx, "MODULE", "LIST").Slice()
	if err != nil {
		return 0, err
	}
	for _, m := range modules {
		fields := map[string]any{}
		switch m := m.(type) {
		case map[any]any:
			for k, v := range m {
				fields[fmt.Sprint(k)] = v
			}
		case []any:
			for i := 0; i+1 < len(m); i += 2 {
				fields[fmt.Sprint(m[i])] = m[i+1]
			}
		}
		if name := fmt.Sprint(fields["name"]); name == "search" || name == "searchlight" {
			v, _ := fields["ver"].(int64)
			return v, nil
		}
	}
	return 0, nil
}

// policies says what the Query Engine does when a query takes too long.
func (l *Link) policies(ctx context.Context) []Finding {
	found := map[string]string{}
	for _, name := range []string{"ON_TIMEOUT", "TIMEOUT", "DEFAULT_DIALECT"} {
		values, err := l.Do(ctx, "FT.CONFIG", "GET", name).Result()
		if err != nil {
			return []Finding{{Doubt: true, What: fmt.Sprintf("the Query Engine's settings cannot be read: %v", err)}}
		}
		found[name] = setting(values, name)
	}
	var all []string
	for _, k := range slices.Sorted(maps.Keys(found)) {
		all = append(all, k+" "+found[k])
	}
	f := Finding{What: "the Query Engine's settings: " + strings.Join(all, ", ")}
	if !strings.EqualFold(found["ON_TIMEOUT"], "fail") {
		f.Doubt = true
		f.What += ": it may return parts of what a slow query finds; footnote sees that and counts them as failures"
		f.Do = "start it with ON_TIMEOUT FAIL, or FT.CONFIG SET ON_TIMEOUT FAIL"
	}
	return []Finding{f}
}

// setting finds a value in either form of the answer.
func setting(v any, name string) string {
	switch v := v.(type) {
	case map[any]any:
		return fmt.Sprint(v[name])
	case []any:
		for _, x := range v {
			if pair, ok := x.([]any); ok && len(pair) == 2 {
				return fmt.Sprint(pair[1])
			}
		}
	}
	return "unknown"
}

var _ redis.Hook = hook{}
