package render

import "strings"

// Limits of Discord, in UTF-16 units where they are lengths.
const (
	MaxContent     = 1900 // Discord: 2,000
	MaxParts       = 3
	maxTitle       = 256
	maxDescription = 4000 // Discord: 4,096
	maxFooter      = 2048
	maxLabel       = 80
	maxRow         = 5
	maxRows        = 5
	maxThreadName  = 100
)

// Flags of a message.
const (
	SuppressEmbeds = 1 << 2
	Ephemeral      = 1 << 6
	Loading        = 1 << 7
)

// Message is the body of a call that creates or edits a message.
type Message struct {
	Content    string     `json:"content"`
	Embeds     []Embed    `json:"embeds,omitempty"`
	Mentions   Mentions   `json:"allowed_mentions"`
	Components []Row      `json:"components"`
	Flags      int        `json:"flags,omitempty"`
	Nonce      string     `json:"nonce,omitempty"`
	Enforce    bool       `json:"enforce_nonce,omitempty"`
	Reference  *Reference `json:"message_reference,omitempty"`
}

// Mentions says who may be pinged: always nobody. An absent or null list would
// mean everybody, so the list must be there and empty.
type Mentions struct {
	Parse   []string `json:"parse"`
	Replied bool     `json:"replied_user"`
}

// Reference names the message that is replied to.
type Reference struct {
	Message string `json:"message_id"`
	Channel string `json:"channel_id,omitempty"`
	Must    bool   `json:"fail_if_not_exists"`
}

// Embed is a framed text.
type Embed struct {
	Title       string  `json:"title,omitempty"`
	Description string  `json:"description,omitempty"`
	URL         string  `json:"url,omitempty"`
	Footer      *Footer `json:"footer,omitempty"`
}

// Footer of an embed.
type Footer struct {
	Text string `json:"text"`
}

// Row is a row of buttons.
type Row struct {
	Type       int      `json:"type"` // 1
	Components []Button `json:"components"`
}

// Button is a button. It has an id of ours or a link.
type Button struct {
	Type  int    `json:"type"` // 2
	Style int    `json:"style"`
	Label string `json:"label"`
	ID    string `json:"custom_id,omitempty"`
	URL   string `json:"url,omitempty"`
}

// Styles of a button.
const (
	grey = 2
	link = 5
)

// message is a message that pings nobody and previews nothing.
func message(content string) Message {
	return Message{Content: content, Mentions: Mentions{Parse: []string{}}, Components: []Row{}, Flags: SuppressEmbeds}
}

// Say is a message with text of our own, which is escaped all the same: it may
// repeat what people wrote.
func Say(text string) Message {
	var lines []string
	for _, l := range strings.Split(text, "\n") {
		if item, ok := strings.CutPrefix(l, "- "); ok {
			l = "• " + Escape(item)
		} else {
			l = Escape(l)
		}
		lines = append(lines, l)
	}
	return message(cut(strings.Join(lines, "\n"), MaxContent))
}

// Unlinked is the message with no link that a filter could refuse.
func Unlinked(m Message) Message {
	m.Content = links.ReplaceAllString(m.Content, "$1")
	if m.Content == "" {
		return Plainest(m)
	}
	return m
}

// Plainest is the message with nothing left that a filter could refuse:
// without links, buttons and frames.
func Plainest(m Message) Message {
	p := message(cut(links.ReplaceAllString(m.Content, "$1"), MaxContent))
	p.Flags, p.Nonce, p.Enforce, p.Reference = m.Flags, m.Nonce, m.Enforce, m.Reference
	if p.Content == "" {
		p.Content = "The answer cannot be shown here."
	}
	return p
}

// Again is a message that was posted, without its buttons, as Discord gives it
// back.
func Again(content string) Message { return message(content) }

// Unsure is a first part whose further parts may or may not have arrived.
func Unsure(m Message, say func(string) string) Message {
	note := "\n*" + say("Discord did not confirm the rest of this answer. If it is missing, ask again.") + "*"
	m.Content = strings.TrimSuffix(m.Content, note) + note
	return m
}

// Quote is how a message begins that stands alone: with its question.
func Quote(question string) string { return "> " + cut(line(question), 200) + "\n" }

// Quoting puts the question in front, for a message that stands alone.
func Quoting(question string, m Message) Message {
	quote := Quote(question)
	if question != "" && units(quote)+units(m.Content) <= 1990 {
		m.Content = quote + m.Content
	}
	return m
}

// ThreadName names a thread after its question.
func ThreadName(question string) string {
	name := cut(strings.Join(strings.Fields(visible(question)), " "), maxThreadName-10)
	name = strings.NewReplacer("@", "@\u200b", "<", "‹", ">", "›").Replace(name)
	if name = cut(name, maxThreadName); name == "" {
		return "Answer"
	}
	return name
}
