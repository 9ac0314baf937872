package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"footnote/acl/system"
	"footnote/retrieval"
	"footnote/retrieval/analysis"
	"footnote/retrieval/redisindex"
)

// lifts is how many documents change in the storm.
const lifts = 3

// revise writes a document that changes: three chunks that each name the
// revision.
func (x *stormy) revise(lift, n int) {
	var b strings.Builder
	fmt.Fprintf(&b, "# Lift %d\n", lift)
	for _, part := range []string{"Code", "Doors", "Alarm"} {
		fmt.Fprintf(&b, "\n## %s\n\nlifttext r%dx %s\n", part, n, strings.Repeat("The lift stops at each floor of the marzipan house. ", 5))
	}
	name := fmt.Sprintf("lift%d.md", lift)
	write(x.T, filepath.Join(filepath.Dir(x.docs), name), b.String()) // and moved: nobody sees half a file
	if err := os.Rename(filepath.Join(filepath.Dir(x.docs), name), filepath.Join(x.docs, name)); err != nil {
		x.Error(err)
	}
}

// edit rewrites documents all the time, and looks at the index. stop ends that,
// waits until the last revision of each is in force, and returns.
func (x *stormy) edit() (stop func()) {
	ctx, cancel := context.WithCancel(x.Context())
	var g sync.WaitGroup
	last, looks := 0, 0
	g.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(300 * time.Millisecond) {
			last++
			x.revise(last%lifts, last)
		}
	})
	g.Go(func() {
		for ; ctx.Err() == nil; time.Sleep(30 * time.Millisecond) {
			if _, err := x.look(); err == nil {
				looks++
			}
		}
	})
	return func() {
		x.Helper()
		cancel()
		g.Wait()
		var want []string
		for i := range lifts {
			want = append(want, fmt.Sprintf("r%dx", last-i))
		}
		slices.Sort(want)
		for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
			seen, err := x.look()
			if err == nil && slices.Equal(seen, want) {
				break
			}
			if time.Now().After(end) {
				x.Fatalf("the last revisions %v are not in force: %v, %v\n%s", want, seen, err, x.workers[0].log())
			}
		}
		x.Logf("%d revisions written, %d looks at the index", last, looks)
	}
}

// look holds the index to what is true at every moment: it has each document
// once, and of those that change all of one revision. It returns the words that
// name the revisions in force. An error says that the server could not be asked.
func (x *stormy) look() (words []string, err error) {
	s, g, err := x.generation()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	found, err := g.Search(x.Context(), system.Grant(), retrieval.Query{Terms: analysis.Terms("lifttext"), Depth: 50})
	if err != nil {
		return nil, err
	}
	names, err := x.documents()
	if err != nil {
		return nil, err
	}
	if len(names) != len(stormDocuments)+lifts {
		x.Errorf("%v in the index, want %d documents", names, len(stormDocuments)+lifts)
	}
	revisions, chunks := map[retrieval.DocumentID]retrieval.Revision{}, map[retrieval.DocumentID]int{}
	var ids []retrieval.ChunkID
	for _, h := range found.Lexical {
		if r, ok := revisions[h.ID.Document]; ok && r != h.ID.Revision {
			x.Errorf("a search finds two revisions of %s", h.ID.Document)
		}
		revisions[h.ID.Document] = h.ID.Revision
		if chunks[h.ID.Document]++; chunks[h.ID.Document] == 3 {
			ids = append(ids, h.ID)
		}
	}
	if len(ids) != lifts || len(found.Lexical) != 3*lifts {
		x.Errorf("a search finds of the documents %v chunks, want 3 of each of %d", chunks, lifts)
	}
	texts, err := g.Passages(x.Context(), system.Grant(), ids)
	if err != nil || len(texts) != lifts {
		return nil, errors.Join(errors.New("no text: superseded meanwhile"), err)
	}
	for _, t := range texts {
		_, after, _ := strings.Cut(t.Chunk.Content, "lifttext ")
		word, _, _ := strings.Cut(after, " ")
		words = append(words, word)
	}
	slices.Sort(words)
	return words, nil
}

// documents are the paths of the documents in the index.
func (x *stormy) documents() (names []string, err error) {
	s, g, err := x.generation()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	list, err := g.Documents(x.Context(), system.Grant())
	for _, d := range list {
		names = append(names, d.Path)
	}
	return names, err
}

// generation is the one that is asked, read past the proxy.
func (x *stormy) generation() (*redisindex.Store, retrieval.Generation, error) {
	s, err := redisindex.Open(x.Context(), x.onRedis.link, redisindex.Options{})
	if err != nil {
		return nil, nil, err
	}
	g, err := s.Open(x.Context(), "")
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return s, g, nil
}
