package command

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"footnote/cmd/internal/config"
	"footnote/retrieval/extract/pdf"
)

// checkIntake says how documents can come in, and what reads them. Tokens that
// are too short are told with the platforms.
func (p *program) checkIntake(ctx context.Context, c config.Config) []finding {
	found, _ := c.Platforms(p.lookup)
	return append([]finding{checkPush(c, len(found.Push))}, checkReaders(ctx, c)...)
}

// checkPush says whether the push API is open, and to whom.
func checkPush(c config.Config, tokens int) finding {
	switch {
	case tokens == 0:
		return finding{"push", good, "no token: other systems cannot hand documents over", ""}
	case c.Web.Listen == "":
		return finding{"push", failure, "there is a token, and web.listen is not set: nothing is served", "set web.listen to host:port"}
	case !thisMachine(c.Web.Listen):
		return finding{
			"push", warning, fmt.Sprintf("%d token(s); %s can be reached from other machines by http, where tokens and documents can be read on the way", tokens, c.Web.Listen),
			"listen on 127.0.0.1 behind a proxy that does TLS, unless only such a proxy can reach it",
		}
	}
	return finding{"push", good, fmt.Sprintf("%d token(s), on %s", tokens, c.Web.Listen), ""}
}

// thisMachine reports that only this machine can reach the address.
func thisMachine(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// checkReaders says what reads scanned pages and unusual formats.
func checkReaders(ctx context.Context, c config.Config) []finding {
	out := []finding{{"recognition", warning, "tesseract is not installed: pages that are pictures are left out, and reported", "install tesseract with the languages of your documents, for example tesseract-ocr-eng and tesseract-ocr-kor"}}
	if languages, ok := pdf.Recognition(ctx); ok {
		out[0] = finding{"recognition", good, "tesseract, for pages that are pictures: " + languages, ""}
		if !strings.Contains(languages, "kor") {
			out[0].What += "; Korean is not installed"
		}
	}
	if at := c.Ingest.Extract.Tika; at != "" {
		out = append(out, checkTika(ctx, at))
	}
	return out
}

// checkTika asks the server for its version. No document is sent.
func checkTika(ctx context.Context, at string) finding {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(at, "/")+"/version", nil)
	if err != nil {
		return finding{"tika", failure, err.Error(), "correct ingest.extract.tika"}
	}
	direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := direct.Do(req)
	switch {
	case err != nil:
		return finding{"tika", failure, "it does not answer: " + err.Error(), "start it, or take ingest.extract.tika out of the configuration"}
	case r.StatusCode != http.StatusOK:
		_ = r.Body.Close() // nothing of it is read
		return finding{"tika", failure, fmt.Sprintf("%s answers GET /version with %s", at, r.Status), "is it a Tika server? correct ingest.extract.tika"}
	}
	_ = r.Body.Close()
	return finding{"tika", good, at + " answers", ""}
}
