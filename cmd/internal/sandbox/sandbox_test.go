package sandbox

import (
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"footnote/acl"
	"footnote/deploy"
)

func TestTranslate(t *testing.T) {
	t.Parallel()
	lists := map[string]string{"group:security": "slack:T1:usergroup/S1", "everyone": "discord:G1:role/1"}
	for _, tt := range []struct{ name, in, want string }{
		{"one entry", "access: [group:security]\n", "access: [slack:T1:usergroup/S1]\n"},
		{"several, one unknown", "access: [everyone, group:guests]", "access: [discord:G1:role/1, group:guests]"},
		{"in front matter", "---\ntitle: A\naccess: [everyone]\n---\ntext\n", "---\ntitle: A\naccess: [discord:G1:role/1]\n---\ntext\n"},
		{"the word in a text", "No access: [everyone] may come.\n", "No access: [everyone] may come.\n"},
		{"no list", "access: everyone\n", "access: everyone\n"},
		{"not closed", "access: [everyone\n", "access: [everyone\n"},
	} {
		if got := translate(tt.in, lists); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// The demo's access lists name groups of its people file. On a platform every
// one of them must be translated, or a document would be closed to all.
func TestEveryListOfTheDemoIsTranslated(t *testing.T) {
	t.Parallel()
	ws, sv := newWorkspace(), newServer()
	t.Cleanup(ws.close)
	t.Cleanup(sv.close)
	for _, s := range []stage{ws, sv} {
		dir := t.TempDir()
		if err := writeDemo(dir, s.lists()); err != nil {
			t.Fatal(err)
		}
		lists := regexp.MustCompile(`(?m)^access: \[(.*)\]`)
		found := 0
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			raw, err := os.ReadFile(path)
			for _, m := range lists.FindAllStringSubmatch(string(raw), -1) {
				found++
				list, err := acl.ParseList(strings.Split(m[1], ", "))
				if err != nil {
					t.Errorf("%s: %v", path, err)
				}
				for _, p := range list.Principals() {
					if strings.HasPrefix(string(p), "group:") {
						t.Errorf("%T: %s names %s", s, path, p)
					}
				}
			}
			return err
		})
		if err != nil || found < 3 {
			t.Errorf("found %d lists, %v", found, err)
		}
	}
	if _, err := fs.Stat(deploy.Demo, "demo/security/.access.yaml"); err != nil {
		t.Error("the access files are not inside the program")
	}
}

func TestWhoSeesWhichPlace(t *testing.T) {
	t.Parallel()
	ws, sv := newWorkspace(), newServer()
	t.Cleanup(ws.close)
	t.Cleanup(sv.close)
	want := map[string]string{"ada": "general security lobby dm", "bob": "general lobby dm", "mina": "general lobby dm", "gus": "lobby dm"}
	for _, s := range []stage{ws, sv} {
		got := map[string]string{}
		for _, p := range s.people() {
			var open []string
			for _, in := range s.places(p) {
				if in.Open {
					open = append(open, in.ID)
				}
			}
			got[p.ID] = strings.Join(open, " ")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%T (-want +got):\n%s", s, diff)
		}
	}
}

// post does something on a page whose bot is not connected.
func post(t *testing.T, p *page, fields ...string) (int, string) {
	t.Helper()
	form := url.Values{}
	for i := 0; i+1 < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	r := httptest.NewRequest(http.MethodPost, "/do", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Sandbox", "1")
	w := httptest.NewRecorder()
	p.routes().ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func pages(t *testing.T) (slack, discord *page) {
	t.Helper()
	ws, sv := newWorkspace(), newServer()
	t.Cleanup(ws.close)
	t.Cleanup(sv.close)
	slack, err := newPage(ws, "Slack")
	if err != nil {
		t.Fatal(err)
	}
	discord, err = newPage(sv, "Discord")
	if err != nil {
		t.Fatal(err)
	}
	return slack, discord
}

func TestPageRefuses(t *testing.T) {
	t.Parallel()
	slack, discord := pages(t)
	for _, tt := range []struct {
		name   string
		p      *page
		fields []string
	}{
		{"a place that the person cannot see", slack, []string{"as", "bob", "in", "security", "what", "mention", "text", "hi"}},
		{"somebody unknown", slack, []string{"as", "eve", "in", "general", "what", "mention", "text", "hi"}},
		{"a way that is none", slack, []string{"as", "ada", "in", "general", "what", "shout", "text", "hi"}},
		{"nothing to say", slack, []string{"as", "ada", "in", "general", "what", "say", "text", " "}},
		{"a message that is not there", slack, []string{"as", "ada", "in", "general", "what", "press", "message", "1.2", "action", "source_1"}},
		{"a thread that is not there", slack, []string{"as", "ada", "in", "general", "what", "mention", "text", "hi", "thread", "1.2"}},
		{"a command that is not registered", discord, []string{"as", "ada", "in", "general", "what", "/ask", "text", "hi"}},
		{"a subcommand that is none", discord, []string{"as", "ada", "in", "general", "what", "/footnote", "text", "hi"}},
	} {
		if code, body := post(t, tt.p, tt.fields...); code != http.StatusBadRequest || body == "" {
			t.Errorf("%s: %d %q", tt.name, code, body)
		}
	}
	w := httptest.NewRecorder()
	slack.routes().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/do", strings.NewReader("as=ada")))
	if w.Code != http.StatusForbidden {
		t.Errorf("a post from another site gives %d", w.Code)
	}
}

func TestPageShowsOnlyWhatThePersonSees(t *testing.T) {
	t.Parallel()
	slack, discord := pages(t)
	const evil = `<script>alert(1)</script> & "quotes"`
	for _, p := range []*page{slack, discord} {
		if code, body := post(t, p, "as", "ada", "in", "security", "what", "say", "text", evil); code != http.StatusNoContent {
			t.Fatalf("%d %s", code, body)
		}
		see := func(query string) string {
			w := httptest.NewRecorder()
			p.routes().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?"+query, nil))
			if w.Code != http.StatusOK {
				t.Errorf("%s: %d", query, w.Code)
			}
			return w.Body.String()
		}
		if got := see("as=ada&in=security"); strings.Contains(got, "<script>alert") || !strings.Contains(got, "&lt;script&gt;alert(1)&lt;/script&gt; &amp;") {
			t.Errorf("%s does not show what was written:\n%s", p.name, got)
		}
		for _, query := range []string{"as=bob&in=security", "as=gus&in=security", "as=mina&in=general"} {
			if got := see(query); strings.Contains(got, "alert(1)") {
				t.Errorf("%s shows %s a message of another channel", p.name, query)
			}
		}
	}
}

func nobody(string) string { return "nobody" }

func TestMarkdown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, want string }{
		{"bold and numbers", "**Sources** [1]", `<div class="said"><b>Sources</b> [1]</div>`},
		{"escaped marks", `\*no\* \[1\] \<@1>`, `<div class="said">*no* [1] &lt;@1&gt;</div>`},
		{"code", "a `*b*` c", `<div class="said">a <code>*b*</code> c</div>`},
		{"block of code", "x\n```\n<b> **no**\n```\ny", `<div class="said">x</div><pre>&lt;b&gt; **no**</pre><div class="said">y</div>`},
		{"quotation", "> said", `<blockquote class="">said</blockquote>`},
		{"masked link", `[a \[b](<https://x.example/?a=1&b=2>)`, `<div class="said"><a href="https://x.example/?a=1&amp;b=2" rel="noreferrer" target="_blank">a [b</a></div>`},
		{"masked link to a script", "[a](<javascript:alert(1)>)", `<div class="said">[a](&lt;javascript:alert(1)&gt;)</div>`},
		{"mention", "<@12> hi", `<div class="said"><b class="who">@nobody</b> hi</div>`},
		{"mark without an end", "**a", `<div class="said">**a</div>`},
	} {
		if got := string(markdown(tt.in, nobody)); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

// tags are all that the two renderers may write.
var tags = regexp.MustCompile(`</?(div|pre|blockquote|b|i|u|s|code|ul|ol|li|hr|a)( class="[a-z ]*"| href="https?://[^"<>]*" rel="noreferrer" target="_blank")?>`)

func checkHTML(t *testing.T, got string) {
	t.Helper()
	if rest := tags.ReplaceAllString(got, ""); strings.ContainsAny(rest, "<>") {
		t.Errorf("%q holds other tags", got)
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{"**a** `b` [c](<https://d>)", "```\n<x>\n```", `\`, "<@1", "[a](https://x\"y)", "* _ ~~ __"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checkHTML(t, string(markdown(s, nobody))) })
}

func FuzzBlocks(f *testing.F) {
	f.Add(`[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"<x>","style":{"bold":true}},{"type":"link","url":"https://a\"b","text":"c"}]}]}]`)
	f.Add(`[{"type":"section","text":{"type":"mrkdwn","text":"<x>"}},{"type":"actions","elements":[{"action_id":"a","text":{"text":"<b>"}}]}]`)
	f.Add(`[{"type":"rich_text","elements":[{"type":"rich_text_list","elements":[{"elements":[{"type":"user","user_id":"<"}]}]}]}]`)
	f.Fuzz(func(t *testing.T, s string) {
		b := &blocks{names: nobody}
		checkHTML(t, string(b.show(json.RawMessage(s))))
	})
}
