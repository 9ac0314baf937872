package repocheck

import (
	"slices"
	"strings"
	"testing"
)

// mayImport is the direction of imports: an area to the areas it may use,
// besides itself. Test files may use more, see testMayImport.
var mayImport = map[string][]string{
	"acl":       {},
	"models":    {},
	"retrieval": {"acl", "models"},
	"bot":       {"acl", "models", "retrieval"},
	"adapters":  {"acl", "bot", "retrieval"},
	"cmd":       {"acl", "models", "retrieval", "bot", "adapters", "deploy"},
	"deploy":    {},
}

// testMayImport adds what tests of an area may use besides.
var testMayImport = map[string][]string{
	"adapters": {"models"},
}

// chatAdapters render replies and know nothing of the index.
var chatAdapters = []string{"adapters/slack", "adapters/discord"}

// fakeserver is what the fakes of the platforms share, the one piece below
// adapters that belongs to no adapter.
const fakeserver = "adapters/fakeserver"

func TestImportsGoOneWay(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		allowed, known := mayImport[area(s.dir)]
		if !known {
			t.Errorf("%s: %q is no area of the design", s.path, area(s.dir))
			continue
		}
		for _, im := range s.imports {
			if to := ours(im); to != "" {
				for _, reason := range breaks(s, to, allowed) {
					t.Errorf("%s imports %s: %s", s.path, to, reason)
				}
			}
		}
	}
}

// breaks says which rules an import of ours breaks.
func breaks(s source, to string, allowed []string) []string {
	var out []string
	from := area(s.dir)
	if area(to) != from && !contains(allowed, area(to)) && (!s.test || !contains(testMayImport[from], area(to))) {
		out = append(out, from+" may import only "+strings.Join(allowed, ", "))
	}
	if from == "adapters" && area(to) == "adapters" && adapter(to) != adapter(s.dir) && !s.test && to != fakeserver {
		out = append(out, "adapters never import each other")
	}
	if to == fakeserver && !s.test && !strings.HasSuffix(s.dir, "test") {
		out = append(out, "only fakes stand on "+fakeserver)
	}
	if !s.test && area(to) == "retrieval" && slices.ContainsFunc(chatAdapters, func(a string) bool { return within(s.dir, a) }) {
		out = append(out, "chat adapters do not know the index")
	}
	if s.dir == "retrieval" && strings.HasPrefix(to, "retrieval/") && !s.test {
		out = append(out, "the root of retrieval imports none of its parts")
	}
	if within(s.dir, "retrieval/memindex") && within(to, "retrieval/redisindex") || within(s.dir, "retrieval/redisindex") && within(to, "retrieval/memindex") {
		out = append(out, "the two indexes do not know each other")
	}
	if to == "acl/system" && !bypassAllowed(s) {
		out = append(out, "SECURITY: only retrieval/ingest and cmd may skip the access lists")
	}
	return out
}

// bypassAllowed reports whether a file may use acl/system: ingestion, the
// commands, and tests that need to see all documents.
func bypassAllowed(s source) bool {
	return s.test || area(s.dir) == "cmd" || within(s.dir, "retrieval/ingest") || within(s.dir, "retrieval/indextest")
}

// adapter is the adapter that a directory belongs to: adapters/slack of
// adapters/slack/render.
func adapter(dir string) string {
	parts := strings.SplitN(dir, "/", 3)
	return strings.Join(parts[:min(2, len(parts))], "/")
}

func within(dir, top string) bool { return dir == top || strings.HasPrefix(dir, top+"/") }

// TestBreaks holds the rules to samples that must fail, so that a rule that
// never fires is noticed.
func TestBreaks(t *testing.T) {
	t.Parallel()
	tests := []struct{ from, to string }{
		{"acl", "models"},
		{"models", "acl"},
		{"retrieval/chunk", "bot"},
		{"bot", "adapters/console"},
		{"adapters/slack", "adapters/discord"},
		{"adapters/slack", fakeserver},
		{"adapters/slack/slacktest", "adapters/discord/discordtest"},
		{"adapters/slack", "retrieval"},
		{"adapters/console", "models"},
		{"retrieval", "retrieval/memindex"},
		{"retrieval/memindex", "retrieval/redisindex"},
		{"bot", "acl/system"},
		{"retrieval/memindex", "acl/system"},
	}
	for _, tt := range tests {
		t.Run(tt.from+" to "+tt.to, func(t *testing.T) {
			t.Parallel()
			s := source{dir: tt.from, path: tt.from + "/x.go"}
			if len(breaks(s, tt.to, mayImport[area(tt.from)])) == 0 {
				t.Error("must be forbidden")
			}
		})
	}
}

// shared are libraries that several directories may use: the extended standard
// library, the two text formats of our own files, helpers of tests, the
// WebSockets that both platforms and their fakes speak, and the Redis client:
// each kind of shared state stands beside its embedded form.
var shared = []string{
	"github.com/redis/go-redis",
	"golang.org/x/",
	"go.yaml.in/yaml/v3",
	"github.com/google/go-cmp",
	"github.com/gorilla/websocket",
	"github.com/rogpeppe/go-internal",
	"pgregory.net/rapid",
}

// A directory is meant with what lies below it.
func TestThirdPartyLibrariesLiveInOneDirectory(t *testing.T) {
	t.Parallel()
	where := map[string][]string{}
	for _, s := range sources(t) {
		for _, im := range s.imports {
			lib := library(im)
			if lib == "" || slices.ContainsFunc(shared, func(p string) bool { return strings.HasPrefix(lib+"/", p) || lib == p }) {
				continue
			}
			if !contains(where[lib], s.dir) {
				where[lib] = append(where[lib], s.dir)
			}
		}
	}
	for lib, dirs := range where {
		if top := slices.MinFunc(dirs, func(a, b string) int { return len(a) - len(b) }); slices.ContainsFunc(dirs, func(d string) bool { return !within(d, top) }) {
			t.Errorf("%s is imported in %s: wrap it in one of them", lib, strings.Join(dirs, ", "))
		}
	}
}

// library is the host/owner/name of a third-party import, "" for the standard
// library and for ours.
func library(imported string) string {
	parts := strings.Split(imported, "/")
	if imported == "C" || ours(imported) != "" || !strings.Contains(parts[0], ".") {
		return ""
	}
	return strings.Join(parts[:min(3, len(parts))], "/")
}

func TestCgoLivesInOneDirectory(t *testing.T) {
	t.Parallel()
	for _, s := range sources(t) {
		if contains(s.imports, "C") && !within(s.dir, "models/onnx") {
			t.Errorf("%s uses cgo: only models/onnx may", s.path)
		}
	}
}
