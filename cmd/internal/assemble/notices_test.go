package assemble

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"footnote/bot/shelf"
	"footnote/cmd/internal/config"
	"footnote/retrieval/redisindex/redistest"
)

// A notice is settled only as it was read: one that was put anew stays.
func TestBoard(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Redis.URL = "redis://" + redistest.New(t, t.TempDir()).Address
	link, err := OpenLink(c, askDeadline)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = link.Close() })
	b := board{link, key(c, "notices"), newLead()}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	wants := func(when string, want ...shelf.Notice) {
		t.Helper()
		got, err := b.All(t.Context())
		must(err)
		if len(got) == 0 {
			got = nil
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	first := shelf.Notice{Platform: "slack", Document: "slack/T/C/F<1>", Name: "a&b.md", Message: json.RawMessage(`{"ts": "1.0", "text": "<x>"}`), Since: time.Unix(1, 0).UTC()}
	must(b.Put(t.Context(), first))
	all, err := b.All(t.Context())
	must(err)
	if len(all) != 1 {
		t.Fatalf("there are %v", all)
	}
	read := all[0] // its message is the same, in another form
	again := read
	again.Since = time.Unix(2, 0).UTC()
	must(b.Put(t.Context(), again))
	must(b.Swap(t.Context(), read, nil))
	wants("settled as it was before", again)
	shown := again
	shown.Shown = "failed"
	must(b.Swap(t.Context(), again, &shown))
	wants("shown", shown)
	must(b.Swap(t.Context(), shown, nil))
	wants("settled")
}
