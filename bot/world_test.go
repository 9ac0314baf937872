package bot

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"footnote/acl"
	"footnote/bot/generate"
	"footnote/models"
	"footnote/models/modelstest"
	"footnote/retrieval"
	"footnote/retrieval/analysis"
	"footnote/retrieval/memindex"
)

// doc is a document of a test: each paragraph is a chunk.
type doc struct {
	id, text string
	access   []string
}

// world is a bot over the embedded index and fake models, for which texts
// that share words are near.
type world struct {
	t   testing.TB
	gen retrieval.Generation
	bot *Bot
	// generated counts calls of the generator.
	generated *counting
}

// counting counts the calls of a generator.
type counting struct {
	generator
	calls int
}

func (c *counting) Generate(ctx context.Context, r generate.Request) (generate.Draft, error) {
	c.calls++
	return c.generator.Generate(ctx, r)
}

func newWorld(t testing.TB, docs ...doc) *world {
	t.Helper()
	store, err := memindex.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	e := modelstest.NewEmbedder()
	gen, err := store.Create(t.Context(), retrieval.Manifest{Embedder: e.Info()})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, gen: gen}
	for _, d := range docs {
		w.publish(d)
	}
	r := modelstest.NewReranker("en")
	g := generate.NewExtractive(e, r, generate.Options{Cuts: generate.Cuts{Reranked: .1, Embedded: .05, Unrelated: .2}})
	w.use(g, func(context.Context) (retrieval.Reader, error) { return gen, nil })
	return w
}

// use makes the bot anew with another generator or index.
func (w *world) use(g generator, current func(context.Context) (retrieval.Reader, error)) {
	w.t.Helper()
	s := newSearcher(modelstest.NewEmbedder(), modelstest.NewReranker("en"))
	w.generated = &counting{generator: g}
	b, err := New(Config{Current: current, Searcher: s, Generator: w.generated, Cuts: Cuts{Distance: .75, Probability: .2}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.bot = b
}

func newSearcher(e models.Embedder, r models.Reranker) *retrieval.Searcher {
	return retrieval.NewSearcher(e, r, analysis.Terms, analysis.Language, retrieval.Options{})
}

func (w *world) publish(d doc) {
	w.t.Helper()
	list, err := acl.ParseList(d.access)
	if err != nil {
		w.t.Fatal(err)
	}
	p := retrieval.Publication{
		Document: retrieval.Document{ID: retrieval.DocumentID(d.id), Revision: revision(d.text), Path: d.id + ".md", Title: strings.ToUpper(d.id), Canonical: d.text},
		Access:   list,
	}
	e := modelstest.NewEmbedder()
	at := 0
	for i, content := range strings.Split(d.text, "\n\n") {
		from := utf8.RuneCountInString(d.text[:at])
		c := retrieval.Chunk{
			ID:      retrieval.ChunkID{Document: p.Document.ID, Revision: p.Document.Revision, Ordinal: i},
			Section: []string{"Part"}, Content: content, Text: "[" + p.Document.Title + " > Part]\n" + content,
			Span: retrieval.Span{From: from, To: from + utf8.RuneCountInString(content), FromByte: at, ToByte: at + len(content), SourceFrom: at, SourceTo: at + len(content)},
		}
		v, err := e.EmbedPassages(w.t.Context(), []string{c.Text})
		if err != nil {
			w.t.Fatal(err)
		}
		p.Chunks = append(p.Chunks, retrieval.IndexedChunk{Chunk: c, Terms: analysis.Terms(c.Text), Vector: v[0].Vector})
		at += len(content) + 2
	}
	if err := w.gen.Publish(w.t.Context(), p); err != nil {
		w.t.Fatal(err)
	}
}

// revision stands for the hash of the source.
func revision(text string) retrieval.Revision {
	r := 0
	for _, c := range text {
		r = (r*31 + int(c)) % 1_000_003
	}
	return retrieval.Revision(strings.Repeat("r", 1+r%7) + string(rune('a'+r%26)))
}

func (w *world) ask(m Message) Reply {
	w.t.Helper()
	r, err := w.bot.Handle(w.t.Context(), m)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// says asks as a person in a direct message.
func (w *world) says(who acl.Identity, text string, history ...Turn) Reply {
	w.t.Helper()
	return w.ask(Message{Text: text, Asker: who, Audience: acl.AskerOnly(), History: history})
}

var (
	ada = acl.NewIdentity(acl.User("ada"), acl.Everyone, acl.Group("security"))
	ben = acl.NewIdentity(acl.User("ben"), acl.Everyone)
	eve = acl.NewIdentity(acl.User("eve")) // a guest
)

var everyone = []string{"everyone"}

// handbook is readable by everyone; the plan only by the group security.
var (
	handbook = doc{"handbook", "Employees get thirty vacation days each year. Interns get twenty vacation days each year.\n\nThe canteen opens at noon. Lunch costs nine euros.\n\nBadges are made in room 212 🙂. Bring your passport.", everyone}
	plan     = doc{"plan", "The master password of the vault rotates each Friday. Ask the security group.", []string{"security"}}
)
