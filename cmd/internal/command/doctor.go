package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"footnote/adapters/console"
	"footnote/cmd/internal/assemble"
	"footnote/cmd/internal/config"
	"footnote/models"
	"footnote/models/catalog"
	"footnote/retrieval"
	documents "footnote/retrieval/catalog"
	"footnote/retrieval/ingest"
	"footnote/retrieval/ingest/follow"
	"footnote/retrieval/ingest/jobs"
	"footnote/retrieval/redislink"
)

// finding is the contract of doctor --json, one object for each check.
type finding struct {
	Check string `json:"check"`
	State string `json:"state"` // ok, warning or failure
	What  string `json:"what"`
	Do    string `json:"do,omitempty"`
}

// The states of a finding.
const (
	good    = "ok"
	warning = "warning"
	failure = "failure"
)

func (p *program) doctor() *cobra.Command {
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check configuration, models, platforms and index: what is wrong, and what to do",
		Args:  exactly(0, "nothing more"),
	}
	p.jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error { return p.runDoctor(cmd.Context()) }
	return c
}

func (p *program) runDoctor(ctx context.Context) error {
	cfg, err := p.config()
	findings := p.checkConfig(cfg, err)
	findings = append(findings, checkPeople(cfg)...)
	findings = append(findings, checkModels()...)
	findings = append(findings, checkRuntime(ctx, cfg)...)
	findings = append(findings, p.checkPlatforms(ctx, cfg)...)
	findings = append(findings, p.checkIntake(ctx, cfg)...)
	if cfg.Shared() && err == nil {
		findings = append(findings, checkRedis(ctx, cfg)...)
	}
	if cfg.Data != "" && (!cfg.Shared() || err == nil) {
		findings = append(findings, checkIndex(ctx, cfg)...)
	}
	bad := 0
	for _, f := range findings {
		if f.State == failure {
			bad++
		}
		if err := p.printFinding(f); err != nil {
			return err
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d check(s) failed", bad)
	}
	return nil
}

func (p *program) printFinding(f finding) error {
	if p.json {
		return writeJSON(p.Out, f)
	}
	text := fmt.Sprintf("%-8s %-14s %s\n", f.State, f.Check, indentLines(console.Safe(f.What)))
	if f.Do != "" {
		text += fmt.Sprintf("%-8s %-14s -> %s\n", "", "", console.Safe(f.Do))
	}
	return p.print("%s", text)
}

// indentLines sets later lines under the first one.
func indentLines(s string) string {
	return strings.ReplaceAll(s, "\n", "\n"+strings.Repeat(" ", 24))
}

func (p *program) checkConfig(c config.Config, err error) []finding {
	var out []finding
	from := "no file, defaults and environment"
	if c.File != "" {
		from = c.File
	}
	var problems *config.Problems
	switch {
	case errors.As(err, &problems):
		for _, x := range problems.All {
			out = append(out, finding{"configuration", failure, x.Where + ": " + x.What, "accepted: " + x.Accepts})
		}
	case err != nil:
		out = append(out, finding{"configuration", failure, err.Error(), ""})
	default:
		out = append(out, finding{"configuration", good, from, ""})
	}
	if names := config.Unknown(p.environ); len(names) > 0 {
		out = append(out, finding{"configuration", warning, "the environment sets what means nothing: " + strings.Join(names, ", "), "correct the names or remove them"})
	}
	return out
}

func checkPeople(c config.Config) []finding {
	file := c.PeopleFile()
	if _, err := assemble.People(file); err != nil {
		return []finding{{"people", failure, err.Error(), "correct the people file"}}
	}
	if file == "" {
		return []finding{{"people", good, "no people file: whoever runs footnote is taken at their word", ""}}
	}
	return []finding{{"people", good, file, ""}}
}

func checkModels() []finding {
	var out []finding
	for _, card := range catalog.Cards() {
		m := describe(card)
		if !m.Verified {
			out = append(out, finding{"models", failure, m.Problem, "build the program anew from a clean checkout"})
			continue
		}
		out = append(out, finding{"models", good, fmt.Sprintf("%s %s, checksums agree", m.Name, m.Precision), ""})
	}
	return out
}

// checkRuntime starts the runtime and runs both models once.
func checkRuntime(ctx context.Context, c config.Config) []finding {
	m, err := assemble.OpenModels(c)
	if err != nil {
		return []finding{{"runtime", failure, err.Error(), ""}}
	}
	defer func() { _ = m.Close() }() // nothing is written
	out := []finding{{"runtime", good, fmt.Sprintf("ONNX runtime %s, %d threads, %s", m.Runtime.Version(), m.Runtime.Threads(), m.Runtime.Library()), ""}}
	if err := probe(ctx, m); err != nil {
		return append(out, finding{"inference", failure, err.Error(), "the runtime does not compute right on this machine: use another build of it"})
	}
	return append(out, finding{"inference", good, "both models answer a probe", ""})
}

// probe asks both models something with a known outcome.
func probe(ctx context.Context, m *assemble.Models) error {
	q, err := m.Embedder.EmbedQuery(ctx, "How do I reset my password?")
	if err != nil {
		return err
	}
	ps, err := m.Embedder.EmbedPassages(ctx, []string{"To reset your password, open the account page.", "The cafeteria opens at nine."})
	if err != nil {
		return err
	}
	near, far := dot(q, ps[0]), dot(q, ps[1])
	if norm := math.Sqrt(dot(q, q)); math.Abs(norm-1) > 1e-3 {
		return fmt.Errorf("a vector has norm %.6f, not 1", norm)
	}
	if near <= far {
		return fmt.Errorf("a passage that answers is not nearer (%.4f) than one that does not (%.4f)", near, far)
	}
	scores, err := m.Reranker.Rerank(ctx, "How do I reset my password?", []string{"To reset your password, open the account page.", "The cafeteria opens at nine."})
	if err == nil && scores[0] <= scores[1] {
		err = fmt.Errorf("the reranker prefers a passage that does not answer (%.4f to %.4f)", scores[1], scores[0])
	}
	return err
}

func dot(a, b models.Embedding) float64 {
	var sum float64
	for i, x := range a.Vector {
		sum += float64(x) * float64(b.Vector[i])
	}
	return sum
}

func checkIndex(ctx context.Context, c config.Config) []finding {
	if _, err := os.Stat(c.Data); errors.Is(err, os.ErrNotExist) && !c.Shared() {
		return []finding{{"index", warning, "there is none yet in " + c.Data, "make one: footnote ingest FOLDER"}}
	}
	l, err := assemble.OpenLibrary(c)
	if errors.Is(err, retrieval.ErrInUse) {
		return append([]finding{{"index", good, "a running footnote holds " + c.Data + "; footnote docs verify checks it meanwhile", ""}}, checkSources(c, func() ([]follow.Status, error) { return follow.ReadStatus(c.Data) })...)
	}
	if errors.Is(err, retrieval.ErrUnavailable) {
		return []finding{{"index", failure, err.Error(), "see the check of redis"}}
	}
	if err != nil {
		return []finding{{"index", failure, err.Error(), ""}}
	}
	defer func() { _ = l.Close() }() // nothing is written
	return append(checkGeneration(ctx, l), append(checkDocuments(l.Catalog), append(checkCatalog(ctx, l), append(checkSources(c, func() ([]follow.Status, error) { return l.State().Sources(ctx) }), checkForsaken(c, l.Catalog)...)...)...)...)
}

// checkForsaken finds documents of sources that the configuration no longer
// names: nothing keeps them up to date, and nothing removes them.
func checkForsaken(c config.Config, cat *documents.Catalog) []finding {
	counts := map[string]int{}
	for _, r := range cat.List() {
		named := slices.ContainsFunc(c.Sources, func(s config.Source) bool { return s.Name == r.Source })
		if r.Source != "" && r.Serving != "" && filepath.IsAbs(r.Path) && !named {
			counts[r.Source]++
		}
	}
	var out []finding
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, finding{"sources", warning, fmt.Sprintf("%d document(s) are of %s, which the configuration no longer names: they stay as they are", counts[name], name), "name it again, or footnote docs rm ID…"})
	}
	return out
}

// checkRedis looks at the server, and says which replica keeps up with the
// sources.
func checkRedis(ctx context.Context, c config.Config) []finding {
	l, err := assemble.OpenLink(c, doctorPatience)
	if err != nil {
		return []finding{{"redis", failure, err.Error(), ""}}
	}
	defer func() { _ = l.Close() }() // nothing is written
	var out []finding
	for _, f := range l.Check(ctx, assemble.Prefix(c)) {
		state := good
		switch {
		case f.Bad:
			state = failure
		case f.Doubt:
			state = warning
		}
		out = append(out, finding{"redis", state, f.What, f.Do})
	}
	if who, err := l.Holder(ctx, assemble.SourcesKey(c)); err == nil && who != "" {
		out = append(out, finding{"sources", good, "kept up with by " + who, ""})
	}
	if slices.ContainsFunc(out, func(f finding) bool { return f.State == failure }) {
		return out // what is wrong would be said again
	}
	return append(out, checkJobs(ctx, l, assemble.Prefix(c))...)
}

// checkJobs says which documents wait for workers.
func checkJobs(ctx context.Context, l *redislink.Link, prefix string) []finding {
	all, err := jobs.Survey(ctx, l, prefix)
	if err != nil {
		return []finding{{"jobs", failure, err.Error(), ""}}
	}
	out := []finding{}
	for _, s := range all {
		out = append(out, jobFindings(s)...)
	}
	return out
}

// slowJob is how long a document may be on its way before that is odd.
const slowJob = time.Hour

func jobFindings(s jobs.Standing) []finding {
	var out []finding
	if s.Workers+s.Waiting+s.Taken+s.Ended == 0 {
		return nil // of long ago
	}
	// Workers of another version, or with other settings, have other jobs.
	what := fmt.Sprintf("recipe %s: %d worker(s), %d document(s) wait, %d are worked on, %d are done, %d of them failed", s.Recipe, s.Workers, s.Waiting, s.Taken, s.Ended, s.Failed)
	if s.Oldest > 0 {
		what += ", the oldest was sent " + s.Oldest.Round(time.Second).String() + " ago"
	}
	switch {
	case s.Workers == 0 && s.Waiting+s.Taken > 0:
		out = append(out, finding{"jobs", warning, what, "start footnote worker, of the version and with the settings of the process that sends them, or set ingest.workers there"})
	case s.Workers == 0:
		out = append(out, finding{"jobs", warning, what, "start footnote serve: it says in the catalog how they ended"})
	case s.Oldest > slowJob:
		out = append(out, finding{"jobs", warning, what, "start more workers: footnote worker"})
	default:
		out = append(out, finding{"jobs", good, what, ""})
	}
	if s.Again > 0 {
		out = append(out, finding{"jobs", warning, fmt.Sprintf("recipe %s: %d document(s) were tried before: workers ended while they worked on them", s.Recipe, s.Again), "see the workers' logs, and give them more memory"})
	}
	return out
}

const doctorPatience = 3 * time.Second

// checkSources says how the sources of the configuration stood at their last
// pass.
func checkSources(c config.Config, read func() ([]follow.Status, error)) []finding {
	wanted := c.Sources
	for _, ch := range c.Channels {
		wanted = append(slices.Clip(wanted), config.Source{Name: assemble.ChannelSource(ch.ID), Folder: assemble.ChannelSource(ch.ID)})
	}
	if len(wanted) == 0 {
		return nil
	}
	all, err := read()
	switch {
	case err != nil && c.Shared():
		return []finding{{"sources", failure, err.Error(), "see the check of redis"}}
	case err != nil:
		return []finding{{"sources", failure, err.Error(), "delete " + follow.StatusFile + ": the next sync writes it"}}
	}
	var out []finding
	for _, want := range wanted {
		i := slices.IndexFunc(all, func(s follow.Status) bool { return s.Source == want.Name && s.Root == want.Folder })
		if i < 0 || all[i].Scanned.IsZero() && all[i].Error == "" {
			out = append(out, finding{"sources", warning, want.Name + " was not taken in yet", "footnote sync, or footnote serve"})
			continue
		}
		out = append(out, checkSource(c, all[i]))
	}
	return out
}

func checkSource(c config.Config, s follow.Status) finding {
	switch {
	case s.Waits:
		return finding{"sources", failure, s.Source + ": " + s.Error, "see the check of redis"}
	case s.Error != "" && (!filepath.IsAbs(s.Root) || !strings.Contains(s.Error, s.Root)):
		return finding{"sources", failure, s.Source + ": " + s.Error, ""}
	case s.Error != "":
		return finding{"sources", failure, s.Source + ": " + s.Error, "bring the folder back, or take it out of the configuration"}
	case s.Held != nil:
		return finding{"sources", warning, heldText(c, s.Source, s.Root, *s.Held), ""}
	}
	return finding{"sources", good, fmt.Sprintf("%s was last passed over at %s", s.Source, s.Scanned.Local().Format(time.DateTime)), ""}
}

// checkCatalog compares the catalog with the index: a part of either may have
// been lost, or come back from a copy.
func checkCatalog(ctx context.Context, l *assemble.Library) []finding {
	g, err := l.Store.Open(ctx, "")
	if err != nil {
		return nil // checkGeneration told it
	}
	all, err := ingest.Compare(ctx, g, l.Catalog)
	switch {
	case err != nil:
		return []finding{{"documents", failure, err.Error(), ""}}
	case len(all) == 0:
		return nil
	}
	what := fmt.Sprintf("index and catalog differ in %d document(s); the first is %s: %s", len(all), all[0].Path, all[0].What)
	return []finding{{"documents", warning, what, "ingest their folders again: footnote ingest FOLDER"}}
}

func checkGeneration(ctx context.Context, l *assemble.Library) []finding {
	g, err := l.Store.Open(ctx, "")
	if errors.Is(err, retrieval.ErrNoIndex) {
		return []finding{{"index", warning, err.Error(), "make one: footnote ingest FOLDER"}}
	}
	if err != nil {
		return []finding{{"index", failure, err.Error(), "go back to another generation (footnote index list, index promote NAME), or build a new one: footnote ingest --rebuild FOLDER"}}
	}
	m, n := g.Manifest(), g.Counts()
	out := []finding{indexFinding(fmt.Sprintf("generation %s, %d documents, %d chunks", m.Name, n.Documents, n.Chunks), l.State().Evicted(ctx))}
	recipe, err := l.Recipe(ctx)
	if err != nil {
		out = append(out, finding{"index", failure, err.Error(), ""})
	} else if recipe.What() != "" {
		out = append(out, finding{"index", warning, recipe.What(), recipe.Do()})
	}
	card, err := catalog.Lookup(m.Embedder.Name)
	if weights, ok := card.File(catalog.Weights); err != nil || !ok || weights.SHA256 != m.Embedder.SHA256 || card.Name != catalog.DefaultEmbedder {
		out = append(out, finding{"index", failure, fmt.Sprintf("another model made it: %s %s", m.Embedder.Name, m.Embedder.Precision), "build a new one: footnote ingest FOLDER"})
	}
	return out
}

// indexFinding is about an index of which the server has thrown keys away, or none.
func indexFinding(what string, evicted int64) finding {
	if evicted == 0 {
		return finding{"index", good, what, ""}
	}
	return finding{"index", failure, fmt.Sprintf("%s by its own count; Redis has thrown %d keys away since, and these may be parts of it", what, evicted), "footnote index verify says what is missing; see the check of redis"}
}

func checkDocuments(c *documents.Catalog) []finding {
	counts := map[documents.State]int{}
	for _, r := range c.List() {
		counts[r.State]++
	}
	out := []finding{{"documents", good, fmt.Sprintf("%d published", counts[documents.Published]), ""}}
	if n := counts[documents.Refused]; n > 0 {
		out = append(out, finding{"documents", warning, fmt.Sprintf("%d refused: no usable access list", n), "see footnote docs list; add .access.yaml, or ingest with --access"})
	}
	if n := counts[documents.Failed]; n > 0 {
		out = append(out, finding{"documents", warning, fmt.Sprintf("%d failed", n), "see footnote docs list for the reasons"})
	}
	return out
}
