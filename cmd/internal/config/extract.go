package config

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
	"time"

	"footnote/adapters/files"
	"footnote/retrieval/extract/bounds"
)

// Extract bounds the reading of one document. A document over a limit fails
// with that reason, alone.
type Extract struct {
	Seconds           int // for reading and cutting it
	UnpackedMegabytes int // of an archive, an Office document or a mail
	Ratio             int // unpacked to packed size
	Members           int // files of an archive, parts of a mail
	Depth             int // archives and mails within one another
	Nesting           int // elements within one another
	Pages             int // or slides
	Cells             int // of all tables
	TextMegabytes     int
	Tika              string // address of an Apache Tika server that reads other formats; "" none
}

var defaultExtract = Extract{
	Seconds: 120, UnpackedMegabytes: 256, Ratio: 200, Members: 10_000, Depth: 4,
	Nesting: 256, Pages: 5_000, Cells: 1_000_000, TextMegabytes: 64,
}

func (e *Extract) settings() []setting {
	return []setting{
		whole("ingest.extract.seconds", &e.Seconds, 1, 3600),
		whole("ingest.extract.unpacked_megabytes", &e.UnpackedMegabytes, 1, 4096),
		whole("ingest.extract.ratio", &e.Ratio, 2, 100_000),
		whole("ingest.extract.members", &e.Members, 1, 1_000_000),
		whole("ingest.extract.depth", &e.Depth, 1, 32),
		whole("ingest.extract.nesting", &e.Nesting, 16, 10_000),
		whole("ingest.extract.pages", &e.Pages, 1, 100_000),
		whole("ingest.extract.cells", &e.Cells, 1, 100_000_000),
		whole("ingest.extract.text_megabytes", &e.TextMegabytes, 1, 1024),
		address("ingest.extract.tika", &e.Tika),
	}
}

// Limits are those that extraction knows.
func (e Extract) Limits() bounds.Limits {
	return bounds.Limits{
		Unpacked: int64(e.UnpackedMegabytes) << 20, Ratio: int64(e.Ratio), Parts: e.Members, Depth: e.Depth,
		Nesting: e.Nesting, Pages: e.Pages, Cells: e.Cells, Text: e.TextMegabytes << 20,
	}
}

// Timeout is the time that one document has.
func (e Extract) Timeout() time.Duration { return time.Duration(e.Seconds) * time.Second }

// documentPasswords is the variable of the passwords that open encrypted
// documents, one a line behind the pattern of the paths that it is for:
//
//	**/contracts/*.pdf: open sesame
//
// The first pattern that matches the whole path counts.
const documentPasswords = "FOOTNOTE_DOCUMENT_PASSWORDS"

type documentPassword struct {
	pattern string
	secret  Secret
}

// DocumentPasswords reads the passwords. The function is safe for concurrent
// use and gives "" where there is none. Errors name a line, never what stands
// in it.
func DocumentPasswords(env Lookup) (func(path string) string, error) {
	all, err := LookupSecret(documentPasswords, env)
	if err != nil {
		return nil, err
	}
	var entries []documentPassword
	var wrong []error
	lines := bufio.NewScanner(strings.NewReader(all.Reveal()))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimRight(lines.Text(), "\r")
		if strings.TrimSpace(line) == "" {
			continue
		}
		pattern, password, ok := strings.Cut(line, ": ")
		if !ok || password == "" || !files.ValidPattern(pattern) {
			wrong = append(wrong, fmt.Errorf("%s, line %d: want a pattern of paths, a colon, a space and the password, for example **/contracts/*.pdf: PASSWORD", documentPasswords, n))
			continue
		}
		entries = append(entries, documentPassword{pattern, Secret{password}})
	}
	return func(path string) string {
		for _, e := range entries {
			if files.Matches(e.pattern, path) {
				return e.secret.Reveal()
			}
		}
		return ""
	}, errors.Join(append(wrong, lines.Err())...)
}
