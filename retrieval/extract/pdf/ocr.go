package pdf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/klippa-app/go-pdfium/requests"
)

// recognised says how sure tesseract was of a page.
type recognised struct {
	page, confidence int
}

// errNoOCR is the advice where there is no text recognition.
var errNoOCR = errors.New("install tesseract with the languages eng and kor, or add a text layer to the file")

// errNoTime is the advice where a document holds more scans than it has time.
var errNoTime = errors.New("there was no time to recognise them: raise ingest.extract.seconds, or add a text layer to the file")

// Bounds of text recognition.
const (
	dpi       = 300
	maxPixels = 20_000_000
	unsure    = 30 // words of a lower confidence, of 100, are dropped
	sure      = 75 // mean confidence of a page that is not read a second time
)

// recogniseUntil leaves a tenth of the time that a document has to the rest of
// the work. Without it a long scan would be read in vain.
func recogniseUntil(ctx context.Context) time.Time {
	end, ok := ctx.Deadline()
	if !ok {
		return time.Time{}
	}
	now := time.Now()
	return now.Add(end.Sub(now) * 9 / 10)
}

// recognise reads the picture of a page with tesseract, as one column since the
// order of the words is found by where they stand; as tesseract itself parts the
// page where that leaves doubt. Its error is advice for an operator.
func (b *book) recognise(ctx context.Context, d *document, n int) ([]row, error) {
	if b.program == "" {
		program, err := exec.LookPath("tesseract")
		if err != nil {
			return nil, errNoOCR
		}
		b.program, b.langs = program, languages(ctx, program)
	}
	if !b.until.IsZero() {
		limited, cancel := context.WithDeadline(ctx, b.until)
		defer cancel()
		ctx = limited
	}
	if ctx.Err() != nil {
		return nil, errNoTime
	}
	picture, at, err := d.picture(n)
	if err != nil {
		return nil, fmt.Errorf("page %d cannot be drawn: %w", n+1, err)
	}
	var best page
	for _, how := range []string{"4", "3"} {
		table, err := run(ctx, b.program, picture, "stdin", "stdout", "-l", b.langs, "--dpi", strconv.Itoa(at), "--psm", how, "tsv")
		if ctx.Err() != nil {
			return nil, errNoTime
		}
		if err != nil {
			return nil, err
		}
		if p := recognisedWords(string(table), 72/float64(at)); p.score > best.score {
			best = p
		}
		if best.confidence >= sure {
			break
		}
	}
	words, confidence := best.words, best.confidence
	if len(words) == 0 {
		return nil, nil
	}
	b.seen = append(b.seen, recognised{n + 1, confidence})
	return layout(words), nil
}

// picture draws a page as PNG, and says with how many dots to the inch.
func (d *document) picture(n int) (picture []byte, at int, err error) {
	size, err := d.engine.FPDF_GetPageSizeByIndex(&requests.FPDF_GetPageSizeByIndex{Document: d.ref, Index: n})
	if err != nil {
		return nil, 0, err
	}
	pixels := func() float64 { return size.Width * size.Height * float64(at*at) / (72 * 72) }
	for at = dpi; at > 36 && pixels() > maxPixels; {
		at /= 2
	}
	if pixels() > maxPixels {
		return nil, 0, errors.New("it is too large")
	}
	r, err := d.engine.RenderPageInDPI(&requests.RenderPageInDPI{DPI: at, Page: requests.Page{ByIndex: &requests.PageByIndex{Document: d.ref, Index: n}}})
	if err != nil {
		return nil, 0, err
	}
	if r.CleanupFunc != nil {
		defer r.CleanupFunc()
	}
	return encode(r.Result.RenderedImage), at, nil
}

// encode writes a picture as PNG, grey, which is all that recognition needs and
// a quarter of the work.
func encode(img image.Image) []byte {
	grey := image.NewGray(img.Bounds())
	draw.Draw(grey, grey.Bounds(), img, img.Bounds().Min, draw.Src)
	var b bytes.Buffer
	fast := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := fast.Encode(&b, grey); err != nil { // only what is no picture fails
		return nil
	}
	return b.Bytes()
}

// run runs tesseract with an input and returns its output. What it says of a
// fault is not shown: it may quote the document.
func run(ctx context.Context, program string, input []byte, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, program, args...)
	c.Stdin, c.Env = bytes.NewReader(input), environment()
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("tesseract failed: %w", err)
	}
	return out, nil
}

// environment is what tesseract needs and no more, since secrets may lie in
// ours. Its threads wait for one another in busy loops; documents are read side
// by side anyway.
func environment() []string {
	env := []string{"OMP_THREAD_LIMIT=1"}
	for _, name := range []string{"PATH", "TESSDATA_PREFIX", "LD_LIBRARY_PATH", "SYSTEMROOT"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// languages are those of eng and kor that are installed.
func languages(ctx context.Context, program string) string {
	out, err := run(ctx, program, nil, "--list-langs")
	var have []string
	if err == nil {
		for line := range strings.Lines(string(out)) {
			if l := strings.TrimSpace(line); l == "eng" || l == "kor" {
				have = append(have, l)
			}
		}
	}
	if len(have) == 0 {
		return "eng"
	}
	slices.Sort(have)
	return strings.Join(have, "+")
}

// page is what tesseract read.
type page struct {
	words      []word
	confidence int     // mean
	score      float64 // sum over all characters
	line       float64 // height of the line that is read
}

// recognisedWords reads tesseract's table: twelve columns, of which the last
// six are left, top, width, height, confidence and text, in pixels; scale makes
// points of them.
func recognisedWords(table string, scale float64) page {
	var p page
	sum, n := 0.0, 0
	for line := range strings.Lines(table) {
		f := strings.Split(strings.TrimRight(line, "\r\n"), "\t")
		if len(f) < 12 {
			continue
		}
		var v [5]float64
		bad := false
		for i := range v {
			x, err := strconv.ParseFloat(f[6+i], 64)
			v[i], bad = x, bad || err != nil
		}
		if f[0] == "4" && !bad {
			p.line = v[3] * scale
		}
		text := strings.TrimSpace(f[11])
		if bad || text == "" || v[4] < unsure {
			continue
		}
		sum, n = sum+v[4], n+1
		p.score += v[4] * float64(utf8.RuneCountInString(text))
		p.add(word{text: text, spaced: true, left: v[0] * scale, top: v[1] * scale, right: (v[0] + v[2]) * scale, bottom: (v[1] + v[3]) * scale, size: max(v[3]*scale, 6)})
	}
	if n > 0 {
		p.confidence = int(sum / float64(n))
	}
	return p
}

// syllableGap is the gap, in heights of the line, below which two pieces of
// Hangul are one word: tesseract parts its syllables.
const syllableGap = 0.45

func (p *page) add(w word) {
	if n := len(p.words); n > 0 {
		l := &p.words[n-1]
		end, _ := utf8.DecodeLastRuneInString(l.text)
		start, _ := utf8.DecodeRuneInString(w.text)
		if unicode.Is(unicode.Hangul, end) && unicode.Is(unicode.Hangul, start) && sameLine(*l, w) && w.left > l.left && w.left-l.right < syllableGap*max(p.line, l.size, w.size) {
			l.text += w.text
			l.right, l.top, l.bottom, l.size = max(l.right, w.right), min(l.top, w.top), max(l.bottom, w.bottom), max(l.size, w.size)
			return
		}
	}
	p.words = append(p.words, w)
}
