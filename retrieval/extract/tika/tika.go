// Package tika has documents read by an Apache Tika server.
//
//	PUT /tika  the bytes -> XHTML
//
// Its one idea: a server is a helper that may be away. What says that it is, is
// an error that may pass; what it says of the document is one for good.
//
// SECURITY: documents go to the configured address and to no other: redirects
// are not followed and proxies of the environment not used. Nothing that the
// server says goes into an error, since it may quote the document.
//
// It knows no format and keeps nothing.
package tika

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"footnote/retrieval/extract/bounds"
)

// Server is a Tika server. It is safe for concurrent use.
type Server struct {
	base   *url.URL
	client *http.Client
}

// New makes the client of the server at an http or https address.
func New(address string) (*Server, error) {
	u, err := url.Parse(strings.TrimRight(address, "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the address of the Tika server is no http or https address")
	}
	return &Server{base: u, client: &http.Client{
		Transport:     &http.Transport{MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// never are endings of files that hold no text of their own.
const never = " .png .jpg .jpeg .gif .bmp .tif .tiff .webp .svg .ico .heic .psd .ai .mp3 .wav .ogg .flac .m4a .aac .mp4 .mov .avi .mkv .webm .wmv" +
	" .exe .dll .so .dylib .bin .o .a .class .jar .wasm .msi .dmg .iso .img .deb .rpm .apk .ttf .otf .woff .woff2 .db .sqlite .sqlite3 .mdb .pst" +
	" .tar .gz .tgz .bz2 .xz .7z .rar .zst .lock .tmp .bak .swp .part .p7s .sig .asc .dat "

// Reads reports whether files with this name are worth sending: what is no
// picture, sound, program, database or archive.
func Reads(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return ext != "" && !strings.Contains(never, " "+ext+" ")
}

// XHTML has a document read, within the time of ctx and the limits.
func (s *Server) XHTML(ctx context.Context, name string, data []byte, l bounds.Limits) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, s.base.JoinPath("tika").String(), bytes.NewReader(data))
	if err != nil {
		return "", err
	}
	req.Header.Set("Accept", "text/html")
	req.Header.Set("Content-Type", "application/octet-stream")
	req.Header.Set("Content-Disposition", "attachment; filename*=UTF-8''"+url.PathEscape(path.Base(name)))
	answer, err := s.client.Do(req)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", s.away("cannot be reached")
	}
	defer answer.Body.Close()
	if err := s.judge(answer.StatusCode); err != nil {
		return "", err
	}
	if kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")); kind != "" && kind != "application/xhtml+xml" && !strings.HasPrefix(kind, "text/") {
		return "", s.stranger("no text in its answer")
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, int64(l.Text)+1))
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", s.away("broke off its answer")
	case len(text) > l.Text:
		return "", bounds.Refuse("the Tika server found more than %d MB of text, which is the limit (ingest.extract.text_megabytes): split the document", l.Text>>20)
	}
	return string(text), nil
}

// judge makes an error of a status.
func (s *Server) judge(status int) error {
	switch {
	case status == http.StatusOK:
		return nil
	case status == http.StatusNoContent:
		return bounds.Refuse("no text found: the Tika server found none in it")
	case status == http.StatusUnsupportedMediaType, status == http.StatusUnprocessableEntity:
		return bounds.Refuse("the Tika server cannot read it (status %d): it is encrypted, damaged or of a format that is not known there either", status)
	case status == http.StatusRequestEntityTooLarge:
		return bounds.Refuse("the document is larger than the Tika server takes (status %d)", status)
	case status >= 500, status == http.StatusTooManyRequests:
		e := bounds.Refuse("the Tika server failed on it (status %d): look at its log", status)
		e.Retryable = true
		return e
	}
	return s.stranger(fmt.Sprintf("status %d", status))
}

// stranger says that another kind of server answers.
func (s *Server) stranger(why string) error {
	e := bounds.Refuse("what answers at %s is no Tika server (%s): set ingest.extract.tika to one", s.base.Host, why)
	e.Retryable = true
	return e
}

func (s *Server) away(how string) *bounds.Error {
	e := bounds.Refuse("the Tika server at %s %s: start it, or take ingest.extract.tika out of the configuration", s.base.Host, how)
	e.Retryable = true
	return e
}
