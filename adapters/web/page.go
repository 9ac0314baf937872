package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"

	"footnote/bot"
)

// page is what the viewer shows. The zero page is the one for everything that
// is not to be seen.
type page struct {
	N                     int
	Title, Path, Original string // Original: a link of http or https, "" there is none
	Modified              time.Time
	Now                   time.Time // of the present revision
	Before, Quote, After  string
	CutBefore, CutAfter   bool
	Superseded, Tombstone bool
	Changes               []bot.Line // of a superseded passage
}

// show is the page of a passage with around code points on either side.
func show(n int, o bot.Opened, around int) page {
	near := o.Around(around)
	p := page{
		N: n, Title: o.Document.Title, Path: o.Document.Path, Original: original(o.Document.Link), Modified: o.Document.Modified, Superseded: o.Superseded, Now: o.Current.Modified, Changes: o.Changes(),
		Before: near.Before, Quote: o.Quote, After: near.After, CutBefore: near.CutBefore, CutAfter: near.CutAfter,
	}
	if p.CutBefore {
		p.Before = fromLineStart(p.Before)
	}
	if p.CutAfter {
		p.After = toLineEnd(p.After)
	}
	return p
}

// original is the link if it surely leads to a page.
func original(link string) string {
	u, err := url.Parse(link)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return ""
	}
	return link
}

// fromLineStart cuts a broken first line off, toLineEnd a broken last one,
// unless that would be most of the text.
func fromLineStart(s string) string {
	if i := strings.IndexByte(s, '\n'); i >= 0 && i < len(s)/2 {
		return s[i+1:]
	}
	return s
}

func toLineEnd(s string) string {
	if i := strings.LastIndexByte(s, '\n'); i > len(s)/2 {
		return s[:i]
	}
	return s
}

const style = `:root{color-scheme:light dark}
body{font:16px/1.55 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.3rem;margin-bottom:.2rem}
.about,.cut{color:#767676;font-size:.9rem;overflow-wrap:anywhere}
.note{border-left:.25rem solid #b8860b;padding:.3rem .8rem}
.text{white-space:pre-wrap;overflow-wrap:anywhere;font-family:inherit}
del{background:#fbd5d5;color:#111}
ins{background:#d5f2d9;color:#111}
mark{background:#ffe58a;color:#111}`

// styleHash lets exactly this style through the content security policy.
var styleHash = func() string {
	h := sha256.Sum256([]byte(style))
	return "sha256-" + base64.StdEncoding.EncodeToString(h[:])
}()

var pages = template.Must(template.New("source").Funcs(template.FuncMap{
	"date": func(t time.Time) string { return t.UTC().Format("2 January 2006") },
}).Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex, nofollow">
<meta name="referrer" content="no-referrer">
<title>{{if .Title}}{{.Title}}{{else}}Source{{end}}</title>
<style>` + style + `</style>
</head>
<body>
{{- if .Tombstone}}
<h1>{{.Title}}</h1>
<p class="note">The cited revision of this document is no longer kept: it was replaced by that of {{date .Modified}}. The answer that cites it may be out of date. Please ask again.</p>
{{- else if .N}}
<h1>[{{.N}}] {{.Title}}</h1>
<p class="about">{{if .Original}}<a href="{{.Original}}" rel="noopener noreferrer nofollow">Original</a>{{else}}{{.Path}}{{end}}{{if not .Modified.IsZero}} · revision of {{date .Modified}}{{end}}</p>
{{- if .Superseded}}
<p class="note">This is an earlier revision, the one that the answer cites. The document has changed since: <a href="#changes">what has changed here</a>.</p>
{{- end}}
{{- if .CutBefore}}
<p class="cut">…</p>
{{- end}}
<div class="text">{{.Before}}<mark id="passage">{{.Quote}}</mark>{{.After}}</div>
{{- if .CutAfter}}
<p class="cut">…</p>
{{- end}}
{{- if .Superseded}}
<h2 id="changes">What has changed here</h2>
<div class="text">{{range .Changes}}{{if eq .Kind "dropped"}}<del>{{.Text}}</del>{{else if eq .Kind "added"}}<ins>{{.Text}}</ins>{{else}}{{.Text}}{{end}}
{{end}}</div>
<p class="about">Struck out: only in the revision that the answer cites. Underlined: only in the present one, of {{date .Now}}.</p>
{{- end}}
{{- else}}
<h1>This source is not available</h1>
<p>The link has expired, the document was removed, or there is nothing here that you may read. Open the source again from the answer in the chat; if that leads here again, the answer may be out of date: please ask again.</p>
{{- end}}
</body>
</html>
`))

// render writes a page whole, so that a failure is no half page.
func render(w http.ResponseWriter, status int, p page) {
	var b bytes.Buffer
	if err := pages.Execute(&b, p); err != nil {
		http.Error(w, "The source cannot be shown.", http.StatusInternalServerError)
		return
	}
	w.WriteHeader(status)
	_, _ = b.WriteTo(w)
}
