package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"footnote/cmd/internal/assemble"
	"footnote/cmd/internal/config"
	"footnote/retrieval"
)

// Streams are the three of a process.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// program is one run of the command line.
type program struct {
	Streams
	environ []string
	lookup  config.Lookup

	configFile string
	data       string
	redis      string
	json       bool

	served  *assemble.Service // set: this runs inside the server that holds the data directory
	request request           // whose command it is then
}

// Main runs one command line and returns its exit code. environ is KEY=value.
func Main(ctx context.Context, args []string, s Streams, environ []string) int {
	return (&program{Streams: s, environ: environ, lookup: lookupIn(environ)}).main(ctx, args)
}

func (p *program) main(ctx context.Context, args []string) int {
	root := p.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if p.served == nil && (errors.Is(err, retrieval.ErrInUse) || errors.Is(err, errServerOnly)) {
		if code, ok := p.forward(ctx, args); ok {
			return code
		}
	}
	if text := message(err); text != "" {
		_, _ = fmt.Fprintln(p.Err, text)
	}
	return code(err)
}

func lookupIn(environ []string) config.Lookup {
	m := make(map[string]string, len(environ))
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		m[name] = value
	}
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "footnote",
		Short: "Ask your own documents a question: a footnoted answer, or an honest refusal",
		Long: `footnote answers questions from your own documents. Every sentence carries a
numbered footnote with document, place and exact quote; where the documents do
not answer, it says so.

  footnote ingest ./docs --access everyone
  footnote ask "how do I rotate the API key?"
  footnote chat --as ada

Exit codes: 0 done or answered, 1 failure, 2 usage or configuration, 3 some
documents failed, 5 no index yet, 6 refused (ask).`,
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		Args:              cobra.ArbitraryArgs,
	}
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usage(fmt.Errorf("there is no command %q; see: footnote --help", args[0]))
		}
		return cmd.Help()
	}
	root.SetOut(p.Out)
	root.SetErr(p.Err)
	root.SetIn(p.In)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage(fmt.Errorf("%w; see: %s --help", err, cmd.CommandPath()))
	})
	root.PersistentFlags().StringVar(&p.configFile, "config", "", "configuration `FILE` (also FOOTNOTE_CONFIG)")
	root.PersistentFlags().StringVar(&p.data, "data", "", "`DIRECTORY` of the index (also FOOTNOTE_DATA)")
	root.PersistentFlags().StringVar(&p.redis, "redis", "", "`URL` of a Redis that holds the index for several processes (also FOOTNOTE_REDIS_URL)")
	root.AddCommand(p.ask(), p.search(), p.chat(), p.explain(), p.ingest(), p.sync(), p.docs(), p.index(), p.evaluation(),
		p.serve(), p.worker(), p.sandbox(), p.access(), p.deliveries(), p.sla(), p.doctor(), p.models(), p.version())
	return root
}

// jsonFlag adds --json to a command that prints results.
func (p *program) jsonFlag(c *cobra.Command) {
	c.Flags().BoolVar(&p.json, "json", false, "print the result as JSON, one object a line")
}

// group makes a command that holds others. Alone it does what first does.
func (p *program) group(use, short string, first *cobra.Command, others ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: cobra.ArbitraryArgs}
	p.jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usage(fmt.Errorf("%s has no command %q; see: %s --help", cmd.CommandPath(), args[0], cmd.CommandPath()))
		}
		first.SetContext(cmd.Context())
		return first.RunE(first, nil)
	}
	c.AddCommand(append(others, first)...)
	return c
}

// exactly wants n arguments and says which.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usage(fmt.Errorf("%s needs %s, got %d argument(s); see: %s --help", cmd.CommandPath(), what, len(args), cmd.CommandPath()))
		}
		return nil
	}
}

// some wants one argument or more and says which.
func some(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage(fmt.Errorf("%s needs %s", cmd.CommandPath(), what))
		}
		return nil
	}
}

// config loads the configuration that the flags and the environment name.
func (p *program) config() (config.Config, error) {
	if p.served != nil {
		return config.Load(config.Flags{File: p.request.Config, Data: p.request.Data, Redis: p.request.Redis}, p.lookup)
	}
	return config.Load(config.Flags{File: p.configFile, Data: p.data, Redis: p.redis}, p.lookup)
}

// logger writes to standard error as the configuration asks.
func (p *program) logger(c config.Config) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Log.Level)); err != nil {
		level = slog.LevelWarn
	}
	o := &slog.HandlerOptions{Level: level}
	if c.Log.Format == "json" {
		return slog.New(slog.NewJSONHandler(p.Err, o))
	}
	return slog.New(slog.NewTextHandler(p.Err, o))
}

// print writes text to standard output. The caller has made it safe.
func (p *program) print(format string, args ...any) error {
	_, err := fmt.Fprintf(p.Out, format, args...)
	return err
}

// terminal reports the width of w if it is a terminal.
func terminal(w any) (columns int, is bool) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns < 20 {
		columns = 80
	}
	return columns, true
}

// width is the columns that text is wrapped to: the terminal's, at most 100,
// and 80 elsewhere, so that output in files is the same everywhere.
func (p *program) width() int {
	columns, is := terminal(p.Out)
	if !is {
		return 80
	}
	return min(columns, 100)
}

// closing joins the error of a command with that of closing what it opened.
func closing(err *error, close func() error) {
	*err = errors.Join(*err, close())
}
