package push

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"go.yaml.in/yaml/v3"
)

func readDescription() ([]byte, error) { return os.ReadFile("../../../deploy/openapi.yaml") }

// operations are the statuses that the description names: "GET /v1/documents 200".
func operations(t *testing.T, raw []byte) map[string]bool {
	t.Helper()
	var d struct {
		Paths map[string]map[string]struct {
			Responses map[string]any `yaml:"responses"`
		} `yaml:"paths"`
	}
	// The parameters of a path stand beside its operations.
	must(t, yaml.Unmarshal(regexp.MustCompile(`(?m)^    parameters:\n(?:      .*\n)+`).ReplaceAll(raw, nil), &d))
	out := map[string]bool{}
	for path, methods := range d.Paths {
		for method, op := range methods {
			for status := range op.Responses {
				out[strings.ToUpper(method)+" "+path+" "+status] = false
			}
		}
	}
	return out
}

// template is the path of the description that a request goes to.
func template(path string) string {
	path, _, _ = strings.Cut(path, "?")
	if strings.HasPrefix(path, "/v1/documents/") {
		return "/v1/documents/{id}"
	}
	return path
}

// Everything that the API answers is described, and everything that is
// described is answered by some request here.
func TestDescriptionHolds(t *testing.T) {
	t.Parallel()
	raw, err := readDescription()
	must(t, err)
	doc, err := libopenapi.NewDocument(raw)
	must(t, err)
	check, errs := validator.NewValidator(doc)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if ok, errs := check.ValidateDocument(); !ok {
		t.Fatalf("the description is no OpenAPI: %v", errs)
	}
	described := operations(t, raw)
	see := func(name string, req *http.Request, r *http.Response) {
		t.Helper()
		key := fmt.Sprintf("%s %s %d", req.Method, template(req.URL.Path), r.StatusCode)
		if _, ok := described[key]; !ok && r.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %s is not described", name, key)
			return
		}
		if r.StatusCode == http.StatusMethodNotAllowed { // of a method that is not described: as for GET
			key = fmt.Sprintf("GET %s 405", template(req.URL.Path))
			req.Method = http.MethodGet
			for k := range described {
				if strings.HasSuffix(k, template(req.URL.Path)+" 405") {
					described[k] = true
				}
			}
		}
		described[key] = true
		if template(req.URL.Path) == "/v1/documents/{id}" { // templates know no slashes
			req.URL = &url.URL{Scheme: "http", Host: "x.example", Path: "/v1/documents/x"}
		}
		if ok, errs := check.ValidateHttpResponse(req, r); !ok && r.StatusCode != http.StatusNoContent && r.Header.Get("Content-Type") != "application/yaml" {
			t.Errorf("%s: %s", name, errs)
		}
	}
	for _, c := range cases {
		w := held(t)
		see(c.name, c.request.http(), w.do(c.request))
	}
	rest(t, see)
	for _, key := range slices.Sorted(maps.Keys(described)) {
		if !described[key] {
			t.Errorf("no request is answered with %s", key)
		}
	}
}

// rest are the answers that need more than a request.
func rest(t *testing.T, see func(string, *http.Request, *http.Response)) {
	t.Helper()
	w := held(t)
	w.broken = errDisk
	for _, r := range []request{{"PUT", "/v1/documents/wiki/leave.md", []string{everyone}, "x"}, {"DELETE", "/v1/documents/wiki/leave.md", nil, ""}} {
		see("the disk is full", r.http(), w.do(r))
	}
	for i := range 4 {
		full := request{"PUT", fmt.Sprintf("/v1/documents/%d.md", i), []string{everyone}, "x"}
		if r := w.do(full); i == 3 {
			see("the inbox is full", full.http(), r)
		}
	}
	w = newWorld(t)
	put := request{"PUT", "/v1/documents/a.md", []string{everyone}, "x"}
	for range cap(w.api.uploads) {
		w.api.uploads <- struct{}{}
	}
	see("too many bodies", put.http(), w.do(put))
	<-w.api.uploads
	req, rec := put.http(), httptest.NewRecorder()
	req.Body = io.NopCloser(io.MultiReader(strings.NewReader("x"), broken{}))
	w.api.ServeHTTP(rec, req)
	see("a body that ends early", put.http(), rec.Result())
}

// broken is the end of a connection.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
