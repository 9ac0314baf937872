package command

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"footnote/adapters/console"
	"footnote/bot/ledger"
	"footnote/cmd/internal/assemble"
)

// deliveryJSON is the contract of deliveries --json. It holds no text.
type deliveryJSON struct {
	Key      string       `json:"key"`
	Platform string       `json:"platform"`
	Asker    string       `json:"asker"`
	Room     string       `json:"room"`
	Sent     string       `json:"sent"`
	Received string       `json:"received"`
	State    string       `json:"state"`
	Reason   string       `json:"reason"`
	Attempt  int          `json:"attempt"` // runs so far
	Copies   int          `json:"copies"`  // further deliveries of the same question
	Changes  []changeJSON `json:"changes"`
}

type changeJSON struct {
	State  string `json:"state"`
	At     string `json:"at"`
	Reason string `json:"reason"`
}

func (p *program) deliveries() *cobra.Command {
	c := &cobra.Command{
		Use:   "deliveries",
		Short: "List what became of the questions of the last seven days: states, times, reasons",
		Long: `deliveries answers "why did you not answer me?". It lists questions as they were
delivered, newest first: when, in which room, and how they ended. It holds no
texts. ACCOUNT is slack:T0123:user/U0123 or discord:SERVER:user/ID.

It may be run while footnote serve runs.`,
		Args: exactly(0, "nothing more"),
	}
	as := c.Flags().String("as", "", "only the questions of this `ACCOUNT`")
	limit := c.Flags().Int("limit", 50, "at most this `NUMBER`")
	p.jsonFlag(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error { return p.runDeliveries(cmd.Context(), *as, *limit) }
	return c
}

func (p *program) runDeliveries(ctx context.Context, as string, limit int) (err error) {
	asker, err := askerKey(as)
	if err != nil {
		return usage(err)
	}
	if limit < 1 {
		return usage(fmt.Errorf("--limit %d: it must be 1 or more", limit))
	}
	c, err := p.config()
	if err != nil {
		return err
	}
	l, release, err := assemble.ReadLedger(c)
	if err != nil {
		return err
	}
	defer closing(&err, release)
	var found []ledger.Delivery
	switch {
	case l == nil:
	case asker == "":
		found, err = l.Latest(ctx, math.MaxInt)
	default:
		found, err = l.Of(ctx, asker, math.MaxInt)
	}
	if err != nil {
		return err
	}
	found = questionsOnly(found)
	found = found[:min(limit, len(found))]
	for _, d := range found {
		if err := p.printDelivery(d); err != nil {
			return err
		}
	}
	if len(found) == 0 && !p.json {
		return p.print("No questions are on record.\n")
	}
	return nil
}

// questionsOnly leaves out what was noted only so that it is done once, such as
// the press of a button: that has no room.
func questionsOnly(ds []ledger.Delivery) []ledger.Delivery {
	return slices.DeleteFunc(ds, func(d ledger.Delivery) bool { return d.Room == "" })
}

var anAccount = regexp.MustCompile(`^(slack|discord):([^:|/]+):user/([^:|/]+)$`)

// askerKey is the account as the ledger names it, "" for everybody.
func askerKey(account string) (string, error) {
	if account == "" || strings.Count(account, "|") == 2 {
		return account, nil
	}
	m := anAccount.FindStringSubmatch(account)
	if m == nil {
		return "", fmt.Errorf("--as %q is no account: write slack:T0123:user/U0123 or discord:SERVER:user/ID", account)
	}
	return strings.Join(m[1:], "|"), nil
}

// principal is a key of the ledger as --as, --room and access lists take it.
func principal(key, kind string) string {
	parts := strings.Split(key, "|")
	if len(parts) != 3 {
		return key
	}
	return parts[0] + ":" + parts[1] + ":" + kind + "/" + parts[2]
}

func (p *program) printDelivery(d ledger.Delivery) error {
	j := deliveryJSON{
		Key: d.Key, Platform: d.Platform, Asker: d.Asker, Room: d.Room, Sent: moment(d.Sent), Received: moment(d.Received),
		State: string(d.State), Reason: d.Reason, Attempt: d.Attempt, Copies: d.Copies, Changes: []changeJSON{},
	}
	for _, c := range d.Changes {
		j.Changes = append(j.Changes, changeJSON{string(c.State), moment(c.At), c.Reason})
	}
	if p.json {
		return writeJSON(p.Out, j)
	}
	var steps []string
	for _, c := range d.Changes {
		steps = append(steps, fmt.Sprintf("%s +%.1fs", c.State, c.At.Sub(d.Received).Seconds()))
	}
	return p.print("%s  %-9s %-16s asker %s  room %s  %s\n", j.Received, j.State, orNone(console.Line(j.Reason)), console.Line(principal(j.Asker, "user")), console.Line(principal(j.Room, "channel")), strings.Join(steps, ", "))
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
