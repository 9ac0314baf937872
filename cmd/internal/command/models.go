package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"footnote/adapters/console"
	"footnote/cmd/internal/assemble"
	"footnote/models/assets"
	"footnote/models/catalog"
)

func (p *program) models() *cobra.Command {
	return p.group("models", "List the models and compare them with an independent stack", p.modelsList(), p.modelsParity())
}

type modelJSON struct {
	Name       string   `json:"name"`
	Kind       string   `json:"kind"`
	Precision  string   `json:"precision"`
	Window     int      `json:"window"`
	Dimensions int      `json:"dimensions,omitempty"`
	Languages  []string `json:"languages"`
	Licence    string   `json:"licence"`
	Bytes      int64    `json:"bytes"`
	Verified   bool     `json:"verified"`
	Problem    string   `json:"problem,omitempty"`
}

func (p *program) modelsList() *cobra.Command {
	c := &cobra.Command{Use: "list", Short: "List the shipped models and verify their checksums", Args: exactly(0, "nothing more")}
	p.jsonFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		bad := 0
		for _, card := range catalog.Cards() {
			m := describe(card)
			if !m.Verified {
				bad++
			}
			if err := p.printModel(m); err != nil {
				return err
			}
		}
		if bad > 0 {
			return fmt.Errorf("%d model(s) are damaged: build the program anew from a clean checkout", bad)
		}
		return nil
	}
	return c
}

// describe reads a shipped model's card and verifies its files.
func describe(card catalog.Card) modelJSON {
	m := modelJSON{
		Name: card.Name, Kind: string(card.Kind), Precision: card.Precision, Window: card.Window,
		Dimensions: card.Dimensions, Languages: card.Languages, Licence: card.Licence,
	}
	for _, f := range card.Files {
		m.Bytes += f.Bytes
	}
	files, err := assets.Model(card.Name)
	if err == nil {
		err = card.Verify(files)
	}
	if err != nil {
		m.Problem = err.Error()
	}
	m.Verified = err == nil
	return m
}

func (p *program) printModel(m modelJSON) error {
	if p.json {
		return writeJSON(p.Out, m)
	}
	state := "checksums agree"
	if !m.Verified {
		state = console.Line(m.Problem)
	}
	return p.print("%-32s %-9s %-5s window %d, %s, %s, %.1f MB: %s\n",
		m.Name, m.Kind, m.Precision, m.Window, strings.Join(m.Languages, " "), m.Licence, float64(m.Bytes)/1e6, state)
}

type parityJSON struct {
	Text      string  `json:"text"`
	As        string  `json:"as"` // query or passage
	Cosine    float64 `json:"cosine"`
	Truncated bool    `json:"truncated"`
}

func (p *program) modelsParity() *cobra.Command {
	c := &cobra.Command{
		Use:   "parity [FILE]",
		Short: "Compare the embedder with vectors of an independent stack",
		Long: `parity embeds the sentences of FILE and prints the cosine to the vector that
another stack made of each. Below 0.999 the embedder is not the model that its
card describes, and the command fails; sentences over the window are shown only.

FILE is JSON: {"sentences": [{"text": …, "query": [numbers], "passage": [numbers]}]};
without one, the 20 sentences of the source tree are used, found from the
working directory upward.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(errors.New("footnote models parity takes one FILE"))
			}
			return nil
		},
	}
	p.jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return p.parity(cmd.Context(), args[0])
		}
		file, err := parityFile()
		if err != nil {
			return err
		}
		return p.parity(cmd.Context(), file)
	}
	return c
}

// parityFile finds the sentences of the source tree.
func parityFile() (string, error) {
	const name = "models/onnx/testdata/parity.json"
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
		if dir == filepath.Dir(dir) {
			return "", usage(fmt.Errorf("%s lies neither here nor above: give a FILE of sentences with their vectors", name))
		}
		dir = filepath.Dir(dir)
	}
}

func (p *program) parity(ctx context.Context, file string) (err error) {
	cfg, err := p.config()
	if err != nil {
		return err
	}
	m, err := assemble.OpenModels(cfg)
	if err != nil {
		return err
	}
	defer closing(&err, m.Close)
	results, err := catalog.Parity(ctx, m.Embedder, file)
	if err != nil {
		return err
	}
	below := 0
	for _, r := range results {
		if r.Cosine < catalog.MinParity && !r.Truncated {
			below++
		}
		if err := p.printParity(r); err != nil {
			return err
		}
	}
	if below > 0 {
		return fmt.Errorf("%d of %d cosines are below %g: this is not the model that its card describes", below, len(results), catalog.MinParity)
	}
	return nil
}

func (p *program) printParity(r catalog.ParityResult) error {
	as := "query"
	if r.Passage {
		as = "passage"
	}
	if p.json {
		return writeJSON(p.Out, parityJSON{r.Text, as, r.Cosine, r.Truncated})
	}
	note := ""
	if r.Truncated {
		note = "  (over the window)"
	}
	return p.print("%.6f  %-7s  %s%s\n", r.Cosine, as, shorten(console.Line(r.Text), 60), note)
}

// shorten cuts text to n characters with an ellipsis.
func shorten(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
