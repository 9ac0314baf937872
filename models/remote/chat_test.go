package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"footnote/models/remote"
)

// reply is a response of the local server.
type reply struct {
	status  int
	kind    string // content type
	headers map[string]string
	body    string
}

func completion(text, finish string) reply {
	b, _ := json.Marshal(text)
	return reply{status: 200, kind: "application/json", body: fmt.Sprintf(
		`{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":%q,"message":{"role":"assistant","content":%s}}],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}`, finish, b)}
}

func failure(status int, kind string) reply {
	return reply{status: status, kind: "application/json",
		body: fmt.Sprintf(`{"error":{"code":%d,"message":"the prompt was SECRETPROMPT","type":%q}}`, status, kind)}
}

// serve answers the nth request with the nth reply, the last one again.
func serve(t *testing.T, replies ...reply) (address string, asked *atomic.Int32) {
	t.Helper()
	asked = new(atomic.Int32)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := int(asked.Add(1))
		p := replies[min(n, len(replies))-1]
		w.Header().Set("Content-Type", p.kind)
		for k, v := range p.headers {
			w.Header().Set(k, v)
		}
		w.WriteHeader(p.status)
		_, _ = io.WriteString(w, p.body)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/v1", asked
}

func chat(t *testing.T, address string, change ...func(*remote.Options)) *remote.Chat {
	t.Helper()
	o := remote.Options{Address: address, Model: "m", Pause: func(ctx context.Context, _ time.Duration) error { return ctx.Err() }}
	for _, c := range change {
		c(&o)
	}
	c, err := remote.NewChat(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var ask = remote.Request{System: "Be short.", User: "SECRETPROMPT", MaxTokens: 20}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reply reply
		want  remote.Answer
		err   error
	}{
		"a whole answer":                    {completion(" It is about keys.\n", "stop"), remote.Answer{Text: "It is about keys.", Tokens: 12}, nil},
		"an answer that was cut":            {completion("It is about", "length"), remote.Answer{Text: "It is about", Cut: true, Tokens: 12}, nil},
		"a finish reason of its own":        {completion("Yes.", "eos_token"), remote.Answer{Text: "Yes.", Tokens: 12}, nil},
		"no finish reason and no usage":     {reply{200, "application/json; charset=utf-8", nil, `{"choices":[{"message":{"content":"Yes."}}]}`}, remote.Answer{Text: "Yes."}, nil},
		"a field that nobody knows":         {reply{200, "application/json", nil, `{"timings":{"x":1},"choices":[{"message":{"content":"Yes.","reasoning_content":"hm"}}]}`}, remote.Answer{Text: "Yes."}, nil},
		"no choices":                        {reply{200, "application/json", nil, `{"choices":[]}`}, remote.Answer{}, remote.ErrNoAnswer},
		"no text":                           {completion("  \n", "stop"), remote.Answer{}, remote.ErrNoAnswer},
		"null for text, a tool call":        {reply{200, "application/json", nil, `{"choices":[{"finish_reason":"tool_calls","message":{"content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"x","arguments":"{}"}}]}}]}`}, remote.Answer{}, remote.ErrNoAnswer},
		"stopped by a filter":               {completion("half", "content_filter"), remote.Answer{}, remote.ErrNoAnswer},
		"cut off":                           {reply{200, "application/json", nil, `{"choices":[{"message":{"content":"Ye`}, remote.Answer{}, remote.ErrNoAnswer},
		"nothing at all":                    {reply{200, "application/json", nil, ``}, remote.Answer{}, remote.ErrNoAnswer},
		"an array":                          {reply{200, "application/json", nil, `[]`}, remote.Answer{}, remote.ErrNoAnswer},
		"too large":                         {completion(strings.Repeat("long ", 300_000), "stop"), remote.Answer{}, remote.ErrNoAnswer},
		"a page with status 200":            {reply{200, "text/html", nil, "<html>Log in SECRETPROMPT"}, remote.Answer{}, remote.ErrUnavailable},
		"a page with status 502":            {reply{502, "text/html", nil, "<html>SECRETPROMPT"}, remote.Answer{}, remote.ErrUnavailable},
		"a page with status 400":            {reply{400, "text/html", nil, "<html>SECRETPROMPT"}, remote.Answer{}, nil},
		"the key refused":                   {failure(401, "invalid_request_error"), remote.Answer{}, remote.ErrUnavailable},
		"no such model":                     {failure(404, "not_found_error"), remote.Answer{}, remote.ErrUnavailable},
		"too many requests":                 {failure(429, "rate_limit_error"), remote.Answer{}, remote.ErrUnavailable},
		"longer than the window, llama":     {failure(400, "exceed_context_size_error"), remote.Answer{}, remote.ErrTooLong},
		"longer than the window, OpenAI":    {reply{400, "application/json", nil, `{"error":{"code":"context_length_exceeded","message":"SECRETPROMPT","type":"invalid_request_error"}}`}, remote.Answer{}, remote.ErrTooLong},
		"another mistake in the request":    {failure(400, "invalid_request_error"), remote.Answer{}, nil},
		"redirected, which is not followed": {reply{307, "text/html", map[string]string{"Location": "/elsewhere"}, ""}, remote.Answer{}, remote.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, _ := serve(t, c.reply)
			got, err := chat(t, address).Complete(t.Context(), ask)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("answer (-want +got):\n%s", d)
			}
			if (err == nil) != (c.want.Text != "") || c.err != nil && !errors.Is(err, c.err) {
				t.Errorf("error is %v, want %v", err, c.err)
			}
			for _, s := range []error{remote.ErrUnavailable, remote.ErrTooLong, remote.ErrNoAnswer} {
				if s != c.err && errors.Is(err, s) {
					t.Errorf("error %v is %v as well", err, s)
				}
			}
			if err != nil && strings.Contains(err.Error(), "SECRET") {
				t.Errorf("the error quotes what was sent: %v", err)
			}
		})
	}
}

func TestRequestSaysWhatIsAskedAndNothingOfTheEnvironment(t *testing.T) {
	for k, v := range map[string]string{"OPENAI_API_KEY": "sk-other", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_ORG_ID": "org", "OPENAI_PROJECT_ID": "project", "OPENAI_CUSTOM_HEADERS": "X-Other: yes"} {
		t.Setenv(k, v)
	}
	for name, c := range map[string]struct{ key, want string }{
		"no key": {"", ""},
		"a key":  {"k-123", "Bearer k-123"},
	} {
		t.Run(name, func(t *testing.T) {
			type request struct {
				Path, Authorization, Organisation, Other string
				Body                                     map[string]any
			}
			var got request
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got = request{r.URL.Path, r.Header.Get("Authorization"), r.Header.Get("OpenAI-Organization") + r.Header.Get("OpenAI-Project"), r.Header.Get("X-Other"), nil}
				_ = json.NewDecoder(r.Body).Decode(&got.Body)
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, completion("Yes.", "stop").body)
			}))
			defer s.Close()
			if _, err := chat(t, s.URL+"/api/v1/", func(o *remote.Options) { o.Key = c.key }).Complete(t.Context(), ask); err != nil {
				t.Fatal(err)
			}
			want := request{Path: "/api/v1/chat/completions", Authorization: c.want, Body: map[string]any{
				"model": "m", "temperature": 0.001, "max_tokens": 20.0, "stream": false,
				"messages": []any{map[string]any{"role": "system", "content": "Be short."}, map[string]any{"role": "user", "content": "SECRETPROMPT"}},
			}}
			if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("request (-want +got):\n%s", d)
			}
		})
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	later := failure(503, "unavailable_error")
	asks := func(v string) reply {
		r := failure(429, "rate_limit_error")
		r.headers = map[string]string{"Retry-After": v}
		return r
	}
	tomorrow := asks("86400")
	for name, c := range map[string]struct {
		replies []reply
		asked   int32
		ok      bool
		waits   []time.Duration // longest; three quarters of it at least, unless the server named it
	}{
		"loading at first":        {[]reply{later, completion("Yes.", "stop")}, 2, true, []time.Duration{500 * time.Millisecond}},
		"busy twice":              {[]reply{asks("7"), failure(429, "x"), completion("Yes.", "stop")}, 3, true, []time.Duration{7 * time.Second, 2 * time.Second}},
		"a date in the past":      {[]reply{asks("Mon, 02 Jan 2006 15:04:05 GMT"), completion("Yes.", "stop")}, 2, true, []time.Duration{0}},
		"a time that is none":     {[]reply{asks("-1"), completion("Yes.", "stop")}, 2, true, []time.Duration{500 * time.Millisecond}},
		"away for good":           {[]reply{later}, 3, false, []time.Duration{500 * time.Millisecond, 2 * time.Second}},
		"to come back tomorrow":   {[]reply{tomorrow}, 1, false, nil},
		"a mistake is not mended": {[]reply{failure(400, "x"), completion("Yes.", "stop")}, 1, false, nil},
		"nor is a wrong key":      {[]reply{failure(401, "x"), completion("Yes.", "stop")}, 1, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address, asked := serve(t, c.replies...)
			var waits []time.Duration
			_, err := chat(t, address, func(o *remote.Options) {
				o.Pause = func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil }
			}).Complete(t.Context(), ask)
			if (err == nil) != c.ok || asked.Load() != c.asked {
				t.Errorf("asked %d times, error %v; want %d times, success %v", asked.Load(), err, c.asked, c.ok)
			}
			near := cmp.Comparer(func(a, b time.Duration) bool { return 4*min(a, b) >= 3*max(a, b)-4 })
			if d := cmp.Diff(c.waits, waits, near); d != "" {
				t.Errorf("pauses (-want +got):\n%s", d)
			}
		})
	}
}

func TestServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-release }))
	defer s.Close()
	defer close(release)
	c := chat(t, s.URL, func(o *remote.Options) { o.Timeout = 20 * time.Millisecond })
	if _, err := c.Complete(t.Context(), ask); !errors.Is(err, remote.ErrUnavailable) {
		t.Errorf("a silent server gives %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := chat(t, s.URL).Complete(ctx, ask); !errors.Is(err, context.Canceled) || errors.Is(err, remote.ErrUnavailable) {
		t.Errorf("a caller that has gone gets %v", err)
	}
}

func TestServerThatIsAway(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.NotFoundHandler())
	address := s.URL
	s.Close()
	c := chat(t, address)
	if _, err := c.Complete(t.Context(), ask); !errors.Is(err, remote.ErrUnavailable) {
		t.Errorf("a server that is away gives %v", err)
	}
}

func TestOptionsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]remote.Options{
		"no address":             {Model: "m"},
		"another protocol":       {Address: "ftp://host/v1", Model: "m"},
		"a password in it":       {Address: "https://u:p@host/v1", Model: "m"},
		"a query in it":          {Address: "https://host/v1?key=1", Model: "m"},
		"no model":               {Address: "https://host/v1", Model: " "},
		"a key of several lines": {Address: "https://host/v1", Model: "m", Key: "a\nX-Evil: 1"},
	} {
		if _, err := remote.NewChat(o); err == nil || o.Key != "" && strings.Contains(err.Error(), o.Key) {
			t.Errorf("%s: error is %v", name, err)
		}
	}
}

// FuzzResponse: whatever a server says, Complete ends with a text or an error.
func FuzzResponse(f *testing.F) {
	f.Add(completion("Yes.", "stop").body)
	f.Add(`{"choices":[{"message":{"content":["parts"]}}]}`)
	f.Add(`{"choices":{}}`)
	f.Add(`{"choices":[null]}`)
	f.Add(`null`)
	var body atomic.Value
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body.Load().(string))
	}))
	f.Cleanup(s.Close)
	c, err := remote.NewChat(remote.Options{Address: s.URL, Model: "m", Attempts: 1})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b string) {
		body.Store(b)
		got, err := c.Complete(t.Context(), ask)
		if (err == nil) == (strings.TrimSpace(got.Text) == "") {
			t.Errorf("%q gives %q and %v", b, got.Text, err)
		}
	})
}
