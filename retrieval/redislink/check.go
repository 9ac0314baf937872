package redislink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
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

// Check looks at the server: versions, its role, whether it keeps its data, what
// it does when its memory is full, the Query Engine's policies, and whether the
// user has the rights that are needed for keys that begin with the prefix.
func (l *Link) Check(ctx context.Context, prefix string) []Finding {
	info, err := l.Info(ctx, "server", "memory", "stats", "persistence", "replication", "cluster").Result()
	if denied(err) {
		return append([]Finding{{Doubt: true, What: "the user may not ask the server about itself", Do: "allow it INFO: see deploy/redis"}}, l.rights(ctx, prefix)...)
	}
	if err != nil {
		do := cmp.Or(l.Remedy(ctx, err), "check that it runs, its address (redis.url), user and password")
		return []Finding{{Bad: true, What: fmt.Sprintf("%s does not answer: %v", l.where, err), Do: do}}
	}
	facts := parse(info)
	out := []Finding{{What: fmt.Sprintf("%s is Redis %s, %s", l.where, facts["redis_version"], facts["redis_mode"])}}
	if facts["loading"] == "1" {
		return append(out, Finding{Bad: true, What: "it reads its data, for about " + facts["loading_eta_seconds"] + " seconds more", Do: "wait"})
	}
	if clustered(facts) {
		return append(out, Finding{Bad: true, What: "it is a node of a cluster", Do: errCluster.Error()})
	}
	out = append(out, l.encryption())
	out = append(append(out, l.role(facts)...), l.sentinels(ctx)...)
	out = append(append(out, memory(facts), persistence(facts)), lost(facts)...)
	out = append(out, l.engine(ctx)...)
	return append(out, l.rights(ctx, prefix)...)
}

// Usable says why the server cannot be used at all, before anything is asked of
// it: it is part of a cluster, or speaks otherwise than its address says.
func (l *Link) Usable(ctx context.Context) error {
	const doing = "asking the server what it is"
	info, err := l.Info(ctx, "cluster").Result()
	switch {
	case err == nil && clustered(parse(info)):
		return fmt.Errorf("it is a node of a cluster: %w", errCluster)
	case err == nil || denied(err):
		return nil
	}
	if remedy(err) == "" {
		if do := l.mismatch(ctx); do != "" {
			return fmt.Errorf("%s: %s: %s", doing, err.Error(), do) // its kind would say that waiting mends it
		}
	}
	return Failed(doing, err)
}

func clustered(facts map[string]string) bool { return facts["cluster_enabled"] == "1" }

// encryption says whether others can read what goes over the network.
func (l *Link) encryption() Finding {
	if l.secure {
		return Finding{What: "the connection is encrypted (TLS)"}
	}
	host, _, _ := net.SplitHostPort(l.address)
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return Finding{What: "the connection is not encrypted, and stays on this machine"}
	}
	return Finding{Doubt: true, What: "the connection is not encrypted: whoever is on the way reads documents and the password", Do: "give the server a certificate and write rediss:// in redis.url, or keep the network between to yourself"}
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

// sentinels says whether those that the address names could put another master
// in place.
func (l *Link) sentinels(ctx context.Context) (out []Finding) {
	if l.named == nil {
		return nil
	}
	for _, address := range l.named.SentinelAddrs {
		c := redis.NewSentinelClient(&redis.Options{
			Addr: address, Username: l.named.SentinelUsername, Password: l.named.SentinelPassword, TLSConfig: l.named.TLSConfig,
			DialTimeout: looking, ReadTimeout: looking, MaxRetries: -1, DialerRetries: 1, MaintNotificationsConfig: quiet,
		})
		said, err := c.CkQuorum(ctx, l.named.MasterName).Result()
		err = errors.Join(err, c.Close())
		if err != nil {
			out = append(out, Finding{Doubt: true, What: fmt.Sprintf("the Sentinel %s: %v", address, err), Do: cmp.Or(remedy(sentinelError{err}), "start the Sentinels, three of them on different machines; they must agree on a failover")})
			continue
		}
		out = append(out, Finding{What: fmt.Sprintf("the Sentinel %s: %s", address, said)})
	}
	return out
}

// behind is how many seconds a replica may not be heard of.
const behind = 10

func (l *Link) role(facts map[string]string) []Finding {
	if r := facts["role"]; r != "master" {
		return []Finding{{Bad: true, What: fmt.Sprintf("it is a replica of %s:%s, which takes no writes", facts["master_host"], facts["master_port"]), Do: "set redis.url to the master, or to the Sentinels with ?master_name=NAME"}}
	}
	n, _ := strconv.Atoi(facts["connected_slaves"])
	switch {
	case n == 0 && strings.Contains(l.where, "(master "):
		return []Finding{{Doubt: true, What: "it takes writes, and has no replica: nothing can take its place", Do: "start one, with the Query Engine"}}
	case n == 0:
		return []Finding{{What: "it takes writes, and has no replica"}}
	}
	out := []Finding{{What: fmt.Sprintf("it takes writes, and has %d replica(s)", n)}}
	for i := range n {
		if late := lagging(facts["slave"+strconv.Itoa(i)]); late != "" {
			out = append(out, Finding{Doubt: true, What: late + ": should it take over, the latest questions and documents are lost", Do: "check that replica and the network between"})
		}
	}
	if _, set := facts["min_slaves_good_slaves"]; !set {
		out = append(out, Finding{Doubt: true, What: "it takes writes also when it is cut off from its replicas: when one of them has taken over, those are lost", Do: "CONFIG SET min-replicas-to-write 1, and in the configuration of all of them"})
	}
	return out
}

// lagging says what is wrong with a replica as INFO describes it, "" nothing.
func lagging(s string) string {
	fields := map[string]string{}
	for pair := range strings.SplitSeq(s, ",") {
		k, v, _ := strings.Cut(pair, "=")
		fields[k] = v
	}
	name := "the replica " + fields["ip"] + ":" + fields["port"]
	lag, err := strconv.Atoi(fields["lag"])
	switch {
	case fields["state"] != "online":
		return name + " is not ready (" + fields["state"] + ")"
	case err != nil || lag > behind:
		return name + " has not been heard of for " + fields["lag"] + " seconds"
	}
	return ""
}

func memory(facts map[string]string) Finding {
	p := facts["maxmemory_policy"]
	what := fmt.Sprintf("it uses %s of memory, its limit is %s, its policy %s", facts["used_memory_human"], facts["maxmemory_human"], p)
	if p != "noeviction" {
		return Finding{Bad: true, What: what + ": when memory is full it would throw documents and questions away", Do: "CONFIG SET maxmemory-policy noeviction, and in the server's configuration"}
	}
	used, _ := strconv.ParseFloat(facts["used_memory"], 64)
	if most, _ := strconv.ParseFloat(facts["maxmemory"], 64); most > 0 && used > full*most {
		return Finding{Doubt: true, What: what + ": when it is full, nothing can be written any more", Do: "raise maxmemory, or drop generations that are no longer needed (footnote index list)"}
	}
	return Finding{What: what}
}

// lost says what the server has thrown away already.
func lost(facts map[string]string) []Finding {
	n := evicted(facts)
	if n == 0 {
		return nil
	}
	return []Finding{{
		Bad: true, What: fmt.Sprintf("it has thrown %d keys away since it was started: what is left of index, catalog and questions may lack parts", n),
		Do: "see what is missing (footnote index verify), build the index anew (footnote ingest --rebuild FOLDER), then CONFIG RESETSTAT, which makes this count from 0 again",
	}}
}

// full is the part of the memory's limit from which on it is close.
const full = .9

func persistence(facts map[string]string) Finding {
	if facts["aof_enabled"] != "1" {
		return Finding{Doubt: true, What: "it keeps no log of writes (AOF): after a crash the last minutes are lost, among them questions that were taken", Do: "CONFIG SET appendonly yes, and in the server's configuration"}
	}
	if s := facts["aof_last_write_status"]; s != "ok" && s != "" {
		return Finding{Bad: true, What: "its last write to the log failed: " + s, Do: "check the server's disk"}
	}
	if s := facts["aof_last_bgrewrite_status"]; s != "ok" && s != "" {
		return Finding{Doubt: true, What: "its log of writes (AOF) could not be made shorter: " + s, Do: "check the server's disk and memory: its own log says why"}
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
	return append(append(out, l.policies(ctx)...), l.hybrid(ctx)...)
}

// hybrid says whether the engine fuses both legs of a search. Nothing here asks
// it to: fusion is the same on every index.
func (l *Link) hybrid(ctx context.Context) []Finding {
	// Without arguments it is refused also where it is there.
	return hybrid(l.Do(ctx, "FT.HYBRID").Err())
}

func hybrid(err error) []Finding {
	if _, ok := errors.AsType[redis.Error](err); !ok {
		return nil
	}
	if strings.Contains(err.Error(), "unknown command") {
		return []Finding{{What: "it has no FT.HYBRID (Redis 8.4), which footnote does not need"}}
	}
	return []Finding{{What: "it has FT.HYBRID, which footnote does not need"}}
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
	for _, name := range []string{"ON_TIMEOUT", "TIMEOUT", "DEFAULT_DIALECT", "FORK_GC_CLEAN_THRESHOLD", "FORK_GC_RUN_INTERVAL"} {
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
