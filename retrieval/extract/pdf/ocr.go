package pdf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/png"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/klippa-app/go-pdfium/requests"
)

// recognised says how sure tesseract was of a page.
type recognised struct {
	page, confidence int
}

// errNoOCR is the advice where there is no text recognition.
var errNoOCR = errors.New("install tesseract with the languages eng and kor, or add a text layer to the file")

// Bounds of text recognition.
const (
	dpi       = 300
	maxPixels = 20_000_000
	unsure    = 30 // words of a lower confidence, of 100, are dropped
)

// recognise reads the picture of a page with tesseract. Its error is advice
// for an operator.
func (b *book) recognise(ctx context.Context, d *document, n int) ([]row, error) {
	program, err := exec.LookPath("tesseract")
	if err != nil {
		return nil, errNoOCR
	}
	picture, err := d.picture(n)
	if err != nil {
		return nil, fmt.Errorf("page %d cannot be drawn: %w", n+1, err)
	}
	table, err := run(ctx, program, picture, "stdin", "stdout", "-l", languages(ctx, program), "--dpi", strconv.Itoa(dpi), "tsv")
	if err != nil {
		return nil, err
	}
	words, confidence := recognisedWords(string(table))
	if len(words) == 0 {
		return nil, nil
	}
	b.seen = append(b.seen, recognised{n + 1, confidence})
	return layout(words), nil
}

// picture draws a page as PNG.
func (d *document) picture(n int) ([]byte, error) {
	size, err := d.engine.FPDF_GetPageSizeByIndex(&requests.FPDF_GetPageSizeByIndex{Document: d.ref, Index: n})
	if err != nil {
		return nil, err
	}
	at := dpi
	for at > 36 && size.Width*size.Height*float64(at*at)/(72*72) > maxPixels {
		at /= 2
	}
	if size.Width*size.Height*float64(at*at)/(72*72) > maxPixels {
		return nil, errors.New("it is too large")
	}
	r, err := d.engine.RenderPageInDPI(&requests.RenderPageInDPI{DPI: at, Page: requests.Page{ByIndex: &requests.PageByIndex{Document: d.ref, Index: n}}})
	if err != nil {
		return nil, err
	}
	if r.CleanupFunc != nil {
		defer r.CleanupFunc()
	}
	var b bytes.Buffer
	err = png.Encode(&b, r.Result.RenderedImage)
	return b.Bytes(), err
}

// run runs tesseract with an input and returns its output. What it says of a
// fault is not shown: it may quote the document.
func run(ctx context.Context, program string, input []byte, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, program, args...)
	c.Stdin = bytes.NewReader(input)
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("tesseract failed: %w", err)
	}
	return out, nil
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

// recognisedWords reads tesseract's table: twelve columns, of which the last
// six are left, top, width, height, confidence and text, in pixels.
func recognisedWords(table string) (words []word, confidence int) {
	const scale = 72.0 / dpi
	sum := 0.0
	for line := range strings.Lines(table) {
		f := strings.Split(strings.TrimRight(line, "\r\n"), "\t")
		if len(f) < 12 {
			continue
		}
		var n [5]float64
		bad := false
		for i := range n {
			v, err := strconv.ParseFloat(f[6+i], 64)
			n[i], bad = v, bad || err != nil
		}
		text := strings.TrimSpace(f[11])
		if bad || text == "" || n[4] < unsure {
			continue
		}
		sum += n[4]
		words = append(words, word{text: text, spaced: true, left: n[0] * scale, top: n[1] * scale, right: (n[0] + n[2]) * scale, bottom: (n[1] + n[3]) * scale, size: max(n[3]*scale, 6)})
	}
	if len(words) == 0 {
		return nil, 0
	}
	return words, int(sum / float64(len(words)))
}
