package threads_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"footnote/adapters/slack/threads"
	"footnote/bot/outbox"
	"footnote/bot/shelf/shelftest"
)

// slack is a channel in pages of two messages.
type slack struct {
	mu       sync.Mutex
	all      []threads.Message // of all threads
	external bool
	fail     error // of History, once
	limited  int   // calls of History that are refused for their rate
	replies  int   // calls of Replies
}

func (s *slack) page(rows []threads.Message, cursor string) ([]threads.Message, string, error) {
	from := 0
	_, _ = fmt.Sscan(cursor, &from)
	if to := from + 2; to < len(rows) {
		return rows[from:to], fmt.Sprint(to), nil
	}
	return rows[from:], "", nil
}

func (s *slack) History(_ context.Context, _ string, oldest time.Time, cursor string) ([]threads.Message, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limited > 0 {
		s.limited--
		return nil, "", &outbox.Limited{After: 30 * time.Second}
	}
	if err := s.fail; err != nil {
		s.fail = nil
		return nil, "", err
	}
	var rows []threads.Message
	for _, m := range s.all {
		if m.Thread == "" && m.TS >= fmt.Sprintf("%d.000000", oldest.Unix()) {
			for _, r := range s.all {
				if r.Thread == m.TS {
					m.Replies, m.Latest = m.Replies+1, r.TS
				}
			}
			rows = append(rows, m)
		}
	}
	slices.Reverse(rows)
	return s.page(rows, cursor)
}

func (s *slack) Replies(_ context.Context, _, root, cursor string) ([]threads.Message, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cursor == "" {
		s.replies++
	}
	var rows []threads.Message
	for _, m := range s.all {
		if m.TS == root || m.Thread == root {
			rows = append(rows, m)
		}
	}
	if len(rows) == 0 {
		return nil, "", threads.ErrNoThread
	}
	return s.page(rows, cursor)
}

func (s *slack) Conversation(context.Context, string) (threads.Conversation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return threads.Conversation{Name: "help", External: s.external}, nil
}

func (s *slack) Name(_ context.Context, user string) string {
	return map[string]string{"U1": "Ada Lim", "U2": "Bob"}[user]
}

// change changes the channel.
func (s *slack) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// set replaces the text of a message, or drops it for "".
func (s *slack) set(ts, text string) {
	s.change(func() {
		i := slices.IndexFunc(s.all, func(m threads.Message) bool { return m.TS == ts })
		if text == "" {
			s.all = slices.Delete(s.all, i, i+1)
			return
		}
		s.all[i].Text, s.all[i].Edited = text, ts+"9"
	})
}

// at is a ts so many minutes after the beginning of a synctest bubble's time.
func at(minutes int) string {
	return fmt.Sprintf("%d.000100", time.Date(2000, 1, 1, 0, minutes, 0, 0, time.UTC).Unix())
}

func say(minute int, thread, user, text string) threads.Message {
	return threads.Message{TS: at(minute), Thread: thread, User: user, Text: text}
}

// begin follows the channel until the test ends.
func begin(t *testing.T, s *slack, k *shelftest.Keeper, change func(*threads.Options)) *threads.Follower {
	t.Helper()
	o := threads.Options{Team: "T1", Address: "https://home.slack.com/", Bot: "UBOT", Channel: "C1", Every: 10 * time.Minute}
	if change != nil {
		change(&o)
	}
	f := threads.New(s, k, o)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = f.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return f
}

// changed says that something is new in a thread, or, of "", in the channel.
func changed(t *testing.T, f *threads.Follower, root string) {
	t.Helper()
	if err := f.Changed(t.Context(), root); err != nil {
		t.Error(err)
	}
}

// texts are the documents by id.
func texts(k *shelftest.Keeper) map[string]string {
	out := map[string]string{}
	for _, d := range k.Kept("") {
		kept, _ := k.Get(d.ID)
		out[d.ID] = kept.Content
	}
	return out
}

func wants(t *testing.T, when string, k *shelftest.Keeper, want map[string]string) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, texts(k)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

func TestFollowing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(2 * time.Hour)
		s, k := &slack{limited: 1}, shelftest.New()
		s.all = []threads.Message{
			say(1, "", "U1", "The VPN *drops*, see <https://x.example/a?b=1&amp;c|the log>.\nEvery hour &lt;sic&gt;."),
			say(2, at(1), "U2", "<@U1> restart it, ask in <#C9|ops>"),
			{TS: at(3), Thread: at(1), User: "UBOT", Bot: true, Text: "An answer."},
			say(4, at(1), "U1", "<@UBOT> is that so?"),
			say(5, "", "U1", "<@UBOT> How many days of leave?"),
			{TS: at(6), Thread: at(5), User: "UBOT", Bot: true, Text: "Thirty."},
			{TS: at(7), User: "U2", Subtype: "channel_join", Text: "has joined"},
			{TS: at(8), User: "U2", Subtype: "file_share", Files: []string{"plan.pdf"}},
		}
		f := begin(t, s, k, nil)
		wants(t, "while the rate is limited", k, map[string]string{})
		time.Sleep(time.Minute)
		vpn := "Ada Lim, 1 Jan 2000 00:01:\nThe VPN *drops*, see the log (https://x.example/a?b=1&c).\nEvery hour <sic>.\n\nBob, 1 Jan 2000 00:02:\n@Ada Lim restart it, ask in #ops\n"
		plan := "Bob, 1 Jan 2000 00:08:\n[file: plan.pdf]\n"
		wants(t, "at the first scan", k, map[string]string{at(1): vpn, at(8): plan})
		d, _ := k.Get(at(1))
		if d.Title != "The VPN *drops*, see the log (https://x.example/a?b=1&c)." || d.Link != "https://home.slack.com/archives/C1/p"+strings.ReplaceAll(at(1), ".", "") || fmt.Sprint(d.Access) != "[slack:T1:channel/C1]" {
			t.Errorf("document: %+v", d.Document)
		}

		before, puts := s.replies, k.Puts()
		time.Sleep(time.Hour)
		if s.replies != before || k.Puts() != puts {
			t.Errorf("nothing had changed, and %d threads were read and %d put", s.replies-before, k.Puts()-puts)
		}
		s.change(func() { s.all = append(s.all, say(9, at(1), "U2", "Solved.")) })
		time.Sleep(11 * time.Minute)
		vpn += "\nBob, 1 Jan 2000 00:09:\nSolved.\n"
		wants(t, "a reply of which no event spoke", k, map[string]string{at(1): vpn, at(8): plan})
		s.set(at(9), "Solved by Cyd.")
		changed(t, f, at(1))
		time.Sleep(10 * time.Second)
		vpn = strings.Replace(vpn, "Solved.", "Solved by Cyd.", 1)
		wants(t, "an edited reply", k, map[string]string{at(1): vpn, at(8): plan})
		s.set(at(9), "")
		if err := f.Deleted(t.Context(), at(9), at(1)); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Second)
		vpn, _, _ = strings.Cut(vpn, "\nBob, 1 Jan 2000 00:09")
		wants(t, "a deleted reply", k, map[string]string{at(1): vpn, at(8): plan})
		s.set(at(8), "")
		if err := f.Deleted(t.Context(), at(8), ""); err != nil {
			t.Error(err)
		}
		if _, held := k.Get(at(8)); held {
			t.Error("a deleted message is held when Deleted returns")
		}
		s.set(at(1), "")
		time.Sleep(11 * time.Minute)
		wants(t, "a deleted first message whose replies are still there", k, map[string]string{})
	})
}

// shared is what two followers have in common; turn says whose it is to read.
type shared struct {
	*sync.Mutex

	noted map[string]string
	count *int
	turn  chan struct{} // closed when it is this one's
	end   context.CancelFunc
}

func (s *shared) Lead(ctx context.Context, work func(context.Context) error) error {
	select {
	case <-ctx.Done():
		return nil
	case <-s.turn:
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.Lock()
	s.end = cancel
	s.Unlock()
	return work(ctx)
}

func (s *shared) Note(_ context.Context, root string) error {
	s.Lock()
	defer s.Unlock()
	*s.count++
	s.noted[root] = fmt.Sprint(*s.count)
	return nil
}

func (s *shared) Noted(context.Context) (map[string]string, error) {
	s.Lock()
	defer s.Unlock()
	return maps.Clone(s.noted), nil
}

func (s *shared) Settle(_ context.Context, root, by string) error {
	s.Lock()
	defer s.Unlock()
	if s.noted[root] == by {
		delete(s.noted, root)
	}
	return nil
}

// Of several followers one reads, whichever hears; the next one goes on where it
// ended, with what was heard and not read.
func TestSeveralFollowers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(2 * time.Hour)
		api, k := &slack{}, shelftest.New()
		api.all = []threads.Message{say(1, "", "U1", "One."), say(2, at(1), "U2", "Reply.")}
		one := &shared{Mutex: new(sync.Mutex), noted: map[string]string{}, count: new(int), turn: make(chan struct{})}
		two := &shared{Mutex: one.Mutex, noted: one.noted, count: one.count, turn: make(chan struct{})}
		first := begin(t, api, k, func(o *threads.Options) { o.Share = one })
		second := begin(t, api, k, func(o *threads.Options) { o.Share = two })
		time.Sleep(time.Minute)
		wants(t, "while it is nobody's turn", k, map[string]string{})
		close(one.turn)
		time.Sleep(time.Minute)
		const ada, bob = "Ada Lim, 1 Jan 2000 00:01:\n", "Bob, 1 Jan 2000 00:02:\n"
		wants(t, "the first reads", k, map[string]string{at(1): ada + "One.\n\n" + bob + "Reply.\n"})

		api.set(at(2), "Edited.")
		changed(t, second, at(1))
		time.Sleep(10 * time.Second)
		wants(t, "the second heard of an edit", k, map[string]string{at(1): ada + "One.\n\n" + bob + "Edited.\n"})
		api.change(func() { api.all = append(api.all, say(3, "", "U1", "Three.")) })
		changed(t, second, "")
		time.Sleep(10 * time.Second)
		wants(t, "the second heard of a change of the channel", k, map[string]string{at(1): ada + "One.\n\n" + bob + "Edited.\n", at(3): "Ada Lim, 1 Jan 2000 00:03:\nThree.\n"})
		if len(one.noted) != 0 {
			t.Errorf("still noted: %v", one.noted)
		}

		one.Lock()
		one.end()
		one.Unlock()
		synctest.Wait()
		api.set(at(2), "Edited again.")
		changed(t, second, at(1))
		changed(t, first, at(3))
		time.Sleep(time.Minute)
		wants(t, "while nobody reads", k, map[string]string{at(1): ada + "One.\n\n" + bob + "Edited.\n", at(3): "Ada Lim, 1 Jan 2000 00:03:\nThree.\n"})
		close(two.turn)
		time.Sleep(time.Minute)
		wants(t, "the second reads", k, map[string]string{at(1): ada + "One.\n\n" + bob + "Edited again.\n", at(3): "Ada Lim, 1 Jan 2000 00:03:\nThree.\n"})
		if len(one.noted) != 0 {
			t.Errorf("still noted at last: %v", one.noted)
		}
	})
}

func TestTroubleOfAChannel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		s, k := &slack{all: []threads.Message{say(1, "", "U1", "One."), say(2, "", "U1", "Two."), say(3, "", "U1", "Three.")}}, shelftest.New()
		f := begin(t, s, k, nil)
		time.Sleep(time.Minute)
		if len(texts(k)) != 3 || f.Trouble() != "" {
			t.Fatalf("%v %q", texts(k), f.Trouble())
		}
		s.change(func() { s.fail = errors.New("the connection is gone") })
		changed(t, f, "")
		time.Sleep(time.Minute)
		if len(texts(k)) != 3 || f.Trouble() != "" {
			t.Errorf("after an error that passes: %v %q", texts(k), f.Trouble())
		}
		s.change(func() { s.fail = &threads.Lasting{Text: "the bot is not a member"} })
		changed(t, f, "")
		time.Sleep(time.Minute)
		if len(texts(k)) != 3 || f.Trouble() != "the bot is not a member" {
			t.Errorf("after an error that lasts: %v %q", texts(k), f.Trouble())
		}
		s.change(func() { s.external = true })
		changed(t, f, "")
		time.Sleep(time.Minute)
		if len(texts(k)) != 0 || !strings.Contains(f.Trouble(), "outside the organisation") {
			t.Errorf("where outsiders read: %v %q", texts(k), f.Trouble())
		}
		s.change(func() { s.all = append(s.all, say(4, "", "U1", "Four.")) })
		changed(t, f, at(4))
		time.Sleep(time.Minute)
		if len(texts(k)) != 0 {
			t.Errorf("an event where outsiders read: %v", texts(k))
		}
		s.change(func() { s.external = false })
		time.Sleep(11 * time.Minute)
		if len(texts(k)) != 4 || f.Trouble() != "" {
			t.Errorf("once they do not: %v %q", texts(k), f.Trouble())
		}
	})
}

func TestWhatIsTooOldGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		s, k := &slack{all: []threads.Message{say(1, "", "U1", "Old."), say(50, "", "U1", "New.")}}, shelftest.New()
		f := begin(t, s, k, func(o *threads.Options) { o.History = 2 * time.Hour })
		time.Sleep(time.Minute)
		if len(texts(k)) != 2 {
			t.Fatalf("%v", texts(k))
		}
		time.Sleep(80 * time.Minute)
		wants(t, "after two hours", k, map[string]string{at(50): "Ada Lim, 1 Jan 2000 00:50:\nNew.\n"})
		changed(t, f, at(1))
		time.Sleep(time.Minute)
		wants(t, "an event in an old thread", k, map[string]string{at(50): "Ada Lim, 1 Jan 2000 00:50:\nNew.\n"})
	})
}

func TestPlain(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a &lt;b&gt; &amp;amp;":                     "a <b> &amp;",
		"<!here> <!subteam^S1|@ops> <!subteam^S1>":  "@here @ops @subteam",
		"<https://a.example>":                       "https://a.example",
		"<mailto:a@b.example|a@b.example>":          "a@b.example",
		"<#C1> <#C1|ops>":                           "#C1 #ops",
		"<@U1|ada> and <@U9>":                       "@Ada and @",
		"a\r\n\r\n\n\n b \u202e\u0000c\n":           "a\n\n b c",
		"1 < 2 and <unclosed":                       "1 < 2 and <unclosed",
		"<!date^1^{date}|on 1 Jan>":                 "on 1 Jan",
		"\ucef4\u1111\u1172\u1110\u1165\u200b text": "컴퓨터 text",
	} {
		if got := threads.Plain(in, func(u string) string { return map[string]string{"U1": "Ada"}[u] }); got != want {
			t.Errorf("Plain(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzPlain(f *testing.F) {
	for _, s := range []string{"<@U1> <https://a|b> &amp;", "<<>>", "<!x^|>", "a\n\n\n\xffb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := threads.Plain(s, strings.ToLower)
		if strings.Contains(got, "\n\n\n") || got != strings.TrimSpace(got) {
			t.Errorf("%q", got)
		}
		for _, r := range got {
			if r != '\n' && r != '\u200d' && r != '\u200c' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
				t.Errorf("%q holds %U", got, r)
			}
		}
	})
}
