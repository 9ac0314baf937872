package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"footnote/cmd/internal/sandbox"
)

func (p *program) sandbox() *cobra.Command {
	c := &cobra.Command{
		Use:   "sandbox slack|discord",
		Short: "Try the bot in a make-believe Slack or Discord, without an account",
		Long: `sandbox starts a local Slack or Discord with four people and three channels,
takes in the documents of a made-up company, connects the bot to it, and prints
the address of a page on which you write as any of the four.

Nothing leaves this machine. Stop it with Ctrl-C; without --data nothing is left
behind.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(sandbox.Platforms, args[0]) {
				return usage(fmt.Errorf("footnote sandbox needs %s", strings.Join(sandbox.Platforms, " or ")))
			}
			return nil
		},
	}
	listen := c.Flags().String("listen", "127.0.0.1:0", "`HOST:PORT` of the page; port 0: a free one")
	c.RunE = func(cmd *cobra.Command, args []string) error { return p.runSandbox(cmd.Context(), args[0], *listen) }
	return c
}

func (p *program) runSandbox(ctx context.Context, platform, listen string) error {
	return sandbox.Run(ctx, sandbox.Options{
		Platform: platform, Listen: listen, Data: p.data, Environment: p.lookup, Log: p.logger, Say: p.saying(),
		Ready: func(url string) {
			_ = p.print("Open %s in a browser. Stop with Ctrl-C.\n", url) // the address is on the screen or nobody reads it
		},
	})
}
