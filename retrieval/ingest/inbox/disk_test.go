package inbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
)

// disk is a folder that forgets what was not made durable, as a machine does
// that loses its power, and that can stop at any step.
type disk struct {
	mu      sync.Mutex
	files   map[string]*content // as the running process sees them
	durable map[string]*content // names that survive
	made    int
	steps   []string
	stop    int   // steps until everything fails; negative: never
	failing error // of the one step at stop, after which it goes on; nil: everything fails
}

// content is what a name leads to.
type content struct {
	data   []byte
	synced int // bytes that survive
}

var errPower = errors.New("the power is gone")

func newDisk() *disk {
	return &disk{files: map[string]*content{}, durable: map[string]*content{}, stop: -1}
}

// step counts a step. The caller holds mu.
func (d *disk) step(what string) error {
	if d.stop == 0 {
		if d.failing == nil {
			return errPower
		}
		d.stop = -1
		return d.failing
	}
	d.stop--
	d.steps = append(d.steps, what)
	return nil
}

func (d *disk) names() ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Sorted(maps.Keys(d.files)), d.step("names")
}

func (d *disk) create() (temp, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step("create"); err != nil {
		return nil, err
	}
	d.made++
	c := &content{}
	name := fmt.Sprintf("%s%d", unfinished, d.made)
	d.files[name] = c
	return &diskFile{d, c, name}, nil
}

func (d *disk) open(name string) (stored, int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, ok := d.files[name]
	if !ok {
		return nil, 0, fs.ErrNotExist
	}
	data := bytes.Clone(c.data)
	return struct {
		io.ReaderAt
		io.Closer
	}{bytes.NewReader(data), io.NopCloser(nil)}, int64(len(data)), nil
}

func (d *disk) rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step("rename"); err != nil {
		return err
	}
	d.files[to] = d.files[from]
	delete(d.files, from)
	return nil
}

func (d *disk) remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step("remove"); err != nil {
		return err
	}
	if _, ok := d.files[name]; !ok {
		return fs.ErrNotExist
	}
	delete(d.files, name)
	return nil
}

func (d *disk) sync() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.step("sync folder"); err != nil {
		return err
	}
	d.durable = maps.Clone(d.files)
	return nil
}

// diskFile is a new file.
type diskFile struct {
	d    *disk
	c    *content
	name string
}

func (f *diskFile) Name() string { return f.name }

func (f *diskFile) Write(p []byte) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if err := f.d.step("write"); err != nil {
		return 0, err
	}
	f.c.data = append(f.c.data, p...)
	return len(p), nil
}

func (f *diskFile) Sync() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if err := f.d.step("sync"); err != nil {
		return err
	}
	f.c.synced = len(f.c.data)
	return nil
}

func (f *diskFile) Close() error { return nil }

// after is what a machine may find when it starts again: names that were not
// made durable are there or not, bytes that were not are there or gone.
func (d *disk) after(newNames, newBytes bool) *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	from := d.durable
	if newNames {
		from = d.files
	}
	out := newDisk()
	for name, c := range from {
		data := c.data
		if !newBytes {
			data = data[:c.synced]
		}
		out.files[name] = &content{bytes.Clone(data), len(data)}
	}
	out.durable, out.made = maps.Clone(out.files), d.made
	return out
}

// left lists unfinished and damaged files.
func (d *disk) left() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(d.files)), func(n string) bool { return strings.HasSuffix(n, ending) })
}
