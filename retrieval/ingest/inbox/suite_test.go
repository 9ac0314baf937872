package inbox_test

import (
	"testing"

	"footnote/retrieval"
	"footnote/retrieval/ingest/inbox"
	"footnote/retrieval/ingest/inbox/inboxtest"
	"footnote/retrieval/memindex"
)

func open(t testing.TB, place string, o inbox.Options) *inbox.Inbox {
	t.Helper()
	b, err := inbox.Open(place+"/inbox", "push:", o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestConformance(t *testing.T) {
	t.Parallel()
	inboxtest.Run(t, open)
}

func TestInForce(t *testing.T) {
	t.Parallel()
	inboxtest.RunGuard(t, func(t testing.TB, place string) (retrieval.Store, *inbox.Inbox) {
		s, err := memindex.Open(place)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s, open(t, place, inbox.Options{})
	})
}
