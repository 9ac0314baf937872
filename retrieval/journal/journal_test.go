package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// entry is a record with all its bytes.
type entry struct {
	Head  string
	Parts []string
}

func entries() []entry {
	long := string(bytes.Repeat([]byte("long text "), 500))
	return []entry{
		{"first", []string{"a", long, ""}}, {"", nil}, {"no parts", nil}, {"FNrc in the head", []string{"FNrc FNrc", "\n"}},
		{long, []string{long}}, {"last", []string{"the end"}},
	}
}

func (e entry) parts() [][]byte {
	var out [][]byte
	for _, p := range e.Parts {
		out = append(out, []byte(p))
	}
	return out
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// read opens the log and reads every record whole.
func read(path string) (all []entry, err error) {
	var records []Record
	l, err := Open(path, func(r Record, head []byte) error {
		records = append(records, r)
		all = append(all, entry{Head: string(head)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	defer l.Close()
	for i, r := range records {
		head, err := l.Read(r.Head)
		if err != nil {
			return all, err
		}
		if string(head) != all[i].Head {
			return all, fmt.Errorf("head %d was replayed as %q and read as %q", i, all[i].Head, head)
		}
		for _, p := range r.Parts {
			b, err := l.Read(p)
			if err != nil {
				return all, err
			}
			all[i].Parts = append(all[i].Parts, string(b))
		}
	}
	return all, nil
}

func ignore(Record, []byte) error { return nil }

// filled makes a log of entries and returns its path and where each begins.
func filled(t testing.TB, all []entry) (path string, starts []int64) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "log")
	l, err := Open(path, ignore)
	must(t, err)
	for _, e := range all {
		starts = append(starts, l.Size())
		_, err := l.Append([]byte(e.Head), e.parts()...)
		must(t, err)
	}
	starts = append(starts, l.Size())
	must(t, l.Close())
	return path, starts
}

func TestReplayGivesWhatWasAppended(t *testing.T) {
	t.Parallel()
	path, _ := filled(t, entries())
	for range 2 {
		got, err := read(path)
		must(t, err)
		if diff := cmp.Diff(entries(), got); diff != "" {
			t.Fatalf("-appended +read:\n%s", diff)
		}
	}
}

func TestPartsCanBeReadAtOnce(t *testing.T) {
	t.Parallel()
	l, err := Open(filepath.Join(t.TempDir(), "log"), ignore)
	must(t, err)
	defer l.Close()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 20 {
				want := fmt.Sprintf("part %d.%d", i, j)
				r, err := l.Append([]byte("head"), []byte("other"), []byte(want))
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := l.Read(r.Parts[1]); string(got) != want || err != nil {
					t.Errorf("read %q, %v, want %q", got, err, want)
				}
			}
		})
	}
	wg.Wait()
}

// A crash can end the file anywhere behind the last finished append.
func TestFileCutAnywhereLosesOnlyTheUnfinishedRecord(t *testing.T) {
	t.Parallel()
	all := entries()
	path, starts := filled(t, all)
	whole, err := os.ReadFile(path)
	must(t, err)
	n := 0
	for size := range len(whole) {
		if size > 150 && size%61 != 0 && size < len(whole)-80 {
			continue
		}
		for n+1 < len(starts) && starts[n+1] <= int64(size) {
			n++
		}
		cut := filepath.Join(t.TempDir(), "cut")
		must(t, os.WriteFile(cut, whole[:size], 0o600))
		got, err := read(cut)
		if err != nil {
			t.Fatalf("cut to %d bytes: %v", size, err)
		}
		if diff := cmp.Diff(all[:n], got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("cut to %d bytes (-want +got):\n%s", size, diff)
		}
		l, err := Open(cut, ignore)
		must(t, err)
		_, err = l.Append([]byte("goes on"))
		must(t, err)
		must(t, l.Close())
		got, err = read(cut)
		must(t, err)
		if len(got) != n+1 || got[n].Head != "goes on" {
			t.Fatalf("cut to %d bytes: appending gives %d records", size, len(got))
		}
	}
}

// A crash of the machine can leave sectors of the last record unwritten.
func TestSectorsThatNeverReachedTheDisk(t *testing.T) {
	t.Parallel()
	all := entries()[:5]
	path, starts := filled(t, all)
	whole, err := os.ReadFile(path)
	must(t, err)
	start := int(starts[4])
	for _, c := range []struct {
		name     string
		from, to int
	}{
		{"all of it", start, len(whole)},
		{"its end", len(whole) - 600, len(whole)},
		{"its start", start, (start/sector + 1) * sector},
		{"a sector of its head", (start/sector + 3) * sector, (start/sector + 4) * sector},
		{"a sector of its part", (len(whole)/sector - 2) * sector, (len(whole)/sector - 1) * sector},
	} {
		spoilt := bytes.Clone(whole)
		clear(spoilt[c.from:c.to])
		cut := filepath.Join(t.TempDir(), "cut")
		must(t, os.WriteFile(cut, spoilt, 0o600))
		got, err := read(cut)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if diff := cmp.Diff(all[:4], got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// Whichever byte is changed, the log shows ErrCorrupt or what was written,
// and never loses a record without a word.
func TestChangedByteIsNoticed(t *testing.T) {
	t.Parallel()
	all := entries()
	path, _ := filled(t, all)
	whole, err := os.ReadFile(path)
	must(t, err)
	for at := range whole {
		if at > 200 && at%53 != 0 && at < len(whole)-120 {
			continue
		}
		for _, bit := range []byte{1, 0xff} {
			spoilt := bytes.Clone(whole)
			spoilt[at] ^= bit
			p := filepath.Join(t.TempDir(), "spoilt")
			must(t, os.WriteFile(p, spoilt, 0o600))
			got, err := read(p)
			if err == nil && cmp.Equal(all, got) {
				continue // the byte means nothing: the end of a record
			}
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("byte %d of %d, ^%#x: error %v, %d records of %d", at, len(whole), bit, err, len(got), len(all))
			}
			after, err := os.ReadFile(p)
			must(t, err)
			if !bytes.Equal(after, spoilt) {
				t.Fatalf("byte %d: the damaged file was changed", at)
			}
		}
	}
}

func TestOtherVersion(t *testing.T) {
	t.Parallel()
	path, _ := filled(t, entries())
	b, err := os.ReadFile(path)
	must(t, err)
	binary.LittleEndian.PutUint32(b[8:], version+1)
	binary.LittleEndian.PutUint32(b[12:], crc32.Checksum(b[:12], crcs))
	must(t, os.WriteFile(path, b, 0o600))
	if _, err := read(path); !errors.Is(err, ErrFormat) {
		t.Fatalf("Open gives %v, want ErrFormat", err)
	}
}

func TestErrorOfReplayEndsOpen(t *testing.T) {
	t.Parallel()
	path, _ := filled(t, entries())
	boom := errors.New("boom")
	if _, err := Open(path, func(Record, []byte) error { return boom }); !errors.Is(err, boom) {
		t.Fatalf("Open gives %v", err)
	}
}

// fullDisk is a file on a disk with room bytes left.
type fullDisk struct {
	*os.File
	room                    int
	syncFails, cannotUndone bool
}

func (f *fullDisk) WriteAt(b []byte, off int64) (int, error) {
	n := min(len(b), f.room)
	f.room -= n
	if _, err := f.File.WriteAt(b[:n], off); err != nil {
		return 0, err
	}
	if n < len(b) {
		return n, syscall.ENOSPC
	}
	return n, nil
}

func (f *fullDisk) Sync() error {
	if f.syncFails {
		f.syncFails = false
		return syscall.EIO
	}
	return f.File.Sync()
}

func (f *fullDisk) Truncate(size int64) error {
	if f.cannotUndone {
		return syscall.EIO
	}
	return f.File.Truncate(size)
}

func TestFullDiskUndoesTheAppend(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	l, err := Open(path, ignore)
	must(t, err)
	disk := &fullDisk{File: l.f.(*os.File), room: 1 << 30}
	l.f = disk
	e := entries()[0]
	_, err = l.Append([]byte(e.Head), e.parts()...)
	must(t, err)
	size := l.Size()
	for _, room := range []int{0, 1, frameLen, frameLen + 20, 3000} {
		disk.room = room
		if _, err := l.Append([]byte("too much"), e.parts()...); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("%d bytes left: Append gives %v", room, err)
		}
		info, err := os.Stat(path)
		must(t, err)
		if l.Size() != size || info.Size() != size {
			t.Fatalf("%d bytes left: the log has %d bytes, the file %d, before %d", room, l.Size(), info.Size(), size)
		}
	}
	disk.room, disk.syncFails = 1<<30, true
	if _, err := l.Append([]byte("not synced")); !errors.Is(err, syscall.EIO) {
		t.Fatalf("a failed sync gives %v", err)
	}
	_, err = l.Append([]byte("there is room again"))
	must(t, err)
	must(t, l.Close())
	got, err := read(path)
	must(t, err)
	if diff := cmp.Diff([]entry{e, {Head: "there is room again"}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLogThatCannotUndoTakesNoMore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	l, err := Open(path, ignore)
	must(t, err)
	_, err = l.Append([]byte("kept"))
	must(t, err)
	disk := &fullDisk{File: l.f.(*os.File), room: 40, cannotUndone: true}
	l.f = disk
	for range 2 {
		if _, err := l.Append([]byte("lost"), make([]byte, 100)); !errors.Is(err, ErrBroken) {
			t.Fatalf("Append gives %v, want ErrBroken", err)
		}
		disk.room, disk.cannotUndone = 1<<30, false
	}
	must(t, l.Close())
	got, err := read(path)
	must(t, err)
	if diff := cmp.Diff([]entry{{Head: "kept"}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRewrite(t *testing.T) {
	t.Parallel()
	all := entries()
	path, _ := filled(t, all)
	l, err := Open(path, ignore)
	must(t, err)
	w, err := l.Rewrite()
	must(t, err)
	_, err = w.Append([]byte("discarded"))
	must(t, err)
	w.Discard()

	w, err = l.Rewrite()
	must(t, err)
	r, err := w.Append([]byte("new first"), []byte("new part"))
	must(t, err)
	must(t, w.Sync())
	must(t, w.Commit())
	if got, err := l.Read(r.Parts[0]); string(got) != "new part" || err != nil {
		t.Fatalf("reading after Commit gives %q, %v", got, err)
	}
	_, err = l.Append([]byte("new second"))
	must(t, err)
	must(t, l.Close())
	got, err := read(path)
	must(t, err)
	if diff := cmp.Diff([]entry{{"new first", []string{"new part"}}, {Head: "new second"}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestUnfinishedRewriteIsDropped(t *testing.T) {
	t.Parallel()
	path, _ := filled(t, entries())
	must(t, os.WriteFile(aside(path), []byte("half"), 0o600))
	got, err := read(path)
	must(t, err)
	if diff := cmp.Diff(entries(), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := os.Stat(aside(path)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the unfinished rewrite: %v", err)
	}
}

func TestClosedLog(t *testing.T) {
	t.Parallel()
	l, err := Open(filepath.Join(t.TempDir(), "log"), ignore)
	must(t, err)
	r, err := l.Append([]byte("x"), []byte("y"))
	must(t, err)
	must(t, l.Close())
	if _, err := l.Append([]byte("z")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Append gives %v", err)
	}
	if _, err := l.Read(r.Parts[0]); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Read gives %v", err)
	}
}

// FuzzOpen: any file opens or is refused, and what opened opens again alike.
func FuzzOpen(f *testing.F) {
	path, starts := filled(f, []entry{{"a", []string{"b", ""}}, {"", nil}, {"c FNrc", []string{"d"}}})
	b, err := os.ReadFile(path)
	must(f, err)
	f.Add(b)
	f.Add(b[:starts[2]+9])
	f.Add(b[:headerLen])
	f.Add([]byte{})
	// A frame that says more than there is, with a right checksum.
	lead, _, err := layout(headerLen, []byte("head"), [][]byte{[]byte("part")})
	must(f, err)
	binary.LittleEndian.PutUint32(lead[4:], 1<<28)
	binary.LittleEndian.PutUint32(lead[28:], frameCRC(headerLen, lead[:28]))
	f.Add(append(header(), lead...))
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(t.TempDir(), "log")
		must(t, os.WriteFile(path, b, 0o600))
		first, err := read(path)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrFormat) {
				t.Fatalf("error %v", err)
			}
			return
		}
		again, err := read(path)
		if err != nil || !cmp.Equal(first, again) {
			t.Fatalf("opening again gives %v\n%s", err, cmp.Diff(first, again))
		}
	})
}
