// Package journal is a durable, checksummed, append-only log of records in
// one file. It knows nothing of what the records mean.
//
// Its one idea: a record is a head, read and checked whenever the log is
// opened, and parts, which stay on disk and are checked when they are read. So
// a log of large texts opens at the cost of its heads.
//
// Format, version 1, little-endian, CRC-32C:
//
//	file   = "FNJOURNL" version:u32 crc:u32 record*
//	record = frame table head part* "\n"
//	frame  = "FNrc" parts:u32 tableCRC:u32 headLen:u32 headCRC:u32 bodyLen:u64 frameCRC:u32
//	table  = (len:u32 crc:u32) for each part
//
// frameCRC covers the record's offset in the file and the frame, so that a
// record is valid only where it was written, and its length can be trusted
// before anything else of it is read.
//
// An append is durable when it returns and happens wholly or not at all: a
// failed one (disk full) is rolled back to the former length. A crash can
// leave only the last record unfinished; Open cuts it off. A record counts as
// unfinished if it is shorter than it says, or holds blocks that never reached
// the disk (zeros). Everything else that fails its check is ErrCorrupt, so
// that a flipped bit never passes for a crash.
//
// WriteFile keeps the promise of the log for small files that stand beside one.
//
// It does not lock the file against other processes, and it cannot notice
// that somebody cut the file at the end of a record.
package journal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"sync"
)

var (
	// ErrCorrupt says that bytes do not match their checksum.
	ErrCorrupt = errors.New("the log is damaged")
	// ErrFormat says that the log was written by another version.
	ErrFormat = errors.New("the log has another format version")
	// ErrBroken says that a failed append could not be rolled back; the log
	// must be opened anew before it takes more.
	ErrBroken = errors.New("the log takes no more records until it is opened anew")
)

const (
	version   = 1
	headerLen = 16
	frameLen  = 32
	rowLen    = 8 // of the part table
)

var (
	magic  = []byte("FNJOURNL")
	marker = []byte("FNrc")
	crcs   = crc32.MakeTable(crc32.Castagnoli)
)

// Part is a stretch of the log with its checksum: where Read finds it.
type Part struct {
	Offset   int64
	Len, CRC uint32
}

// Record is one record of the log. Its parts are read with Log.Read.
type Record struct {
	Head  Part
	Parts []Part
	Size  int64 // bytes in the file
}

// file is what a log needs of an *os.File.
type file interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Sync() error
}

// Log is an open log. It is safe for concurrent use; appends take effect one
// after another.
type Log struct {
	path string

	mu     sync.RWMutex
	f      file
	size   int64
	broken error
}

// Open opens the log at path, makes it if it is absent, and calls replay for
// each record in order. head is valid during the call only. An unfinished
// last record is cut off. An error of replay ends Open with that error.
func Open(path string, replay func(r Record, head []byte) error) (*Log, error) {
	if err := os.Remove(aside(path)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing an unfinished rewrite: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	l := &Log{path: path, f: f}
	if err := l.load(f, replay); err != nil {
		f.Close()
		return nil, err
	}
	return l, nil
}

// load checks the header, replays the records and cuts off a torn tail.
func (l *Log) load(f *os.File, replay func(Record, []byte) error) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	fresh, err := checkHeader(f, info.Size(), l.path)
	if err != nil {
		return err
	}
	if fresh {
		return l.start(f)
	}
	s := &scanner{path: l.path, f: f, size: info.Size()}
	end, err := s.replay(replay)
	if err != nil {
		return err
	}
	l.size = end
	if end == info.Size() {
		return nil
	}
	if err := f.Truncate(end); err != nil {
		return fmt.Errorf("cutting off an unfinished record: %w", err)
	}
	return f.Sync()
}

// start writes the header of an empty log.
func (l *Log) start(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	if _, err := f.WriteAt(header(), 0); err != nil {
		return err
	}
	l.size = headerLen
	if err := f.Sync(); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(l.path))
}

func header() []byte {
	b := binary.LittleEndian.AppendUint32(append([]byte(nil), magic...), version)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crcs))
}

// checkHeader reports fresh for a file whose header was never finished.
func checkHeader(f io.ReaderAt, size int64, path string) (fresh bool, err error) {
	b := make([]byte, min(size, headerLen))
	if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
		return false, err
	}
	if len(b) < headerLen {
		if string(b) != string(header()[:len(b)]) {
			return false, fmt.Errorf("%w: %s is not a log", ErrCorrupt, path)
		}
		return true, nil
	}
	if string(b[:8]) != string(magic) || crc32.Checksum(b[:12], crcs) != binary.LittleEndian.Uint32(b[12:]) {
		return false, fmt.Errorf("%w: %s: header", ErrCorrupt, path)
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != version {
		return false, fmt.Errorf("%w: %s has version %d, this program reads %d", ErrFormat, path, v, version)
	}
	return false, nil
}

// Append adds a record, durably. On an error nothing was added and the log
// can be used further, unless the error is ErrBroken.
func (l *Log) Append(head []byte, parts ...[]byte) (Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return Record{}, l.broken
	}
	r, err := write(l.f, l.size, head, parts)
	if err == nil {
		err = l.f.Sync()
	}
	if err != nil {
		return Record{}, l.rollBack(fmt.Errorf("appending to %s: %w", l.path, err))
	}
	l.size += r.Size
	return r, nil
}

// rollBack cuts the file to its former length after the failure err.
func (l *Log) rollBack(err error) error {
	undo := l.f.Truncate(l.size)
	if undo == nil {
		undo = l.f.Sync()
	}
	if undo == nil {
		return err
	}
	l.broken = fmt.Errorf("%w: %w, then: %w", ErrBroken, err, undo)
	return l.broken
}

// Read reads a part and checks it.
func (l *Log) Read(p Part) ([]byte, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	b := make([]byte, p.Len)
	if _, err := l.f.ReadAt(b, p.Offset); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%w: %s ends before offset %d", ErrCorrupt, l.path, p.Offset+int64(p.Len))
		}
		return nil, err
	}
	if crc32.Checksum(b, crcs) != p.CRC {
		return nil, fmt.Errorf("%w: %s at offset %d", ErrCorrupt, l.path, p.Offset)
	}
	return b, nil
}

// Size is the length of the file in bytes.
func (l *Log) Size() int64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.size
}

// Close closes the file. Later calls fail.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken == nil {
		l.broken = fmt.Errorf("%s: %w", l.path, os.ErrClosed)
	}
	return l.f.Close()
}

// write writes one record at off, without Sync.
func write(f io.WriterAt, off int64, head []byte, parts [][]byte) (Record, error) {
	lead, r, err := layout(off, head, parts)
	if err != nil {
		return Record{}, err
	}
	w := bufio.NewWriterSize(io.NewOffsetWriter(f, off), int(min(r.Size, 1<<20)))
	w.Write(lead) // a bufio.Writer keeps its first error for Flush
	w.Write(head)
	for _, p := range parts {
		w.Write(p)
	}
	w.WriteByte('\n')
	return r, w.Flush()
}

// layout makes frame and table of a record at off, and says where all lies.
func layout(off int64, head []byte, parts [][]byte) (lead []byte, r Record, err error) {
	if len(head) > math.MaxInt32 || len(parts) > math.MaxInt32/rowLen {
		return nil, r, fmt.Errorf("a record of %d bytes and %d parts is too large", len(head), len(parts))
	}
	at := off + frameLen + int64(len(parts))*rowLen
	r.Head = Part{Offset: at, Len: uint32(len(head)), CRC: crc32.Checksum(head, crcs)}
	at += int64(len(head))
	start := at
	table := make([]byte, 0, len(parts)*rowLen)
	r.Parts = make([]Part, len(parts))
	for i, p := range parts {
		if len(p) > math.MaxInt32 {
			return nil, r, fmt.Errorf("a part of %d bytes is too large", len(p))
		}
		r.Parts[i] = Part{Offset: at, Len: uint32(len(p)), CRC: crc32.Checksum(p, crcs)}
		at += int64(len(p))
		table = binary.LittleEndian.AppendUint32(table, r.Parts[i].Len)
		table = binary.LittleEndian.AppendUint32(table, r.Parts[i].CRC)
	}
	r.Size = at + 1 - off
	le := binary.LittleEndian
	lead = le.AppendUint32(append(make([]byte, 0, frameLen+len(table)), marker...), uint32(len(parts)))
	lead = le.AppendUint32(lead, crc32.Checksum(table, crcs))
	lead = le.AppendUint32(le.AppendUint32(lead, r.Head.Len), r.Head.CRC)
	lead = le.AppendUint64(lead, uint64(at-start))
	lead = le.AppendUint32(lead, frameCRC(off, lead))
	return append(lead, table...), r, nil
}

// frameCRC covers the offset and the frame up to its checksum.
func frameCRC(off int64, frame []byte) uint32 {
	c := crc32.Checksum(binary.LittleEndian.AppendUint64(nil, uint64(off)), crcs)
	return crc32.Update(c, crcs, frame)
}

func aside(path string) string { return path + ".new" }
