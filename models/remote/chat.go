package remote

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	openai "github.com/sashabaranov/go-openai"
)

var (
	// ErrUnavailable says that the server cannot be used now: it is away, busy,
	// refuses the key, lacks the model, or is no chat server. Every other
	// request would most likely end so, too.
	ErrUnavailable = errors.New("the chat model is unavailable")
	// ErrTooLong says that the request is longer than the model reads.
	ErrTooLong = errors.New("the request is longer than the chat model reads")
	// ErrNoAnswer says that the server answered, but with nothing that can be
	// used: no choice, no text, a filter, a tool call.
	ErrNoAnswer = errors.New("the chat model gave no answer")
)

// Options name a server. The zero value of a field beside Address and Model is
// its default.
type Options struct {
	Address  string        // base, with the /v1 that most servers have
	Model    string        // as the server names it
	Key      string        // sent as bearer token; "": none
	Timeout  time.Duration // of one attempt: 2 minutes
	Attempts int           // 3; those after the first wait as the server says, or ever longer
	Wait     time.Duration // longest wait between attempts: 30 s; a server that asks for more is unavailable
	MaxBytes int64         // of a response: 1 MiB

	Pause func(context.Context, time.Duration) error // waits between attempts
}

func (o Options) filled() Options {
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Minute
	}
	if o.Attempts == 0 {
		o.Attempts = 3
	}
	if o.Wait == 0 {
		o.Wait = 30 * time.Second
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 1 << 20
	}
	if o.Pause == nil {
		o.Pause = pause
	}
	return o
}

// Chat is a chat model. It is safe for concurrent use.
type Chat struct {
	model  string
	host   string
	client *openai.Client
}

// NewChat makes a client. It connects to nothing.
func NewChat(o Options) (*Chat, error) {
	o = o.filled()
	u, err := url.Parse(o.Address)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("the address of the chat model is no http or https address")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("the address of the chat model holds a user, a query or a fragment: give the key apart")
	case strings.TrimSpace(o.Model) == "":
		return nil, errors.New("the chat model has no name: give the one that its server uses")
	case strings.ContainsFunc(o.Key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, errors.New("the key of the chat model holds characters that no key has")
	}
	// The library takes no address and no key out of the environment.
	settings := openai.DefaultConfig(o.Key)
	settings.BaseURL = strings.TrimRight(u.String(), "/")
	settings.HTTPClient = completions{newClient(o)}
	return &Chat{model: o.Model, host: u.Host, client: openai.NewClientWithConfig(settings)}, nil
}

// Model is the name that the server knows the model by.
func (c *Chat) Model() string { return c.model }

// Request is one question without history.
type Request struct {
	System    string // what is wanted
	User      string // what it is wanted of
	MaxTokens int    // of the answer; 0: the server's own bound
}

// Answer is what the model said.
type Answer struct {
	Text   string // trimmed, not empty, otherwise as it came
	Cut    bool   // MaxTokens or the model's window ended it
	Tokens int    // of request and answer, as the server counts; 0: it does not say
}

// Complete asks the model. Errors are ErrUnavailable, ErrTooLong, ErrNoAnswer,
// that of ctx, or one of this request alone.
func (c *Chat) Complete(ctx context.Context, r Request) (Answer, error) {
	p := openai.ChatCompletionRequest{Model: c.model, Temperature: cold, MaxTokens: r.MaxTokens} //nolint:staticcheck // servers other than OpenAI's know no other bound
	if r.System != "" {
		p.Messages = append(p.Messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleSystem, Content: r.System})
	}
	p.Messages = append(p.Messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: r.User})
	done, err := c.client.CreateChatCompletion(ctx, p)
	if errors.Is(err, openai.ErrReasoningModelMaxTokensDeprecated) { // models of OpenAI that take neither bound nor temperature as others do
		p.MaxTokens, p.MaxCompletionTokens, p.Temperature = 0, r.MaxTokens, 0 //nolint:staticcheck // see above
		done, err = c.client.CreateChatCompletion(ctx, p)
	}
	if ctx.Err() != nil {
		return Answer{}, ctx.Err()
	}
	if err != nil {
		return Answer{}, c.failed(err)
	}
	return answer(done)
}

// cold is a temperature at which the likeliest word is taken. The library
// leaves 0 out, and then the server's own counts.
const cold = 0.001

// answer takes the text out of a completion.
func answer(done openai.ChatCompletionResponse) (Answer, error) {
	if len(done.Choices) == 0 {
		return Answer{}, fmt.Errorf("%w: no choice", ErrNoAnswer)
	}
	first := done.Choices[0]
	text := strings.TrimSpace(first.Message.Content)
	switch {
	case first.FinishReason == openai.FinishReasonContentFilter:
		return Answer{}, fmt.Errorf("%w: its filter stopped it", ErrNoAnswer)
	case text == "":
		return Answer{}, fmt.Errorf("%w: no text", ErrNoAnswer)
	}
	// Servers have finish reasons of their own ("eos", "stop_sequence", none):
	// only one that says that the answer goes on matters.
	return Answer{Text: text, Cut: first.FinishReason == openai.FinishReasonLength, Tokens: max(done.Usage.TotalTokens, 0)}, nil
}
