package assemble

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"footnote/acl"
	"footnote/adapters/discord"
	"footnote/adapters/slack"
	"footnote/bot"
	"footnote/bot/desk"
	"footnote/bot/ledger"
	"footnote/cmd/internal/config"
	"footnote/retrieval"
	"footnote/retrieval/catalog"
)

// Lookout is the chat platforms as an operator's commands see them: they can
// say who somebody is and whether they are set up. It answers no questions.
type Lookout struct {
	Slack   *slack.Adapter   // nil: not configured
	Discord *discord.Adapter // nil: not configured

	ledger *ledger.Ledger
	dir    string
}

// OpenLookout makes the adapters of the configured platforms without running
// them. It needs no data directory.
func OpenLookout(c config.Config, p config.Platforms) (*Lookout, error) {
	dir, err := os.MkdirTemp("", "footnote-")
	if err != nil {
		return nil, err
	}
	l := &Lookout{dir: dir}
	if err := l.open(c, p); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Lookout) open(c config.Config, p config.Platforms) (err error) {
	if l.ledger, err = ledger.Open(l.dir, ledger.Options{}); err != nil {
		return err
	}
	d, err := desk.New(desk.Options{Ledger: l.ledger})
	if err != nil {
		return err
	}
	quiet, idle := slog.New(slog.DiscardHandler), new(bot.Bot)
	if p.Slack != nil {
		if l.Slack, err = slack.New(slackConfig(c, *p.Slack), slack.Deps{Bot: idle, Desk: d, Ledger: l.ledger, Sources: channelsOf(c), Log: quiet}); err != nil {
			return err
		}
	}
	if p.Discord != nil {
		deps := discord.Deps{Handle: idle.Handle, Open: discord.Opening(idle), Ledger: l.ledger, Desk: d, Log: quiet}
		l.Discord, err = discord.New(discordConfig(c, *p.Discord), deps)
	}
	return err
}

// Directory knows the people and rooms of a platform, "slack" or "discord". It
// asks the platform now.
func (l *Lookout) Directory(ctx context.Context, platform string) (acl.Directory, error) {
	switch {
	case platform == slack.Platform && l.Slack != nil:
		return l.Slack.Directory(), nil
	case platform == discord.Platform && l.Discord != nil:
		if err := l.Discord.Load(ctx); err != nil {
			return nil, err
		}
		return l.Discord.Directory(), nil
	}
	return nil, fmt.Errorf("%s is not configured: set its tokens as for footnote serve", platform)
}

// Close removes what was needed for the time.
func (l *Lookout) Close() error {
	var err error
	if l.ledger != nil {
		err = l.ledger.Close()
	}
	return errors.Join(err, os.RemoveAll(l.dir))
}

// ReadCatalog opens the catalog as it is now, also while another process holds
// the data directory: it works on a copy, which release removes. ErrNoIndex if
// there is none.
func ReadCatalog(c config.Config) (read *catalog.Catalog, release func() error, err error) {
	if c.Shared() {
		l, err := OpenLibrary(c)
		if err != nil {
			return nil, nil, err
		}
		return l.Catalog, l.Close, nil
	}
	dir, err := copyOut(c.Data, catalog.File)
	if err != nil {
		return nil, nil, err
	}
	if read, err = catalog.Open(dir); err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return read, func() error { return errors.Join(read.Close(), os.RemoveAll(dir)) }, nil
}

// ReadLedger opens the ledger likewise, nil if there is none yet.
func ReadLedger(c config.Config) (read ledger.Store, release func() error, err error) {
	if c.Shared() {
		return readShared(c)
	}
	dir, err := copyOut(c.Data, ledger.File)
	if errors.Is(err, retrieval.ErrNoIndex) {
		return nil, func() error { return nil }, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if read, err = ledger.Open(dir, ledger.Options{}); err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return read, func() error { return errors.Join(read.Close(), os.RemoveAll(dir)) }, nil
}

func readShared(c config.Config) (read ledger.Store, release func() error, err error) {
	s, err := openState(c)
	if err != nil {
		return nil, nil, err
	}
	if read, err = s.Ledger(); err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return read, func() error { return errors.Join(read.Close(), s.Close()) }, nil
}

// copyOut copies a log of the data directory into a directory of its own. Logs
// only grow, or are replaced whole, so that a copy is the log as it was, but
// for a last record that is cut off and does not count.
func copyOut(data, name string) (dir string, err error) {
	from, err := os.Open(filepath.Join(data, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w in %s", retrieval.ErrNoIndex, data)
	}
	if err != nil {
		return "", err
	}
	defer from.Close()
	if dir, err = os.MkdirTemp("", "footnote-"); err != nil {
		return "", err
	}
	if err := fill(filepath.Join(dir, name), from); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

func fill(name string, from io.Reader) error {
	to, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}
