package command

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// commit is set by the build: -ldflags "-X footnote/cmd/internal/command.commit=…".
var commit string

type versionJSON struct {
	Commit   string `json:"commit"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (p *program) version() *cobra.Command {
	c := &cobra.Command{Use: "version", Short: "Print the commit, the Go version and the platform", Args: exactly(0, "nothing more")}
	p.jsonFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		v := versionJSON{Commit: builtFrom(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
		if p.json {
			return writeJSON(p.Out, v)
		}
		return p.print("footnote %s, %s, %s\n", v.Commit, v.Go, v.Platform)
	}
	return c
}

// builtFrom is the commit that the program was built from. A build without
// make knows it only if Go stamped it.
func builtFrom() string {
	if commit != "" {
		return commit
	}
	info, _ := debug.ReadBuildInfo()
	if info != nil {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return "unknown"
}
