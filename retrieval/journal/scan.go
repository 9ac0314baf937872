package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
)

const (
	window = 4 << 20 // bytes read at a time
	sector = 512     // the least that a disk writes at once
)

// errTorn says that the file ends in an unfinished record.
var errTorn = errors.New("unfinished record")

// scanner reads a log from front to back through a window.
type scanner struct {
	path string
	f    io.ReaderAt
	size int64

	buf []byte // holds the file from at on
	at  int64
}

// frame is the fixed front of a record.
type frame struct {
	off                        int64
	parts                      int64
	tableCRC, headLen, headCRC uint32
	body                       int64
}

func (f frame) table() int64 { return f.off + frameLen }
func (f frame) head() int64  { return f.table() + f.parts*rowLen }
func (f frame) end() int64   { return f.head() + int64(f.headLen) + f.body + 1 }

// replay calls fn for each record and returns the offset after the last
// whole one.
func (s *scanner) replay(fn func(Record, []byte) error) (end int64, err error) {
	off := int64(headerLen)
	for off < s.size {
		r, head, err := s.record(off)
		if errors.Is(err, errTorn) {
			return off, nil
		}
		if err != nil {
			return 0, err
		}
		if err := fn(r, head); err != nil {
			return 0, fmt.Errorf("%s: record at offset %d: %w", s.path, off, err)
		}
		off += r.Size
	}
	return off, nil
}

// record reads and checks the record at off; errTorn if the file ends inside
// it.
func (s *scanner) record(off int64) (Record, []byte, error) {
	f, err := s.frame(off)
	if errors.Is(err, ErrCorrupt) {
		return Record{}, nil, s.judge(off, s.size, err)
	}
	if err != nil {
		return Record{}, nil, err
	}
	if f.end() > s.size {
		return Record{}, nil, errTorn // shorter than it says
	}
	r, head, err := s.contents(f)
	if errors.Is(err, ErrCorrupt) {
		err = s.judge(off, f.end(), err)
	}
	return r, head, err
}

// judge decides whether the bad record at off was never finished (errTorn) or
// is damaged (bad). Only what nothing follows can be unfinished.
func (s *scanner) judge(off, end int64, bad error) error {
	if end < s.size {
		return bad
	}
	follows, err := s.frameAfter(off)
	if err != nil {
		return err
	}
	if follows {
		return bad
	}
	torn, err := s.holed(off)
	if err != nil {
		return err
	}
	if torn {
		return errTorn
	}
	return bad
}

// contents checks table and head, and the parts too if the record is the
// last: only there can they be unfinished.
func (s *scanner) contents(f frame) (Record, []byte, error) {
	r := Record{Head: Part{Offset: f.head(), Len: f.headLen, CRC: f.headCRC}, Size: f.end() - f.off}
	table, err := s.checked(Part{Offset: f.table(), Len: uint32(f.parts * rowLen), CRC: f.tableCRC})
	if err != nil {
		return r, nil, err
	}
	r.Parts = make([]Part, f.parts)
	at := f.head() + int64(f.headLen)
	for i := range r.Parts {
		row := table[i*rowLen:]
		r.Parts[i] = Part{Offset: at, Len: binary.LittleEndian.Uint32(row), CRC: binary.LittleEndian.Uint32(row[4:])}
		at += int64(r.Parts[i].Len)
	}
	if at+1 != f.end() {
		return r, nil, s.corrupt(f.off)
	}
	if f.end() == s.size {
		for _, p := range r.Parts {
			if _, err := s.checked(p); err != nil {
				return r, nil, err
			}
		}
	}
	head, err := s.checked(r.Head)
	return r, head, err
}

// frame reads and checks the frame at off.
func (s *scanner) frame(off int64) (frame, error) {
	if s.size-off < frameLen {
		return frame{}, s.corrupt(off)
	}
	b, err := s.read(off, frameLen)
	if err != nil {
		return frame{}, err
	}
	le := binary.LittleEndian
	f := frame{
		off: off, parts: int64(le.Uint32(b[4:])), tableCRC: le.Uint32(b[8:]),
		headLen: le.Uint32(b[12:]), headCRC: le.Uint32(b[16:]), body: int64(le.Uint64(b[20:])),
	}
	if !bytes.Equal(b[:4], marker) || frameCRC(off, b[:28]) != le.Uint32(b[28:]) {
		return frame{}, s.corrupt(off)
	}
	if f.parts > math.MaxInt32/rowLen || f.headLen > math.MaxInt32 || f.body < 0 || f.body > math.MaxInt64/2 {
		return frame{}, s.corrupt(off)
	}
	return f, nil
}

// frameAfter looks for any valid frame behind off.
func (s *scanner) frameAfter(off int64) (bool, error) {
	for at := off + 1; at < s.size; {
		b, err := s.read(at, int(min(window, s.size-at)))
		if err != nil {
			return false, err
		}
		i := bytes.Index(b, marker)
		if i < 0 {
			at += max(1, int64(len(b)-len(marker)+1))
			continue
		}
		at += int64(i)
		if _, err := s.frame(at); !errors.Is(err, ErrCorrupt) {
			return err == nil, err
		}
		at++
	}
	return false, nil
}

// holed reports whether the file from off on looks like a write that a crash
// cut short: its start, its end or a whole sector never reached the disk.
func (s *scanner) holed(off int64) (bool, error) {
	b, err := s.read(off, int(s.size-off))
	if err != nil {
		return false, err
	}
	if len(b) < frameLen || b[0] == 0 || b[len(b)-1] != '\n' {
		return true, nil
	}
	zero := make([]byte, sector)
	for i := int(-off & (sector - 1)); i+sector <= len(b); i += sector {
		if bytes.Equal(b[i:i+sector], zero) {
			return true, nil
		}
	}
	return false, nil
}

// checked reads a part and checks it. The bytes are valid until the next read.
func (s *scanner) checked(p Part) ([]byte, error) {
	b, err := s.read(p.Offset, int(p.Len))
	if err != nil {
		return nil, err
	}
	if crc32.Checksum(b, crcs) != p.CRC {
		return nil, s.corrupt(p.Offset)
	}
	return b, nil
}

// read returns n bytes from off on, valid until the next read. The caller
// has checked that the file holds them.
func (s *scanner) read(off int64, n int) ([]byte, error) {
	if off < s.at || off+int64(n) > s.at+int64(len(s.buf)) {
		want := int(min(max(int64(n), window), s.size-off))
		if cap(s.buf) < want {
			s.buf = make([]byte, want)
		}
		s.buf, s.at = s.buf[:want], off
		if _, err := io.ReadFull(io.NewSectionReader(s.f, off, int64(want)), s.buf); err != nil {
			s.buf = s.buf[:0]
			return nil, fmt.Errorf("reading %s at offset %d: %w", s.path, off, err)
		}
	}
	return s.buf[off-s.at:][:n:n], nil
}

func (s *scanner) corrupt(off int64) error {
	return fmt.Errorf("%w: %s at offset %d", ErrCorrupt, s.path, off)
}
