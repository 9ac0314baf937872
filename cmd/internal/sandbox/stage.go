package sandbox

import (
	"context"
	"errors"
	"html/template"
	"time"
)

// person is one of the four.
type person struct {
	ID    string // as the page names them: ada
	Name  string
	About string
	Tint  int // colour of the picture

	account string // as the platform names them
}

// crowd is everybody but the bot.
type crowd []person

// name is that of an account; one of nobody here is the bot's.
func (c crowd) name(account string) string {
	for _, p := range c {
		if p.account == account {
			return p.Name
		}
	}
	return "footnote"
}

func (c crowd) tint(account string) int {
	for _, p := range c {
		if p.account == account {
			return p.Tint
		}
	}
	return 0
}

// place is a channel, or the conversation with the bot.
type place struct {
	ID    string // as the page names it: general, dm
	Name  string
	About string
	Open  bool // the person can see it

	channel string
}

// way is a way to say something.
type way struct{ ID, Label, Hint string }

// message is a message as its reader sees it.
type message struct {
	ID      string
	Who     string
	Tint    int
	App     bool
	At      time.Time
	Only    bool // nobody else sees it
	Above   string
	Body    template.HTML
	Buttons [][]pressable
	Status  string // what the bot says that it is doing
	Replies []message
	Thread  string // to reply there; "" if one cannot
	Tools   []way  // what its menu offers
}

// pressable is a button.
type pressable struct{ Label, Action, Link string }

// modal is a window over the page.
type modal struct {
	ID, Title string
	Body      template.HTML
	Buttons   [][]pressable
}

// room is all that a person sees in a place now.
type room struct {
	Messages []message
	Modal    *modal
	Notices  []string // of the client, for example that the app did not answer
}

// act is something that a person does.
type act struct {
	as      person
	in      place
	What    string // a way, or press, tool, close
	Text    string
	Thread  string
	Message string
	Action  string
}

// stage is a platform with the demo world in it.
type stage interface {
	// environment is what connects the adapter: an address and tokens.
	environment() map[string]string
	// lists translates the entries of the demo's access lists.
	lists() map[string]string
	// ready waits until people can ask.
	ready(ctx context.Context) error
	people() []person
	places(as person) []place
	ways(in place) []way
	look(as person, in place) room
	do(a act) error
	// wait returns when the condition holds, which is looked at whenever
	// something happens.
	wait(ctx context.Context, until func() bool) error
	close()
}

var errNot = errors.New("that cannot be done here")

// demoPeople are the four, as deploy/demo-people.yaml has them.
func demoPeople() []person {
	return []person{
		{ID: "ada", Name: "Ada Lim", About: "security group", Tint: 1},
		{ID: "bob", Name: "Bob Okafor", About: "engineering", Tint: 2},
		{ID: "mina", Name: "김미나", About: "Seoul office", Tint: 3},
		{ID: "gus", Name: "Gus Brandt", About: "contractor, a guest", Tint: 4},
	}
}

// emails are their addresses.
var emails = map[string]string{
	"ada": "ada@lumenharbour.example", "bob": "bob@lumenharbour.example", "mina": "mina@lumenharbour.example", "gus": "gus@contractor.example",
}

const dm = "dm"
