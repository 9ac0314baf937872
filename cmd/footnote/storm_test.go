package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"footnote/adapters/discord/discordtest"
	"footnote/adapters/slack/slacktest"
	"footnote/bot"
	"footnote/bot/ledger"
	"footnote/bot/ledger/redisledger"
	"footnote/retrieval/redisindex/redistest"
)

// Words of the documents that no question holds: who sees one has seen the
// document. The second is for the security group and the staff alone.
const (
	marzipan  = "marzipan"
	cobaltine = "cobaltine"
)

// stormLease is for how long a replica holds a question without a sign of life.
const stormLease = 5 * time.Second

var stormDocuments = map[string]string{
	"oven.md":         "# Oven\n\nThe oven of the canteen is cleaned with marzipan soap each Friday.\n",
	"bike.md":         "# Bicycles\n\nBicycles are lent out at the marzipan gate until six o'clock.\n",
	"closed/vault.md": "# Vault\n\nThe vault opens with the cobaltine key on the second floor.\n",
}

var stormQuestions = []string{"When is the oven of the canteen cleaned?", "Where are bicycles lent out?", "With which key does the vault open?"}

// stormy is two replicas of the program and three workers on one Redis, for Slack
// and Discord at once, and what people asked.
type stormy struct {
	*testing.T
	random  *rand.Rand
	server  *redistest.Server
	onRedis *onRedis
	docs    string

	slack   *slacktest.Server
	discord *discordtest.Server
	people  []string            // of Slack
	rooms   map[string][]string // of Slack: who may write there
	users   []string            // of Discord
	places  []string            // of Discord
	hall    string              // that everybody on Discord sees

	files    [2]string
	replicas [2]*served
	workers  [3]*served
	asked    []slacktest.Message
	commands []onDiscord
	kills    int
	freezes  int
	thaw     func() // lets a stopped replica go on
	logs     []string
}

// onDiscord is a question on Discord.
type onDiscord struct {
	*discordtest.Interaction
	user, room, text string
}

// TestStorm: two replicas and three workers on one Redis, on Slack and Discord at
// once, with three in ten questions delivered more than once, all out of order, a
// tenth of the calls failing, documents that change all the time, and kill -9 of
// each replica twice, of a worker, and of Redis twice; a replica is stopped for
// longer than its lease besides, and goes on. Each question gets one answer, or,
// while Redis is down, one word that there is none; nobody sees what they may not
// read; each document is there once and whole at every moment.
//
// That is 82 questions and 7 kills. FOOTNOTE_STORM=full makes it 2,000 of 100
// people in 40 rooms, with four times as many kills.
func TestStorm(t *testing.T) {
	questions, rounds := 40, 1
	switch {
	case wholeStorm():
		questions, rounds = 2000, 4
	case testing.Short():
		t.Skip("it takes half a minute")
	}
	x := newStormy(t)
	stop := x.edit()
	x.rage()
	begun := time.Now()
	var blows []func()
	for i := range rounds {
		blows = append(blows, x.killReplica(0), x.killWorker(i%len(x.workers)), x.killReplica(1), x.killRedis, x.freezeReplica(i%2), x.killReplica(0), x.killReplica(1), x.killRedis)
	}
	for i := range questions {
		x.ask()
		x.pace(12)
		if every := questions / len(blows); i%every == every-1 && i/every < len(blows) {
			x.thaw()
			blows[i/every]()
		}
	}
	x.thaw()
	x.settle()
	stop()
	x.judge(time.Since(begun))
}

func wholeStorm() bool { return slices.Contains([]string{"full", "2000"}, os.Getenv("FOOTNOTE_STORM")) }

func newStormy(t *testing.T) *stormy {
	t.Helper()
	x := &stormy{T: t, random: rand.New(rand.NewPCG(6, 3)), docs: filepath.Join(t.TempDir(), "docs"), rooms: map[string][]string{}, thaw: func() {}}
	x.newSlack()
	access := x.newDiscord()
	for name, text := range stormDocuments {
		write(t, filepath.Join(x.docs, name), text)
	}
	write(t, filepath.Join(x.docs, ".access.yaml"), "access: [everyone]\n")
	write(t, filepath.Join(x.docs, "closed", ".access.yaml"), "access: ['slack:T0HOME:usergroup/S0SECURITY', '"+access+"']\n")
	for i := range lifts {
		x.revise(i, 0)
	}

	x.server = redistest.New(t, t.TempDir())
	x.onRedis = &onRedis{T: t, server: x.server, proxy: redistest.NewProxy(t, x.server.Address)}
	x.onRedis.connect()
	for i := range x.files {
		x.files[i] = x.onRedis.configuration(fmt.Sprintf("slack: {mode: socket, api_url: '%s'}\ndiscord: {api_url: '%s'}\nsources: [{folder: '%s'}]\n"+
			"serve: {per_asker: 1000, per_room: 1000, lease: %d}\nchunk: {tokens: 50}\nsync: {interval: 2}\ningest: {workers: 0}\n", x.slack.APIURL(), x.discord.URL(), x.docs, stormLease/time.Second))
		x.replicas[i] = x.serve(i)
	}
	for i := range x.workers {
		x.workers[i] = x.work()
	}
	for _, p := range x.replicas {
		p.ready(200)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if names, err := x.documents(); len(names) == len(stormDocuments)+lifts {
			return x
		} else if time.Now().After(end) {
			t.Fatalf("the index holds %v, %v:\n%s", names, err, x.replicas[0].log())
		}
	}
}

// newSlack is 50 people, ten of the security group and three guests, in 20
// rooms.
func (x *stormy) newSlack() {
	w := slacktest.NewWorld()
	for i := range 50 {
		x.people = append(x.people, w.Add(slacktest.User{ID: fmt.Sprintf("U0P%02d", i), Name: fmt.Sprintf("p%d", i), Guest: i >= 47}))
	}
	w.AddGroup("security", x.people[:10]...)
	for i := range 20 {
		var in []string
		for _, p := range x.people[:47] {
			if i%3 == 0 || x.random.IntN(3) == 0 {
				in = append(in, p)
			}
		}
		name := fmt.Sprintf("r%d", i)
		switch {
		case i < 12:
			in = append(in, x.people[47+i%3])
			x.rooms[w.Public(name, in...)] = in
		case i < 15:
			x.rooms[w.Private(name, x.people[:10]...)] = x.people[:10]
		default:
			x.rooms[w.Private(name, in...)] = in
		}
	}
	w.App.Scopes = append([]string{"channels:history", "groups:history"}, slacktest.DefaultScopes...)
	mayRead := func(user string, m slacktest.Message) bool {
		i, said := slices.Index(x.people, user), m.Text+string(m.Blocks)
		return i < 0 || (i < 10 || !strings.Contains(said, cobaltine)) && (i < 47 || !strings.Contains(said, marzipan))
	}
	retries := []time.Duration{0, 5 * time.Second, 20 * time.Second} // else it may take minutes
	if wholeStorm() {
		retries = []time.Duration{0, time.Minute, 5 * time.Minute} // Slack's
	}
	x.slack = slacktest.New(x.T, w, slacktest.WithSeed(6), slacktest.WithRetries(retries...), slacktest.WithRules(slacktest.Rules{CanRead: mayRead, Lost: true, AckWithin: patience}))
}

// patience is for an acknowledgement: a replica that is stopped acknowledges
// nothing, and on a busy machine times say nothing.
const patience = time.Minute

// newDiscord is 50 people, half of them staff, in 20 rooms of which a third is
// the staff's. It returns the staff as a principal.
func (x *stormy) newDiscord() string {
	w := discordtest.NewWorld()
	owner := w.AddUser(discordtest.User{Name: "owner"})
	guild := w.AddGuild(discordtest.Guild{Name: "home", Owner: owner})
	staff := w.AddRole(guild, discordtest.Role{Name: "staff"})
	w.AddMember(guild, owner)
	reads := map[string]bool{owner: true}
	for i := range 50 {
		u := w.AddUser(discordtest.User{Name: fmt.Sprintf("p%d", i)})
		x.users = append(x.users, u)
		if i%2 == 0 {
			reads[u] = true
			w.AddMember(guild, u, staff)
		} else {
			w.AddMember(guild, u)
		}
	}
	for i := range 20 {
		c := discordtest.Channel{GuildID: guild, Name: fmt.Sprintf("r%d", i), Type: discordtest.Text}
		if i%3 == 1 {
			c.Overwrites = []discordtest.Overwrite{{ID: guild, Deny: discordtest.ViewChannel}, {ID: staff, Allow: discordtest.ViewChannel}, {ID: w.App.BotUser, Member: true, Allow: discordtest.ViewChannel}}
		}
		x.places = append(x.places, w.AddChannel(c))
	}
	x.hall = x.places[0]
	mayRead := func(user string, m discordtest.Message) bool {
		return reads[user] || !strings.Contains(m.Content+string(m.Components)+string(m.Embeds), cobaltine)
	}
	x.discord = discordtest.New(x.T, w, discordtest.WithSeed(6), discordtest.WithRules(discordtest.Rules{
		Explicit: true, CanRead: mayRead, DeadTokenCalls: 8, Claimed: func(string) bool { return true }, Lost: true, AckWithin: patience,
	}))
	return "discord:" + guild + ":role/" + staff
}

// serve starts a replica and waits until both platforms hear it.
func (x *stormy) serve(i int) *served {
	x.Helper()
	p := start(x.T, x.files[i], append(slackEnv(x.slack), "FOOTNOTE_DISCORD_TOKEN="+x.discord.App().Token)...)
	p.line("Slack: connected by ")
	p.line("Discord: connected by ")
	return p
}

// rage makes deliveries come twice and late, and a tenth of the calls fail.
func (x *stormy) rage() {
	x.slack.SetScatter(func(r *rand.Rand, d slacktest.Delivery) slacktest.Delivery {
		switch r.IntN(10) {
		case 0:
			d.Copies = 1
		case 1:
			d.NewIDs, d.CopyDelay = 1, time.Duration(r.IntN(200))*time.Millisecond
		case 2:
			d.Both, d.MessageFirst, d.PairGap = true, r.IntN(2) == 0, time.Duration(r.IntN(100))*time.Millisecond
		}
		d.Delay = time.Duration(r.IntN(60)) * time.Millisecond
		return d
	})
	for _, f := range []slacktest.Fault{{Status: 500}, {ResetBefore: true}, {ResetAfter: true}, {EmptyError: true}, {Status: 429, RetryAfter: "1"}} {
		f.Chance = .02
		x.slack.AddFault(f)
	}
	for _, f := range []discordtest.Fault{{Status: 500}, {ResetBefore: true}, {ResetAfter: true}, {Malformed: true}, {Status: 429, RetryAfter: 0.05}} {
		f.Chance = .02
		x.discord.AddFault(f)
	}
}

// ask asks on one of the platforms.
func (x *stormy) ask() {
	text := stormQuestions[x.random.IntN(len(stormQuestions))]
	if (len(x.asked)+len(x.commands))%2 == 0 {
		if x.random.IntN(5) == 0 {
			x.asked = append(x.asked, x.slack.DM(x.people[x.random.IntN(len(x.people))], text))
			return
		}
		rooms := make([]string, 0, len(x.rooms))
		for r := range x.rooms {
			rooms = append(rooms, r)
		}
		slices.Sort(rooms)
		room := rooms[x.random.IntN(len(rooms))]
		x.asked = append(x.asked, x.slack.Mention(x.rooms[room][x.random.IntN(len(x.rooms[room]))], room, text))
		return
	}
	user, room := x.users[x.random.IntN(len(x.users))], x.places[x.random.IntN(len(x.places))]
	if !x.discord.CanView(user, room) {
		room = x.hall
	}
	d := discordtest.Delivery{Delay: time.Duration(x.random.IntN(20)) * time.Millisecond}
	if x.random.IntN(10) < 3 {
		d.Copies, d.CopyDelay = 1+x.random.IntN(2), time.Duration(x.random.IntN(30))*time.Millisecond
	}
	text = fmt.Sprintf("%s %d", text, len(x.commands)) // nothing that a quotation escapes: discordWords looks for it
	i := x.discord.Command(user, room, "ask", map[string]any{"question": text, "private": x.random.IntN(4) == 0}, d)
	x.commands = append(x.commands, onDiscord{i, user, room, text})
}

// pace waits until no more than so many questions are without a word.
func (x *stormy) pace(most int) {
	x.Helper()
	for end := time.Now().Add(3 * time.Minute); x.open() > most; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			x.report()
			x.Fatalf("%d questions got no word", x.open())
		}
	}
}

// killReplica kills a replica with questions in its hands, and starts it again
// while people go on asking.
func (x *stormy) killReplica(i int) func() {
	return func() {
		x.Helper()
		for range 4 {
			x.ask()
		}
		time.Sleep(time.Duration(x.random.IntN(300)) * time.Millisecond)
		x.kills++
		_ = x.replicas[i].stop(syscall.SIGKILL)
		x.logs = append(x.logs, x.replicas[i].log())
		for range 2 {
			x.ask()
		}
		x.replicas[i] = x.serve(i)
	}
}

// work starts a worker.
func (x *stormy) work() *served {
	p := &served{t: x.T, cmd: program(x.T, "", "worker", "--config", x.onRedis.configuration("chunk: {tokens: 50}\n")), said: make(chan struct{}), ended: make(chan error, 1)}
	p.begin()
	return p
}

// freezeReplica stops a replica for longer than its lease, with questions in its
// hands, and has it go on before the next blow: it must find that they are
// another's.
func (x *stormy) freezeReplica(i int) func() {
	return func() {
		x.Helper()
		for range 4 {
			x.ask()
		}
		time.Sleep(time.Duration(x.random.IntN(300)) * time.Millisecond)
		x.freezes++
		until := time.Now().Add(stormLease + 2*time.Second) // the other one has taken them over
		p := x.replicas[i].cmd.Process
		if err := p.Signal(syscall.SIGSTOP); err != nil {
			x.Fatal(err)
		}
		for range 2 {
			x.ask()
		}
		x.thaw = func() {
			x.thaw = func() {}
			time.Sleep(time.Until(until))
			if err := p.Signal(syscall.SIGCONT); err != nil {
				x.Fatal(err)
			}
		}
	}
}

// killWorker kills a worker in the middle of whatever it does, and starts
// another.
func (x *stormy) killWorker(i int) func() {
	return func() {
		x.Helper()
		x.kills++
		_ = x.workers[i].stop(syscall.SIGKILL)
		x.logs = append(x.logs, x.workers[i].log())
		x.workers[i] = x.work()
	}
}

// killRedis kills the server, and starts it again over what it has on disk.
func (x *stormy) killRedis() {
	x.Helper()
	for range 4 {
		x.ask()
	}
	time.Sleep(time.Duration(x.random.IntN(300)) * time.Millisecond)
	x.kills++
	x.server.Kill()
	for range 2 {
		x.ask()
	}
	time.Sleep(time.Second)
	x.server.Restart(x.T)
	for _, p := range x.replicas {
		p.ready(200)
	}
}

// isWord reports that a text tells somebody that there is no answer: that search is
// away, that it took too long, that documents change, or that an answer may be
// there.
func isWord(text string) bool {
	return strings.Contains(text, bot.UnavailableText) || strings.Contains(text, "ask again")
}

// slackWords counts the answers in a question's thread, and the words that
// there is no search.
func (x *stormy) slackWords(q slacktest.Message) (answers, told int) {
	for _, m := range x.slack.Thread(q.Channel, q.TS) {
		switch {
		case m.AppID == "":
		case slacktest.HasButtons(m):
			answers++
		case isWord(m.Text):
			told++
		}
	}
	return answers, told
}

// slackTold counts how often a person was told beside all threads: under a
// first message Slack shows no note to one person.
func (x *stormy) slackTold(user string) (n int) {
	for _, m := range append(x.slack.FromBot(x.slack.DMChannel(user)), x.slack.Ephemerals(user)...) {
		if m.ThreadTS == "" && isWord(m.Text) {
			n++
		}
	}
	return n
}

// discordWords counts the answers to a command, and the words that there is no
// search: in its response, or, where that could not be used, by a message.
func (x *stormy) discordWords(q onDiscord) (answers, told int) {
	count := func(m discordtest.Message) {
		switch {
		case m.Thinking:
		case discordtest.HasButtons(m):
			answers++
		case isWord(m.Content):
			told++
		}
	}
	if m, ok := q.Response(); ok {
		count(m)
	}
	for _, where := range []string{q.room, x.discord.DMChannel(q.user)} {
		for _, m := range x.discord.FromBot(where) {
			if strings.HasPrefix(m.Content, "> "+q.text+"\n") {
				count(m)
			}
		}
	}
	return answers, told
}

// tally is what became of the questions.
type tally struct {
	once, doubled    int // answered
	told, lost, more int // told once; got no word; told although answered, or twice
	late             int // told by Discord that the bot did not respond
}

func (x *stormy) tally() (t tally) {
	open := map[string]int{}
	for _, q := range x.asked {
		if n, told := x.slackWords(q); n+told == 0 {
			open[q.User]++
		} else {
			t.add(n, told)
		}
	}
	for _, p := range x.people {
		told := x.slackTold(p)
		t.told += min(told, open[p])
		t.lost += max(0, open[p]-told)
		t.more += max(0, told-open[p])
	}
	for _, q := range x.commands {
		if answers, told := x.discordWords(q); answers+told > 0 || !x.late(q) {
			t.add(answers, told)
		} else {
			t.late++
		}
	}
	return t
}

// late reports that the first response to a command came when Discord had told
// its person already that there was none, and that this ended it.
func (x *stormy) late(q onDiscord) bool {
	if _, acked := q.Acked(); acked {
		return false
	}
	d, err := x.ledger().Delivery(x.Context(), "discord|"+x.discord.App().ID+"|"+q.ID)
	return err == nil && d.Reason == "too_late"
}

// add counts a question.
func (t *tally) add(answers, told int) {
	switch {
	case answers+told == 0:
		t.lost++
	case answers > 1:
		t.doubled++
	case answers == 1:
		t.once++
		t.more += told
	default:
		t.told++
		t.more += told - 1
	}
}

func (x *stormy) open() int { return x.tally().lost }

// settle waits until every question has its word and nothing is under way.
func (x *stormy) settle() {
	x.Helper()
	x.pace(0)
	l := x.ledger()
	for end := time.Now().Add(3 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		pending, err := l.Pending(x.Context(), 10)
		if err == nil && len(pending) == 0 && x.slack.Unsettled() == 0 {
			break
		}
		if time.Now().After(end) {
			x.Fatalf("still under way: %+v, %v, %d deliveries", pending, err, x.slack.Unsettled())
		}
	}
	for _, q := range x.commands {
		if _, ok := q.Acked(); ok {
			q.Wait()
		}
	}
}

func (x *stormy) ledger() *redisledger.Ledger {
	return redisledger.Open(x.onRedis.link, redisledger.Options{})
}

// report shows the questions that have no word, or more than one.
func (x *stormy) report() {
	x.Helper()
	l := x.ledger()
	show := func(key, what string) {
		d, err := l.Delivery(context.Background(), key)
		x.Logf("%s: %s %s, attempt %d, %+v, %v", what, d.State, d.Reason, d.Attempt, d.Changes, err)
	}
	for _, q := range x.asked {
		if n, told := x.slackWords(q); n+told != 1 {
			show("slack|T0HOME|"+q.Channel+"|"+q.TS+"|answer", fmt.Sprintf("%d answers to %s of %s in %s, told %d times there, %d elsewhere", n, q.TS, q.User, q.Channel, told, x.slackTold(q.User)))
		}
	}
	for _, q := range x.commands {
		if n, told := x.discordWords(q); n+told != 1 {
			m, _ := q.Response()
			_, acked := q.Acked()
			show("discord|"+x.discord.App().ID+"|"+q.ID, fmt.Sprintf("%d answers to %q in %s, told %d times, acknowledged %v, response %q", n, q.text, q.room, told, acked, m.Content))
		}
	}
}

// judge holds the outcome to the promises and prints the figures.
func (x *stormy) judge(took time.Duration) {
	x.Helper()
	t := x.tally()
	leaked := 0
	for _, broken := range append(x.slack.CheckInvariants(), x.discord.CheckInvariants()...) {
		if strings.Contains(broken, "may not read") {
			leaked++
		}
		x.Error(broken)
	}
	if t.doubled+t.lost+t.more > 0 {
		x.report()
	}
	if t.doubled+t.lost > 0 {
		x.Errorf("%d questions answered more than once, %d without a word", t.doubled, t.lost)
	}
	for _, p := range slices.Concat(x.replicas[:], x.workers[:]) {
		if err := p.stop(syscall.SIGTERM); err != nil {
			x.Errorf("told to stop it ended with %v:\n%s", err, p.log())
		}
		x.logs = append(x.logs, p.log())
	}
	log := strings.Join(x.logs, "\n")
	for _, word := range []string{marzipan, cobaltine, "canteen", x.discord.App().Token, x.slack.App().BotToken, x.slack.App().AppToken} {
		if strings.Contains(log, word) {
			x.Errorf("the log holds %q", word)
		}
	}
	counts, err := x.ledger().Counts(context.Background())
	if err != nil {
		x.Fatal(err)
	}
	if n := counts[ledger.Failed]; n > t.told+t.more+t.late {
		x.Errorf("%d questions failed, %d people were told", n, t.told+t.more+t.late)
	}
	deliveries, calls, failed, acks := x.traffic()
	x.Logf("storm: %d questions on Slack, %d on Discord, %d deliveries, %d calls of which %d failed, %d kills -9 and %d stops, %v: %d answered once, %d doubled, %d told that there is no answer (%d besides) and %d by Discord, %d lost, %d leaked; ledger %v, failed %v; acknowledged p50 %v, p99 %v, most %v",
		len(x.asked), len(x.commands), deliveries, calls, failed, x.kills, x.freezes, took.Round(time.Second), t.once, t.doubled, t.told, t.more, t.late, t.lost, leaked, counts, x.reasons(),
		acks[len(acks)/2], acks[len(acks)*99/100], acks[len(acks)-1])
}

// reasons counts why questions failed.
func (x *stormy) reasons() map[string]int {
	x.Helper()
	list, err := x.ledger().Latest(context.Background(), 100_000)
	if err != nil {
		x.Fatal(err)
	}
	out := map[string]int{}
	for _, d := range list {
		if d.State == ledger.Failed {
			out[d.Reason]++
		}
	}
	return out
}

// traffic counts what went over the wires of both platforms.
func (x *stormy) traffic() (deliveries, calls, failed int, acks []time.Duration) {
	for _, a := range x.slack.Acks() {
		acks = append(acks, a.After.Round(time.Millisecond))
	}
	for _, q := range x.commands {
		if _, ok := q.Acked(); ok {
			acks = append(acks, q.AckTime().Round(time.Millisecond))
		}
	}
	slices.Sort(acks)
	for _, f := range x.slack.Frames() {
		if f.Out && f.Type == "events_api" {
			deliveries++
		}
	}
	for _, f := range x.discord.Frames() {
		if f.Out && f.Type == "INTERACTION_CREATE" {
			deliveries++
		}
	}
	for _, r := range x.slack.Requests() {
		calls++
		if r.Faulted {
			failed++
		}
	}
	for _, r := range x.discord.Requests() {
		calls++
		if r.Faulted {
			failed++
		}
	}
	return deliveries, calls, failed, acks
}
