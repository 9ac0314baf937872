package memindex

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"footnote/retrieval"
	"footnote/retrieval/journal"
)

// Format names the layout of a generation. A generation of another format is
// refused, never converted or deleted.
const Format = "memindex/2"

// Store is a data directory, held by this process until Close. It is safe for
// concurrent use.
type Store struct {
	dir  string
	lock *flock.Flock
	now  func() time.Time

	mu     sync.Mutex
	open   map[string]*Generation
	closed bool
}

var (
	_ retrieval.Store      = (*Store)(nil)
	_ retrieval.Generation = (*Generation)(nil)
)

// Open takes the data directory, making it if it is absent. ErrInUse says
// which process holds it.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(filepath.Join(dir, "generations"), 0o700); err != nil {
		return nil, fmt.Errorf("opening the data directory: %w", err)
	}
	lock, err := take(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, lock: lock, now: time.Now, open: map[string]*Generation{}}
	if err := s.sweep(); err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	return s, nil
}

// Lock takes the data directory without opening an index in it, for a process
// that keeps its index elsewhere, and makes it if it is absent. ErrInUse says
// which process holds it.
func Lock(dir string) (release func() error, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("opening the data directory: %w", err)
	}
	lock, err := take(filepath.Join(dir, "lock"))
	if err != nil {
		return nil, err
	}
	return lock.Unlock, nil
}

// take locks the file and writes this process's pid into it.
func take(path string) (*flock.Flock, error) {
	lock := flock.New(path, flock.SetPermissions(0o600))
	ok, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	if !ok {
		pid, _ := os.ReadFile(path)
		if len(pid) == 0 {
			pid = []byte("unknown")
		}
		return nil, fmt.Errorf("%w: %s is in use by pid %s; end that process or choose another directory",
			retrieval.ErrInUse, filepath.Dir(path), strings.TrimSpace(string(pid)))
	}
	if err := os.WriteFile(path, fmt.Appendln(nil, os.Getpid()), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("locking %s: %w", path, err), lock.Unlock())
	}
	return lock, nil
}

// sweep removes generations that a crash left half made.
func (s *Store) sweep() error {
	entries, err := os.ReadDir(s.path())
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".new-") {
			if err := os.RemoveAll(s.path(e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close closes the generations and gives the directory free.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var errs []error
	for _, g := range s.open {
		errs = append(errs, g.close())
	}
	return errors.Join(append(errs, s.lock.Unlock())...)
}

// Create makes an empty shadow generation.
func (s *Store) Create(ctx context.Context, m retrieval.Manifest) (retrieval.Generation, error) {
	if m.Embedder.Dimensions < 1 {
		return nil, fmt.Errorf("creating a generation: the embedder states %d dimensions", m.Embedder.Dimensions)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	m.Format, m.Created = Format, s.now().UTC().Truncate(time.Millisecond)
	m.Name = s.freeName(m)
	if err := s.make(m); err != nil {
		return nil, fmt.Errorf("creating generation %s: %w", m.Name, err)
	}
	return s.load(m.Name)
}

// freeName makes a name from the time, which orders, and a count where two
// generations are made in the same second.
func (s *Store) freeName(m retrieval.Manifest) string {
	stem := m.Created.Format("20060102-150405")
	for i := 1; ; i++ {
		name := fmt.Sprintf("%s-%03d", stem, i)
		if _, err := os.Lstat(s.path(name)); errors.Is(err, os.ErrNotExist) {
			return name
		}
	}
}

// make writes the generation aside and gives it its name when it is whole.
func (s *Store) make(m retrieval.Manifest) error {
	aside := s.path(".new-" + m.Name)
	if err := os.Mkdir(aside, 0o700); err != nil {
		return err
	}
	err := writeManifest(filepath.Join(aside, manifestFile), m)
	if err == nil {
		err = makeLog(filepath.Join(aside, logFile))
	}
	if err == nil {
		err = journal.WriteFile(filepath.Join(aside, unfinished), nil)
	}
	if err == nil {
		err = os.Rename(aside, s.path(m.Name))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(aside))
	}
	return journal.SyncDir(s.path())
}

// Open opens a generation by name; "" opens the current one. Opening it again
// gives the same one.
func (s *Store) Open(ctx context.Context, name string) (retrieval.Generation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	if name == "" {
		current, err := readAlias(s.alias())
		if err != nil {
			return nil, err
		}
		if current == "" {
			return nil, fmt.Errorf("%w in %s: ingest documents first", retrieval.ErrNoIndex, s.dir)
		}
		name = current
	}
	return s.load(name)
}

// load opens the generation once. The caller holds mu.
func (s *Store) load(name string) (retrieval.Generation, error) {
	if g := s.open[name]; g != nil {
		return g, nil
	}
	m, err := s.manifest(name)
	if err != nil {
		return nil, err
	}
	g, err := openGeneration(s.path(name, logFile), m)
	if err != nil {
		return nil, fmt.Errorf("opening generation %s: %w", name, err)
	}
	s.open[name] = g
	return g, nil
}

// Finish says that the build of the generation has ended.
func (s *Store) Finish(ctx context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	if _, err := s.manifest(name); err != nil {
		return err
	}
	if err := drop(s.path(name, unfinished)); err != nil {
		return fmt.Errorf("finishing generation %s: %w", name, err)
	}
	return nil
}

// Promote points the alias at the generation.
func (s *Store) Promote(ctx context.Context, name string) error {
	return s.promote(ctx, name, false)
}

// PromoteByHand is Promote for a person.
func (s *Store) PromoteByHand(ctx context.Context, name string) error {
	return s.promote(ctx, name, true)
}

// promote writes who promoted before the alias, since that means nothing of a
// generation that is not the current one, and deletes it after.
func (s *Store) promote(ctx context.Context, name string, byHand bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return err
	}
	_, err := s.manifest(name)
	if err != nil {
		return err
	}
	if byHand && exists(s.path(name, unfinished)) {
		return fmt.Errorf("promoting generation %s: %w", name, retrieval.ErrUnfinished)
	}
	if byHand {
		err = writeAlias(s.byHand(), name)
	}
	if err == nil {
		err = writeAlias(s.alias(), name)
	}
	if err == nil && !byHand {
		err = drop(s.byHand())
	}
	if err != nil {
		return fmt.Errorf("promoting generation %s: %w", name, err)
	}
	return nil
}

// Marks says what has become of the generations.
func (s *Store) Marks(ctx context.Context) (m retrieval.Marks, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return m, err
	}
	entries, err := os.ReadDir(s.path())
	if err != nil {
		return m, err
	}
	m.Unfinished = map[string]bool{}
	for _, e := range entries {
		if validName(e.Name()) && exists(s.path(e.Name(), unfinished)) {
			m.Unfinished[e.Name()] = true
		}
	}
	current, err := readAlias(s.alias())
	if err != nil {
		return m, err
	}
	chosen, err := readAlias(s.byHand())
	m.ByHand = chosen != "" && chosen == current
	return m, err
}

// Generations lists the manifests, oldest first. One that cannot be read does
// not hide the others: they come with the error.
func (s *Store) Generations(ctx context.Context) (all []retrieval.Manifest, current string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable(ctx); err != nil {
		return nil, "", err
	}
	entries, err := os.ReadDir(s.path())
	if err != nil {
		return nil, "", err
	}
	var errs []error
	for _, e := range entries {
		if !validName(e.Name()) {
			continue
		}
		m, err := s.manifest(e.Name())
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, m)
	}
	slices.SortStableFunc(all, func(a, b retrieval.Manifest) int { return a.Created.Compare(b.Created) })
	current, err = readAlias(s.alias())
	return all, current, errors.Join(append(errs, err)...)
}

// manifest reads the manifest of a generation that this program can open.
func (s *Store) manifest(name string) (retrieval.Manifest, error) {
	if !validName(name) {
		return retrieval.Manifest{}, fmt.Errorf("%q is not the name of a generation", name)
	}
	m, err := readManifest(s.path(name, manifestFile))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return m, fmt.Errorf("there is no generation %s: %w", name, err)
	case err != nil:
		return m, fmt.Errorf("generation %s: %w", name, err)
	case m.Name != name:
		return m, fmt.Errorf("%w: generation %s holds the manifest of %q", retrieval.ErrCorrupt, name, m.Name)
	}
	return m, nil
}

// usable says why the store cannot be used. The caller holds mu.
func (s *Store) usable(ctx context.Context) error {
	if s.closed {
		return fmt.Errorf("the index in %s: %w", s.dir, os.ErrClosed)
	}
	return ctx.Err()
}

func (s *Store) path(elem ...string) string {
	return filepath.Join(append([]string{s.dir, "generations"}, elem...)...)
}

func (s *Store) alias() string { return filepath.Join(s.dir, "current") }

// byHand is an alias for what a person promoted last.
func (s *Store) byHand() string { return filepath.Join(s.dir, "by-hand") }
