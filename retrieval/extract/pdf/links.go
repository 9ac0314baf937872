package pdf

import (
	"strings"

	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"

	"footnote/retrieval/doctree"
	"footnote/retrieval/extract/draft"
)

// link is an address that a page does not show, and the words that it lies
// below.
type link struct {
	text, address string
	page          int
}

// maxLinks bounds the links that are read of a page.
const maxLinks = 200

// links reads those of a page that lead out of the document.
func (r *reading) links(doc references.FPDF_DOCUMENT, page references.FPDF_PAGE) []link {
	var out []link
	for at, n := 0, 0; n < maxLinks; n++ {
		found, err := r.engine.FPDFLink_Enumerate(&requests.FPDFLink_Enumerate{Page: requests.Page{ByReference: &page}, StartPos: at})
		if err != nil || found.Link == nil || found.NextStartPos == nil || *found.NextStartPos <= at {
			return out
		}
		at = *found.NextStartPos
		if l := (link{text: r.below(*found.Link), address: r.address(doc, *found.Link)}); l.hidden() {
			out = append(out, l)
		}
	}
	return out
}

// hidden reports a link whose address is one of the web or of mail and is not
// to be read on the page.
func (l link) hidden() bool {
	_, bare, ok := strings.Cut(l.address, ":")
	scheme := strings.ToLower(strings.TrimSuffix(l.address, ":"+bare))
	bare = strings.Trim(bare, "/")
	return ok && (scheme == "http" || scheme == "https" || scheme == "mailto") &&
		l.text != "" && !strings.Contains(strings.ReplaceAll(l.text, " ", ""), bare)
}

// address is where a link leads, "" if it stays in the document.
func (r *reading) address(doc references.FPDF_DOCUMENT, l references.FPDF_LINK) string {
	action, err := r.engine.FPDFLink_GetAction(&requests.FPDFLink_GetAction{Link: l})
	if err != nil || action.Action == nil {
		return ""
	}
	uri, err := r.engine.FPDFAction_GetURIPath(&requests.FPDFAction_GetURIPath{Document: doc, Action: *action.Action})
	if err != nil || uri.URIPath == nil {
		return ""
	}
	return strings.TrimSpace(draft.Clean(*uri.URIPath))
}

// below is the text that a link lies on.
func (r *reading) below(l references.FPDF_LINK) string {
	at, err := r.engine.FPDFLink_GetAnnotRect(&requests.FPDFLink_GetAnnotRect{Link: l})
	if err != nil || at.Rect == nil {
		return ""
	}
	text, err := r.engine.FPDFText_GetBoundedText(&requests.FPDFText_GetBoundedText{
		TextPage: r.page, Left: float64(at.Rect.Left), Top: float64(at.Rect.Top), Right: float64(at.Rect.Right), Bottom: float64(at.Rect.Bottom)})
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(draft.Clean(text.Text)), " ")
}

// writeLinks writes links as a section at the end, where they tear no sentence.
func writeLinks(d *draft.Document, all []link) {
	seen := map[link]bool{}
	for _, l := range all {
		key := link{text: l.text, address: l.address}
		if seen[key] {
			continue
		}
		if len(seen) == 0 {
			d.Section(1, "Links")
		}
		seen[key] = true
		d.Place = placeOf(l.page)
		d.Add(doctree.Item, l.text+": "+l.address)
	}
}
