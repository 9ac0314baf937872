package inbox

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
)

// A file is the content, the entry as JSON, and 16 bytes, little-endian, with
// which reading begins:
//
//	length of the JSON:u32 CRC-32C of it:u32 "FNINBOX1"
//
// The content comes first because it is written while it arrives, when its
// size and sum are not known yet.
const (
	magic      = "FNINBOX1"
	footLen    = 16
	maxHead    = 64 << 10
	ending     = ".doc"
	aside      = ".damaged"
	unfinished = ".new-"
)

var crcs = crc32.MakeTable(crc32.Castagnoli)

// fileOf names the file of a document. An id can hold anything; a hash cannot.
func fileOf(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:16]) + ending
}

// encode is what follows the content.
func (e Entry) encode() []byte {
	head, _ := json.Marshal(e) // it has no value that could fail
	n := len(head)
	b := binary.LittleEndian.AppendUint32(head, uint32(n)) //nolint:gosec // the fields of an entry are bounded
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(head[:n], crcs))
	return append(b, magic...)
}

// decode reads the entry of a file of the size given; ErrDamaged if it is none.
func decode(f io.ReaderAt, size int64) (Entry, error) {
	foot := make([]byte, footLen)
	if size < footLen {
		return Entry{}, ErrDamaged
	}
	if _, err := f.ReadAt(foot, size-footLen); err != nil {
		return Entry{}, err
	}
	n := int64(binary.LittleEndian.Uint32(foot))
	if string(foot[8:]) != magic || n > min(maxHead, size-footLen) {
		return Entry{}, ErrDamaged
	}
	head := make([]byte, n)
	if _, err := f.ReadAt(head, size-footLen-n); err != nil {
		return Entry{}, err
	}
	var e Entry
	if crc32.Checksum(head, crcs) != binary.LittleEndian.Uint32(foot[4:]) || json.Unmarshal(head, &e) != nil {
		return Entry{}, ErrDamaged
	}
	if e.Size != size-footLen-n {
		return Entry{}, ErrDamaged
	}
	return e, e.Sound()
}

// Sound says whether Put could have made the entry: ErrDamaged if not.
//
// SECURITY: what it did not make, such as an empty access list, is not read.
func (e Entry) Sound() error {
	if m, err := e.checked(); err != nil || !reflect.DeepEqual(m, e.Meta) || e.Size < 1 || len(e.Sum) != 2*sha256.Size {
		return ErrDamaged
	}
	return nil
}

// folder is what an inbox needs of a directory.
type folder interface {
	names() ([]string, error)
	create() (temp, error) // a new file, its name begins with unfinished
	open(name string) (stored, int64, error)
	rename(from, to string) error // replaces what is there in one step
	remove(name string) error
	sync() error // makes renames and removals durable
}

type temp interface {
	io.WriteCloser
	Name() string // within the folder
	Sync() error
}

type stored interface {
	io.ReaderAt
	io.Closer
}

// directory is a folder of the file system.
type directory struct{ root *os.Root }

func openDirectory(dir string) (directory, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return directory{}, err
	}
	if err := syncOf(filepath.Dir(dir)); err != nil {
		return directory{}, err
	}
	root, err := os.OpenRoot(dir)
	return directory{root}, err
}

func (d directory) names() ([]string, error) {
	entries, err := fs.ReadDir(d.root.FS(), ".")
	var out []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			out = append(out, e.Name())
		}
	}
	return out, err
}

func (d directory) create() (temp, error) {
	f, err := os.CreateTemp(d.root.Name(), unfinished+"*")
	if err != nil {
		return nil, err
	}
	return tempFile{f}, nil
}

type tempFile struct{ *os.File }

func (t tempFile) Name() string { return filepath.Base(t.File.Name()) }

func (d directory) open(name string) (stored, int64, error) {
	f, err := d.root.Open(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

func (d directory) rename(from, to string) error { return d.root.Rename(from, to) }
func (d directory) remove(name string) error     { return d.root.Remove(name) }
func (d directory) sync() error                  { return syncOf(d.root.Name()) }

func syncOf(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("making the directory durable: %w", err)
	}
	return nil
}
