package extract

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/wlynxg/chardet"
	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/unicode/utf32"
	"golang.org/x/text/transform"

	"footnote/retrieval/doctree"
)

// decoded is a source as canonical text.
type decoded struct {
	text     string
	source   *doctree.Map // nil: the source bytes themselves
	warnings []string
}

// decode finds the charset (byte order mark, valid UTF-8, UTF-16 without a
// mark, the declaration of an HTML page, statistics) and decodes. isHTML says
// that a declaration may be there.
func decode(data []byte, isHTML bool) (decoded, error) {
	if kind := binary(data); kind != "" {
		return decoded{}, refuse("not text: it holds %s", kind)
	}
	w := writer{m: &doctree.Map{}}
	skip, name := mark(data)
	if name == "" {
		name = guess(data, isHTML)
	}
	w.out.Grow(len(data))
	switch name {
	case "":
		return decoded{}, refuse("not text: it holds NUL bytes and is no UTF-16 either; if it is a document, convert it to UTF-8 text")
	case "utf-8":
		if skip == 0 && clean(data) {
			return decoded{text: string(data)}, nil
		}
		w.utf8(data, skip)
	case "utf-16le", "utf-16be":
		w.utf16(data, skip, name == "utf-16be")
	default:
		e, err := named(name)
		if err != nil {
			return decoded{}, refuse("unknown charset %q: convert the file to UTF-8", name)
		}
		w.other(data, skip, e)
	}
	return w.done(name), nil
}

func (w *writer) done(name string) decoded {
	d := decoded{text: w.out.String(), source: w.m}
	if name != "utf-8" && !w.ascii {
		d.warnings = append(d.warnings, "read as "+name)
	}
	if w.lost > 0 {
		d.warnings = append(d.warnings, fmt.Sprintf("%d bytes are no %s text and show as U+FFFD", w.lost, name))
	}
	return d
}

// binary names well-known formats that are no text, whatever the file is called.
func binary(data []byte) string {
	for _, k := range []struct{ magic, name string }{
		{"%PDF-", "a PDF"}, {"PK\x03\x04", "a zip archive or an Office document"}, {"\x1f\x8b", "a gzip archive"},
		{"\x89PNG", "a PNG image"}, {"\xff\xd8\xff", "a JPEG image"}, {"GIF8", "a GIF image"}, {"\x7fELF", "a program"},
		{"\xd0\xcf\x11\xe0", "an old Office document"}, {"{\\rtf", "a Rich Text document"},
	} {
		if bytes.HasPrefix(data, []byte(k.magic)) {
			return k.name
		}
	}
	return ""
}

// mark reads a byte order mark: its length and the charset.
func mark(data []byte) (int, string) {
	for _, m := range []struct{ bytes, name string }{
		{"\xef\xbb\xbf", "utf-8"}, {"\xff\xfe\x00\x00", "utf-32le"}, {"\x00\x00\xfe\xff", "utf-32be"},
		{"\xff\xfe", "utf-16le"}, {"\xfe\xff", "utf-16be"},
	} {
		if bytes.HasPrefix(data, []byte(m.bytes)) {
			return len(m.bytes), m.name
		}
	}
	return 0, ""
}

// sampleSize bounds what statistics look at.
const sampleSize = 64 << 10

// guess names the charset of data without a mark, "" if it is no text.
func guess(data []byte, isHTML bool) string {
	if bytes.IndexByte(data, 0) >= 0 {
		return wide(data)
	}
	if escaped(data) {
		return "iso-2022-jp"
	}
	if utf8.Valid(data) {
		return "utf-8"
	}
	if isHTML {
		if _, name, _ := charset.DetermineEncoding(data, ""); name != "windows-1252" && name != "utf-8" {
			return name
		}
	}
	if mostlyUTF8(data) {
		return "utf-8"
	}
	return statistics(data)
}

// escaped reports ISO-2022-JP, which is valid ASCII with escape sequences.
func escaped(data []byte) bool {
	return bytes.Contains(data, []byte("\x1b$B")) && bytes.Contains(data, []byte("\x1b(")) && !high(data)
}

func high(data []byte) bool {
	return bytes.ContainsFunc(data, func(r rune) bool { return r >= utf8.RuneSelf })
}

// mostlyUTF8 reports text with more good multi-byte characters than bad bytes.
// A single-byte charset gives hardly any good ones.
func mostlyUTF8(data []byte) bool {
	good, bad := 0, 0
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			bad++
		case n > 1:
			good++
		}
		i += n
	}
	return good >= bad
}

// statistics looks at the first stretch that is no ASCII: at the charsets of
// Korean and Japanese, those of one byte a character, then what the detector
// says. What it does not know is windows-1252, as browsers read it: that loses
// no byte.
func statistics(data []byte) string {
	from := max(bytes.IndexFunc(data, func(r rune) bool { return r >= utf8.RuneSelf })-2048, 0)
	part := data[from:min(len(data), from+sampleSize)]
	if e, ok := eastAsian(part); ok {
		return e
	}
	if name, score := singleByte(part); score > 0.8 {
		return name
	}
	name := strings.ToLower(chardet.Detect(part).Charset)
	if _, err := named(name); err != nil || name == "ascii" || strings.HasPrefix(name, "utf-") {
		return "windows-1252"
	}
	return name
}

// eastAsian tries the double-byte charsets that detectors confuse when a text
// is short: the one that decodes without a loss into the most characters of
// its own script, and hardly anything rare, is taken.
func eastAsian(part []byte) (string, bool) {
	best, bestScore := "", 0.6
	for _, c := range []struct {
		name string
		own  []*unicode.RangeTable
	}{
		{"euc-kr", []*unicode.RangeTable{unicode.Hangul}},
		{"shift_jis", []*unicode.RangeTable{unicode.Hiragana, unicode.Katakana}},
		{"euc-jp", []*unicode.RangeTable{unicode.Hiragana, unicode.Katakana}},
	} {
		if s := ownShare(part, c.name, c.own); s > bestScore {
			best, bestScore = c.name, s
		}
	}
	return best, best != ""
}

// ownShare is the share of characters of the script among those beyond ASCII,
// 0 if anything does not decode. Han characters count half: all charsets have
// them. Half-width Katakana count nothing: any byte can be one.
func ownShare(part []byte, name string, own []*unicode.RangeTable) float64 {
	e, err := named(name)
	if err != nil {
		return 0
	}
	s, err := e.NewDecoder().Bytes(part[:len(part)-trailing(part)])
	if err != nil {
		return 0
	}
	score, all, bad := 0.0, 0, 0
	for _, r := range string(s) {
		switch {
		case r < utf8.RuneSelf || r >= 0x3000 && r < 0x3020 || r >= 0xFF01 && r < 0xFF61:
			continue
		case r == utf8.RuneError || unicode.IsControl(r):
			bad++
		case r >= 0xFF61 && r <= 0xFF9F:
		case r >= 0xAC00 && r < 0xD7A4 && !common(r):
			score += 0.2
		case unicode.In(r, own...) && !(r >= 0x3130 && r < 0x3190):
			score++
		case unicode.Is(unicode.Han, r):
			score += 0.5
		}
		all++
	}
	if all < 2 || bad*100 > all {
		return 0
	}
	return score / float64(all)
}

// common reports one of the 2,350 syllables of KS X 1001, which make up nearly
// all Korean text: windows-949 has 8,822 more, and hardly a byte that is none of
// them.
func common(r rune) bool {
	b, err := korean.EUCKR.NewEncoder().String(string(r))
	return err == nil && len(b) == 2 && b[0] >= 0xA1 && b[1] >= 0xA1
}

// trailing counts the high bytes at the end, which may be half a character.
func trailing(part []byte) int {
	n := 0
	for n < len(part) && n < 4 && part[len(part)-1-n] >= utf8.RuneSelf {
		n++
	}
	if n == len(part) || len(part) < sampleSize {
		return 0
	}
	return n
}

// wide tells UTF-16 without a mark from binary data: read that way, the text
// holds no stray surrogates, hardly any control or unassigned character, and
// line ends or spaces.
func wide(data []byte) string {
	if narrow(data[:min(len(data), sampleSize)]) {
		return ""
	}
	best, bestScore := "", 0.9
	for _, name := range []string{"utf-16le", "utf-16be"} {
		if s := wideScore(data[:min(len(data), sampleSize)&^1], name == "utf-16be"); s > bestScore {
			best, bestScore = name, s
		}
	}
	return best
}

// narrow reports bytes that are ASCII with NULs strewn in: read as UTF-16 they
// would make rare Chinese.
func narrow(part []byte) bool {
	nul, ascii := 0, 0
	for _, b := range part {
		if b == 0 {
			nul++
		} else if b >= ' ' && b < 0x7f || b == '\n' || b == '\t' || b == '\r' {
			ascii++
		}
	}
	return nul*4 < len(part) && ascii*10 > (len(part)-nul)*8
}

// wideScore is the share of plausible characters, those of the first blocks,
// Hangul, Kana and Han; any control character or stray surrogate costs much.
func wideScore(part []byte, bigEndian bool) float64 {
	w := writer{m: &doctree.Map{}, raw: true}
	w.utf16(part, 0, bigEndian)
	good, all, latin := 0.0, 0, 0
	for _, r := range w.out.String() {
		all++
		switch {
		case r == utf8.RuneError || unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r':
			good -= 10
		case r < 0x250:
			latin++
			good++
		case unicode.In(r, unicode.Hangul, unicode.Hiragana, unicode.Katakana, unicode.Cyrillic, unicode.Greek, unicode.Arabic, unicode.Hebrew, unicode.Thai, unicode.Han, unicode.Common):
			good++
		}
	}
	if all == 0 || latin == 0 {
		return 0
	}
	return good/float64(all) + float64(latin)/float64(all)/100
}

// named finds an encoding. EUC-KR means windows-949, as on the web: it holds
// all of EUC-KR and the other 8,822 syllables.
func named(name string) (encoding.Encoding, error) {
	switch name {
	case "utf-32le":
		return utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM), nil
	case "utf-32be":
		return utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM), nil
	case "cp949", "uhc":
		name = "euc-kr"
	case "macroman":
		return charmap.Macintosh, nil
	case "maccyrillic":
		return charmap.MacintoshCyrillic, nil
	}
	return htmlindex.Get(name)
}

// clean reports UTF-8 that is its own canonical text.
func clean(data []byte) bool {
	for _, b := range data {
		if b < ' ' && b != '\n' && b != '\t' || b == 0x7f {
			return false
		}
	}
	return utf8.Valid(data) && !bytes.ContainsFunc(data, func(r rune) bool { return r >= 0x80 && r < 0xA0 })
}

// writer makes canonical text character by character and remembers where each
// came from.
type writer struct {
	out   strings.Builder
	m     *doctree.Map
	cr    bool // the last character was CR
	raw   bool // change nothing
	ascii bool
	lost  int
}

// put writes one character that takes width source bytes at src.
func (w *writer) put(r rune, src, width int) {
	if !w.raw {
		lf := w.cr && r == '\n'
		w.cr = r == '\r'
		if r = canonical(r); lf {
			return // the line end was written for its CR
		}
	}
	w.write(r, src, width)
}

// write writes a character that stands for width source bytes at src, 0 if it
// is not in the source.
func (w *writer) write(r rune, src, width int) {
	n := utf8.RuneLen(r)
	at := w.out.Len()
	if n == width {
		for i := range n {
			w.m.Add(at+i, src+i, 1, 1)
		}
	} else {
		w.m.Add(at, src, n, width)
	}
	w.out.WriteRune(r)
}

// canonical is the character that stands in canonical text for r.
func canonical(r rune) rune {
	switch {
	case r == '\r' || r == '\f' || r == '\v' || r == 0x85:
		return '\n'
	case r == '\n' || r == '\t':
		return r
	case unicode.IsControl(r):
		return utf8.RuneError
	}
	return r
}

func (w *writer) utf8(data []byte, from int) {
	for i := from; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			w.lost++
		}
		w.put(r, i, n)
		i += n
	}
}

func (w *writer) utf16(data []byte, from int, bigEndian bool) {
	unit := func(i int) rune {
		if bigEndian {
			return rune(data[i])<<8 | rune(data[i+1])
		}
		return rune(data[i+1])<<8 | rune(data[i])
	}
	i := from
	for i+1 < len(data) {
		r, n := unit(i), 2
		if r >= 0xD800 && r < 0xDC00 && i+3 < len(data) {
			if low := unit(i + 2); low >= 0xDC00 && low < 0xE000 {
				r, n = (r-0xD800)<<10+(low-0xDC00)+0x10000, 4
			}
		}
		if r >= 0xD800 && r < 0xE000 {
			w.lost += 2
			r = utf8.RuneError
		}
		w.put(r, i, n)
		i += n
	}
	if i < len(data) {
		w.lost++
	}
}

// other decodes by giving the decoder one more byte at a time until it makes a
// character, so that the width of each is known.
func (w *writer) other(data []byte, from int, e encoding.Encoding) {
	d := e.NewDecoder()
	var out [16]byte
	for i := from; i < len(data); {
		n, made, err := 1, 0, error(nil)
		used := 0
		for ; i+n <= len(data); n++ {
			made, used, err = d.Transform(out[:], data[i:i+n], i+n == len(data))
			if used > 0 || !errors.Is(err, transform.ErrShortSrc) {
				break
			}
		}
		used = max(used, 1)
		w.take(out[:made], i, used)
		i += used
	}
}

// take writes the characters that one step of a decoder made.
func (w *writer) take(made []byte, src, width int) {
	for len(made) > 0 {
		r, n := utf8.DecodeRune(made)
		if r == utf8.RuneError {
			w.lost += width
		}
		w.put(r, src, width)
		made = made[n:]
		src, width = src+width, 0
	}
}
