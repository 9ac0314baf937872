package redisindex

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"footnote/retrieval"
)

// Format names the layout of a generation. A generation of another format is
// refused, never converted or deleted.
const Format = "redisindex/1"

const rebuild = "build the index anew with: footnote ingest --rebuild FOLDER"

// Options are the settings of a Store; zero values mean the defaults.
type Options struct {
	Prefix  string        // of all keys and index names: footnote
	Timeout time.Duration // of one query in the server: 2 s
	HNSW    bool          // the vector index is a graph; default is flat
	Grace   time.Duration // a generation must have been retired for as long before Drop: 5 min

	// Tests set it.
	now func() time.Time
}

func (o Options) withDefaults() Options {
	o.Prefix = cmp.Or(o.Prefix, "footnote")
	o.Timeout = cmp.Or(o.Timeout, 2*time.Second)
	o.Grace = cmp.Or(o.Grace, 5*time.Minute)
	if o.now == nil {
		o.now = time.Now
	}
	return o
}

// Store is the generations under one prefix of a Redis. Any number of
// processes may share them. It is safe for concurrent use.
type Store struct {
	client redis.UniversalClient
	owned  bool
	o      Options

	mu   sync.Mutex
	open map[string]*Generation
}

var (
	_ retrieval.Store      = (*Store)(nil)
	_ retrieval.Generation = (*Generation)(nil)
)

// validPrefix keeps prefixes from meaning anything in patterns and hash tags.
var validPrefix = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._:-]*$`).MatchString

// validName keeps names of generations within the prefix.
var validName = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._-]*$`).MatchString

// silent takes what the client writes into a log of its own, past ours: all of
// it is in the errors too.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func init() { redis.SetLogger(silent{}) }

// Open uses a client of the caller's, who closes it. ErrUnavailable: the
// server does not answer now.
func Open(ctx context.Context, client redis.UniversalClient, o Options) (*Store, error) {
	o = o.withDefaults()
	if !validPrefix(o.Prefix) {
		return nil, fmt.Errorf("%q cannot be the prefix of keys: use letters, digits, dot, underscore, hyphen and colon only", o.Prefix)
	}
	if _, err := client.FT_List(ctx).Result(); err != nil {
		if strings.Contains(err.Error(), "unknown command") {
			return nil, errors.New("the Redis has no Query Engine: use Redis 8 or newer, or load its module")
		}
		return nil, failed(ctx, "opening the index on Redis", err)
	}
	info, err := client.Do(ctx, "CLIENT", "INFO").Text()
	if err != nil {
		return nil, failed(ctx, "opening the index on Redis", err)
	}
	if !strings.Contains(info, " resp=3") {
		return nil, errors.New("the client speaks RESP2, which cannot say that a result is partial: set its Protocol to 3")
	}
	return &Store{client: client, o: o, open: map[string]*Generation{}}, nil
}

// OpenURL connects to redis://[user:password@]host:port[/0] (rediss:// for
// TLS). Close ends the connections.
func OpenURL(ctx context.Context, url string, o Options) (*Store, error) {
	settings, err := redis.ParseURL(url)
	if err != nil {
		return nil, errors.New("the address of the Redis cannot be read: write redis://host:port or rediss://user:password@host:port")
	}
	settings.Protocol = 3
	settings.ContextTimeoutEnabled = true // a deadline also ends waiting for an answer
	settings.DialTimeout = cmp.Or(settings.DialTimeout, time.Second)
	settings.MaxRetries, settings.DialerRetries = cmp.Or(settings.MaxRetries, 1), cmp.Or(settings.DialerRetries, 2)
	if settings.DB != 0 {
		return nil, fmt.Errorf("the Query Engine works in database 0 only, the address names %d", settings.DB)
	}
	client := redis.NewClient(settings)
	s, err := Open(ctx, client, o)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	s.owned = true
	return s, nil
}

// Close ends the connections that OpenURL made.
func (s *Store) Close() error {
	if !s.owned {
		return nil
	}
	if err := s.client.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
		return err
	}
	return nil
}

func (s *Store) key(name string) string { return s.o.Prefix + ":" + name }

func (s *Store) alias() string { return s.key("live") }

// Create makes an empty shadow generation.
func (s *Store) Create(ctx context.Context, m retrieval.Manifest) (retrieval.Generation, error) {
	if m.Embedder.Dimensions < 1 {
		return nil, fmt.Errorf("creating a generation: the embedder states %d dimensions", m.Embedder.Dimensions)
	}
	m.Format, m.Created = Format, s.o.now().UTC().Truncate(time.Millisecond)
	if err := s.reserve(ctx, &m); err != nil {
		return nil, err
	}
	b, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	// The generation is there once its manifest is: an index without one is
	// what a crash left, and shows nowhere.
	if _, err := s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.HSet(ctx, s.key("unfinished"), m.Name, "")
		p.HSet(ctx, s.key("generations"), m.Name, b)
		return nil
	}); err != nil {
		return nil, failed(ctx, "creating generation "+m.Name, err)
	}
	return s.load(ctx, m.Name)
}

// reserve names the generation by making its index: a name is taken when
// there is an index of it. Names order by time, with a count where two are made
// in the same second.
func (s *Store) reserve(ctx context.Context, m *retrieval.Manifest) error {
	stem := m.Created.Format("20060102-150405")
	for i := 1; ; i++ {
		m.Name = fmt.Sprintf("%s-%03d", stem, i)
		k := newKeys(s.o.Prefix, m.Name)
		err := s.client.FTCreate(ctx, k.index, &redis.FTCreateOptions{OnHash: true, Prefix: []any{k.chunks}, NoOffsets: true, NoHL: true, NoFreqs: true},
			schema(m.Embedder.Dimensions, s.o.HNSW)...).Err()
		if err == nil || !strings.Contains(err.Error(), "already exists") {
			return failed(ctx, "creating generation "+m.Name, err)
		}
	}
}

// Open opens a generation by name; "" opens the current one. Opening it again
// gives the same one.
func (s *Store) Open(ctx context.Context, name string) (retrieval.Generation, error) {
	if name == "" {
		current, err := s.current(ctx)
		if err != nil {
			return nil, err
		}
		if current == "" {
			return nil, fmt.Errorf("%w on the Redis under %s: ingest documents first", retrieval.ErrNoIndex, s.o.Prefix)
		}
		name = current
	}
	return s.load(ctx, name)
}

// current is the name of the generation that the alias points to, "" for none.
func (s *Store) current(ctx context.Context) (string, error) {
	info, err := s.client.FTInfo(ctx, s.alias()).Result()
	if noIndex(err) {
		return "", nil
	}
	if err != nil {
		return "", failed(ctx, "reading the alias", err)
	}
	name, ok := strings.CutPrefix(info.IndexName, s.o.Prefix+":{")
	name, ok2 := strings.CutSuffix(name, "}")
	if !ok || !ok2 {
		return "", fmt.Errorf("%w: the alias %s points to %q; promote a generation again", retrieval.ErrCorrupt, s.alias(), info.IndexName)
	}
	return name, nil
}

func (s *Store) load(ctx context.Context, name string) (*Generation, error) {
	s.mu.Lock()
	g := s.open[name]
	s.mu.Unlock()
	if g != nil {
		return g, ctx.Err()
	}
	m, err := s.manifest(ctx, name)
	if err != nil {
		return nil, err
	}
	g = newGeneration(s.client, s.o, m)
	if err := g.indexed(ctx); err != nil {
		return nil, failed(ctx, "opening generation "+name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.open[name]; other != nil {
		return other, nil
	}
	s.open[name] = g
	return g, nil
}

// manifest reads the manifest of a generation that this program can open.
func (s *Store) manifest(ctx context.Context, name string) (m retrieval.Manifest, err error) {
	if !validName(name) {
		return m, fmt.Errorf("%q is not the name of a generation", name)
	}
	raw, err := s.client.HGet(ctx, s.key("generations"), name).Result()
	if errors.Is(err, redis.Nil) {
		return m, fmt.Errorf("there is no generation %s: %w", name, os.ErrNotExist)
	}
	if err != nil {
		return m, failed(ctx, "reading the manifest of generation "+name, err)
	}
	return decodeManifest(name, raw)
}

func decodeManifest(name, raw string) (m retrieval.Manifest, err error) {
	damaged := fmt.Errorf("generation %s: %w: its manifest; restore the Redis from a backup, or %s", name, retrieval.ErrCorrupt, rebuild)
	var form struct {
		Format string `json:"format"`
	}
	if json.Unmarshal([]byte(raw), &form) != nil {
		return m, damaged
	}
	if form.Format != Format {
		return m, fmt.Errorf("generation %s: %w: it has %q, this program reads %q; %s", name, retrieval.ErrFormat, form.Format, Format, rebuild)
	}
	if json.Unmarshal([]byte(raw), &m) != nil || m.Embedder.Dimensions < 1 || m.Name != name {
		return m, damaged
	}
	return m, nil
}

// Generations lists the manifests, oldest first. One that cannot be read does
// not hide the others: they come with the error.
func (s *Store) Generations(ctx context.Context) (all []retrieval.Manifest, current string, err error) {
	raw, err := s.client.HGetAll(ctx, s.key("generations")).Result()
	if err != nil {
		return nil, "", failed(ctx, "listing the generations", err)
	}
	var errs []error
	for name, r := range raw {
		m, err := decodeManifest(name, r)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b retrieval.Manifest) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	current, err = s.current(ctx)
	return all, current, errors.Join(append(errs, err)...)
}

// Finish says that the build of the generation has ended.
func (s *Store) Finish(ctx context.Context, name string) error {
	if _, err := s.load(ctx, name); err != nil {
		return err
	}
	return failed(ctx, "finishing generation "+name, s.client.HDel(ctx, s.key("unfinished"), name).Err())
}

// Promote points the alias at the generation, once the engine has indexed all
// of it.
func (s *Store) Promote(ctx context.Context, name string) error {
	return s.promote(ctx, name, func(p redis.Pipeliner) { p.Del(ctx, s.key("by-hand")) })
}

// PromoteByHand is Promote for a person.
func (s *Store) PromoteByHand(ctx context.Context, name string) error {
	unfinished, err := s.client.HExists(ctx, s.key("unfinished"), name).Result()
	switch {
	case err != nil:
		return failed(ctx, "promoting generation "+name, err)
	case unfinished:
		return fmt.Errorf("promoting generation %s: %w", name, retrieval.ErrUnfinished)
	}
	return s.promote(ctx, name, func(p redis.Pipeliner) { p.Set(ctx, s.key("by-hand"), name, 0) })
}

// Marks says what has become of the generations.
func (s *Store) Marks(ctx context.Context) (m retrieval.Marks, err error) {
	names, err := s.client.HGetAll(ctx, s.key("unfinished")).Result()
	if err != nil {
		return m, failed(ctx, "reading the marks of the generations", err)
	}
	m.Unfinished = map[string]bool{}
	for name := range names {
		m.Unfinished[name] = true
	}
	chosen, err := s.client.Get(ctx, s.key("by-hand")).Result()
	if errors.Is(err, redis.Nil) {
		return m, nil
	}
	if err != nil {
		return m, failed(ctx, "reading the marks of the generations", err)
	}
	current, err := s.current(ctx)
	m.ByHand = chosen == current
	return m, err
}

// promote points the alias at the generation, and notes who does, in one step.
func (s *Store) promote(ctx context.Context, name string, note func(redis.Pipeliner)) error {
	g, err := s.load(ctx, name)
	if err != nil {
		return err
	}
	if err := g.ready(ctx); err != nil {
		return fmt.Errorf("promoting generation %s: %w", name, err)
	}
	before, err := s.current(ctx)
	if err != nil && !errors.Is(err, retrieval.ErrCorrupt) {
		return err
	}
	// The engine moves an alias on a replica too, for nobody but that replica.
	// A transaction that writes is refused there as a whole.
	_, err = s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		if before != "" && before != name {
			p.HSet(ctx, s.key("retired"), before, strconv.FormatInt(s.o.now().UnixMilli(), 10))
		} else {
			p.HDel(ctx, s.key("retired"), name)
		}
		note(p)
		p.FTAliasUpdate(ctx, g.keys.index, s.alias())
		return nil
	})
	return failed(ctx, "promoting generation "+name, err)
}

// Drop deletes a generation that has not been current for the time of grace,
// so that no process asks it any more: its manifest at once, its index without
// the keys, then the keys in small batches, so that the server answers others.
func (s *Store) Drop(ctx context.Context, name string) error {
	g, err := s.load(ctx, name)
	if err != nil {
		return err
	}
	if err := s.droppable(ctx, name); err != nil {
		return fmt.Errorf("dropping generation %s: %w", name, err)
	}
	_, err = s.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.HDel(ctx, s.key("generations"), name)
		p.HDel(ctx, s.key("retired"), name)
		p.HDel(ctx, s.key("unfinished"), name)
		return nil
	})
	if err != nil {
		return failed(ctx, "dropping generation "+name, err)
	}
	s.mu.Lock()
	delete(s.open, name)
	s.mu.Unlock()
	// By its own name: by an alias it would drop whatever that points to.
	if err := s.client.FTDropIndex(ctx, g.keys.index).Err(); err != nil && !noIndex(err) {
		return failed(ctx, "dropping generation "+name, err)
	}
	return failed(ctx, "dropping generation "+name, unlinkAll(ctx, s.client, g.keys.index+":*"))
}

// droppable says why a generation must stay.
func (s *Store) droppable(ctx context.Context, name string) error {
	current, err := s.current(ctx)
	if err != nil {
		return err
	}
	if current == name {
		return fmt.Errorf("%w: it is the current one; promote another first", retrieval.ErrInUse)
	}
	raw, err := s.client.HGet(ctx, s.key("retired"), name).Result()
	if errors.Is(err, redis.Nil) {
		return nil // it never was current
	}
	if err != nil {
		return failed(ctx, "reading when it was retired", err)
	}
	ms, err := strconv.ParseInt(raw, 10, 64)
	if err != nil {
		return fmt.Errorf("%w: the time of its retirement is %q", retrieval.ErrCorrupt, raw)
	}
	if free := time.UnixMilli(ms).Add(s.o.Grace); s.o.now().Before(free) {
		return fmt.Errorf("%w: it was current until lately and may be asked until %s", retrieval.ErrInUse, free.UTC().Format(time.RFC3339))
	}
	return nil
}

// unlinkAll deletes the keys of a pattern in batches of 500.
func unlinkAll(ctx context.Context, client redis.UniversalClient, pattern string) error {
	for cursor := uint64(0); ; {
		found, next, err := client.Scan(ctx, cursor, pattern, 500).Result()
		if err != nil {
			return err
		}
		if len(found) > 0 {
			if err := client.Unlink(ctx, found...).Err(); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}
