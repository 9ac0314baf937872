package extract

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"regexp"
	"strings"
	"unicode/utf8"

	"footnote/retrieval/doctree"
	"footnote/retrieval/extract/draft"
)

// readMail reads one message: who wrote to whom, when and what, then the names
// of what is attached, which are documents of their own (Members). Of
// alternatives the plain text is taken, the HTML only where there is none. What
// cannot be read is named in the warnings.
func readMail(ctx context.Context, src Source) (doctree.Tree, error) {
	m, title, err := openMail(ctx, src)
	if err != nil {
		return doctree.Tree{}, err
	}
	if len(m.held.members) > 0 {
		m.d.Section(2, "Attachments")
	}
	m.held.names(m.d)
	return m.d.Tree(title, nil)
}

// openMail reads a message and returns its subject.
func openMail(ctx context.Context, src Source) (*message, string, error) {
	if _, name := mark(src.Data); strings.HasPrefix(name, "utf-16") || bytes.IndexByte(src.Data[:min(len(src.Data), 64)], 0) >= 0 {
		d, err := decode(src.Data, false) // a mail that was saved as UTF-16
		if err != nil {
			return nil, "", err
		}
		src.Data = []byte(d.text)
	}
	m := &message{ctx: ctx, src: src, d: draft.New(src.Limits, false), held: holding{also: src.also()}}
	title, err := m.message(src.Data)
	return m, title, err
}

type message struct {
	ctx   context.Context
	src   Source
	d     *draft.Document
	held  holding
	parts int
	size  int64
}

// shown are the headers that are part of the text.
var shown = []string{"From", "To", "Cc", "Date", "Subject"}

// headerLine is a header as RFC 5322 has it, or the rest of a long one.
var headerLine = regexp.MustCompile(`^([!-9;-~]+[ \t]*:|[ \t])`)

// header parts a message and drops lines that are no headers, as the line
// "From " of a mailbox.
func header(data []byte) (mail.Header, []byte) {
	data = bytes.TrimLeft(data, "\r\n\ufeff")
	var kept bytes.Buffer
	for len(data) > 0 {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		if line = bytes.TrimRight(line, "\r"); len(line) == 0 {
			break
		}
		if headerLine.Match(line) {
			kept.Write(line)
			kept.WriteString("\r\n")
		}
	}
	kept.WriteString("\r\n")
	m, err := mail.ReadMessage(&kept)
	if err != nil {
		return mail.Header{}, data
	}
	return m.Header, data
}

// message writes a whole message and returns its subject.
func (m *message) message(data []byte) (string, error) {
	h, body := header(data)
	subject := decodeHeader(h.Get("Subject"))
	m.d.Heading(1, subject)
	var lines []string
	for _, name := range shown {
		if v := decodeHeader(h.Get(name)); v != "" && name != "Subject" {
			lines = append(lines, name+": "+v)
		}
	}
	m.d.Add(doctree.Paragraph, strings.Join(lines, "\n"))
	if len(h) == 0 && len(bytes.TrimSpace(body)) == 0 {
		return "", refuse("no text found: the file holds no header and no body of a mail")
	}
	return subject, m.part(textproto.MIMEHeader(h), body, 1)
}

// decodeHeader reads encoded words, and bytes beyond ASCII in whatever charset
// they are.
func decodeHeader(s string) string {
	if !utf8.ValidString(s) {
		s = toText([]byte(s), "", false)
	}
	d := mime.WordDecoder{CharsetReader: func(charset string, r io.Reader) (io.Reader, error) {
		data, err := io.ReadAll(r)
		return strings.NewReader(toText(data, charset, false)), err
	}}
	out, err := d.DecodeHeader(s)
	if err != nil {
		return s
	}
	return out
}

// shiftedKorean announces ISO-2022-KR (RFC 1557): what lies between the control
// characters SO and SI is EUC-KR without its high bits.
const shiftedKorean = "\x1b$)C"

// unshifted makes EUC-KR of ISO-2022-KR.
func unshifted(data []byte) []byte {
	out, shift := make([]byte, 0, len(data)), byte(0)
	for _, b := range bytes.ReplaceAll(data, []byte(shiftedKorean), nil) {
		switch b {
		case 0x0E:
			shift = 0x80
		case 0x0F:
			shift = 0
		case '\n', '\r', ' ':
			out = append(out, b)
		default:
			out = append(out, b|shift)
		}
	}
	return out
}

// toText decodes text of a charset that is named, or else found. What is no
// text is "".
func toText(data []byte, charset string, isHTML bool) string {
	charset = strings.ToLower(strings.TrimSpace(charset))
	if e, err := named(charset); err == nil && charset != "" && charset != "us-ascii" && !utf8.Valid(data) {
		w := writer{m: &doctree.Map{}}
		if strings.HasPrefix(charset, "utf-") {
			w.utf8(data, 0)
		} else {
			w.other(data, 0, e)
		}
		return w.out.String()
	}
	if charset == "iso-2022-kr" || charset == "" && bytes.HasPrefix(data, []byte(shiftedKorean)) {
		return toText(unshifted(data), "euc-kr", isHTML)
	}
	if charset == "iso-2022-jp" || charset == "hz-gb-2312" || strings.HasPrefix(charset, "utf-16") {
		if e, err := named(charset); err == nil {
			w := writer{m: &doctree.Map{}}
			w.other(data, 0, e)
			return w.out.String()
		}
	}
	d, err := decode(data, isHTML)
	if err != nil {
		return ""
	}
	return d.text
}

// part writes one part by its type.
func (m *message) part(h textproto.MIMEHeader, body []byte, depth int) error {
	if err := m.count(body, depth); err != nil {
		return err
	}
	kind, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	if err != nil && kind == "" {
		kind = "text/plain"
	}
	name := partName(h, params)
	if strings.HasPrefix(kind, "multipart/") && params["boundary"] != "" {
		return m.multipart(kind, params["boundary"], body, depth)
	}
	data := m.transfer(h.Get("Content-Transfer-Encoding"), body)
	disposition, _, _ := strings.Cut(strings.ToLower(h.Get("Content-Disposition")), ";")
	switch attached := strings.TrimSpace(disposition) == "attachment" || name != "" && !strings.HasPrefix(kind, "text/"); {
	case (kind == "application/pkcs7-mime" || kind == "application/x-pkcs7-mime") && params["smime-type"] != "signed-data":
		return &Error{Reason: "the mail is encrypted (S/MIME): save it unencrypted", Retryable: true}
	case kind == "message/rfc822":
		m.attach(name, ".eml", data)
	case attached || name != "" && ending(name) != ".txt":
		m.attach(name, extensionOf(kind), data)
	case kind == "text/html":
		return m.page(toText(data, params["charset"], true))
	case strings.HasPrefix(kind, "text/") || !strings.Contains(kind, "/"):
		m.plain(toText(data, params["charset"], false))
	default:
		m.d.Warn("a part of type " + oneLine(kind) + " is not read")
	}
	return m.d.Err()
}

// count holds a part to the limits.
func (m *message) count(body []byte, depth int) error {
	m.parts++
	switch m.size += int64(len(body)); {
	case m.parts > m.src.Limits.Parts:
		return refuse("the mail has more than %d parts, which is the limit (ingest.extract.members)", m.src.Limits.Parts)
	case m.size > m.src.Limits.Unpacked:
		return refuse("the parts of the mail hold more than %d MB, which is the limit (ingest.extract.unpacked_megabytes)", m.src.Limits.Unpacked>>20)
	case depth > m.src.Limits.Nesting:
		return refuse("the mail nests parts more than %d deep, which is the limit (ingest.extract.nesting)", m.src.Limits.Nesting)
	}
	return m.ctx.Err()
}

func partName(h textproto.MIMEHeader, params map[string]string) string {
	name := params["name"]
	if _, p, err := mime.ParseMediaType(h.Get("Content-Disposition")); err == nil && p["filename"] != "" {
		name = p["filename"]
	}
	return oneLine(decodeHeader(name))
}

// transfer undoes the encoding of a part. Of one that breaks off, what came
// before counts.
func (m *message) transfer(encoding string, body []byte) []byte {
	var r io.Reader = bytes.NewReader(body)
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "base64":
		r = base64.NewDecoder(base64.StdEncoding, bytes.NewReader(onlyBase64(body)))
	case "quoted-printable":
		r = quotedprintable.NewReader(r)
	default:
		return body
	}
	data, err := io.ReadAll(r)
	if err != nil {
		m.d.Warn(fmt.Sprintf("part %d is damaged: %v", m.parts, err))
	}
	return data
}

// onlyBase64 drops what is no digit of base64, and completes the last group.
func onlyBase64(body []byte) []byte {
	out := make([]byte, 0, len(body)+3)
	for _, b := range body {
		if b >= 'A' && b <= 'Z' || b >= 'a' && b <= 'z' || b >= '0' && b <= '9' || b == '+' || b == '/' {
			out = append(out, b)
		}
	}
	if len(out)%4 == 1 {
		out = out[:len(out)-1]
	}
	for len(out)%4 != 0 {
		out = append(out, '=')
	}
	return out
}

// sub is a part of a multipart.
type sub struct {
	header textproto.MIMEHeader
	body   []byte
}

func (m *message) multipart(kind, boundary string, body []byte, depth int) error {
	if kind == "multipart/encrypted" {
		return &Error{Reason: "the mail is encrypted: save it unencrypted", Retryable: true}
	}
	parts, err := m.split(boundary, body)
	if err != nil {
		return err
	}
	if kind == "multipart/alternative" {
		parts = m.choose(parts)
	}
	for _, p := range parts {
		if err := m.part(p.header, p.body, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// split parts a body at its boundary. One that breaks off gives what came
// before.
func (m *message) split(boundary string, body []byte) ([]sub, error) {
	var out []sub
	r := multipart.NewReader(bytes.NewReader(body), boundary)
	for len(out) <= m.src.Limits.Parts {
		p, err := r.NextRawPart()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				m.d.Warn("the mail breaks off or is damaged: what came before was read")
			}
			return out, m.ctx.Err()
		}
		data, err := io.ReadAll(p)
		out = append(out, sub{p.Header, data})
		if err != nil {
			m.d.Warn("the mail breaks off: the last part is not whole")
			return out, m.ctx.Err()
		}
	}
	return out, m.ctx.Err()
}

// choose takes one of several alternatives: plain text that says something,
// else the last that is no plain text, which is the richest.
func (m *message) choose(parts []sub) []sub {
	for _, p := range parts {
		kind, params, err := mime.ParseMediaType(p.header.Get("Content-Type"))
		if err == nil && kind == "text/plain" && partName(p.header, params) == "" && len(bytes.TrimSpace(m.transfer(p.header.Get("Content-Transfer-Encoding"), p.body))) > 0 {
			return []sub{p}
		}
	}
	for i := len(parts) - 1; i >= 0; i-- {
		if kind, _, _ := mime.ParseMediaType(parts[i].header.Get("Content-Type")); kind != "text/plain" && kind != "text/calendar" {
			return parts[i : i+1]
		}
	}
	return parts
}

// plain writes paragraphs.
func (m *message) plain(text string) {
	for _, p := range blankLine.Split(text, -1) {
		m.d.Add(doctree.Paragraph, strings.TrimSpace(p))
	}
}

// page writes the text of an HTML body.
func (m *message) page(text string) error {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	t, err := parseHTML(m.ctx, input{text: text, limits: m.src.Limits})
	if err != nil {
		return err
	}
	graft(m.d, t, 6)
	return m.d.Err()
}

// attach keeps a part as a document of its own. ext is the ending that its type
// gives to a name without one.
func (m *message) attach(name, ext string, data []byte) {
	if ext == ".eml" && name == "" {
		h, _ := header(data)
		name = strings.ReplaceAll(oneLine(decodeHeader(h.Get("Subject"))), "/", "_")
	}
	if name == "" {
		name = fmt.Sprintf("part %d", m.parts)
	}
	if ext != "" && (ending(name) == "" || !Supported(name) && ext == ".eml") {
		name += ext
	}
	m.held.add(strings.ReplaceAll(name, "/", "_"), func(context.Context) ([]byte, error) { return data, nil })
}

// extensionOf is the ending of files of a type, "" if it is not read or says
// nothing.
func extensionOf(kind string) string {
	switch kind {
	case "application/pdf":
		return ".pdf"
	case "application/zip", "application/x-zip-compressed":
		return ".zip"
	case "application/json":
		return ".json"
	case "application/vnd.openxmlformats-officedocument.wordprocessingml.document":
		return ".docx"
	case "application/vnd.openxmlformats-officedocument.presentationml.presentation":
		return ".pptx"
	case "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":
		return ".xlsx"
	case "text/html":
		return ".html"
	case "text/csv":
		return ".csv"
	case "text/markdown":
		return ".md"
	case "text/plain":
		return ".txt"
	}
	if strings.HasPrefix(kind, "text/") {
		return ""
	}
	return ".bin"
}

// graft writes the blocks of another tree, its headings below a level.
func graft(d *draft.Document, t doctree.Tree, level int) {
	for _, s := range t.Sections {
		for _, b := range s.Blocks {
			graftBlock(d, &t, b, level+s.Level)
		}
		d.Break()
	}
}

func graftBlock(d *draft.Document, t *doctree.Tree, b doctree.Block, level int) {
	if len(b.Parts) > 0 && (b.Kind == doctree.List || b.Kind == doctree.Table) {
		d.Break()
		for _, p := range b.Parts {
			graftBlock(d, t, p, level)
		}
		return
	}
	text := t.Plain(b.Span.FromByte, b.Span.ToByte)
	if b.Kind == doctree.Heading {
		d.Heading(level, text)
		return
	}
	d.Add(b.Kind, text)
}
