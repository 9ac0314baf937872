package assemble

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"footnote/cmd/internal/config"
)

// While the Redis is away, what will be served says that it comes, and what will
// not be served is not found.
func TestAwait_Paths(t *testing.T) {
	t.Parallel()
	slack, discord, push := config.Platforms{Slack: new(config.SlackSecrets)}, config.Platforms{Discord: new(config.DiscordSecrets)}, config.Platforms{Push: make([]config.PushToken, 1)}
	const events, interactions, documents = "POST /slack/events", "POST /discord/interactions", "PUT /v1/documents/a"
	for name, c := range map[string]struct {
		change  func(*config.Config)
		p       config.Platforms
		request string
		status  int
	}{
		"Slack by HTTP":                {func(c *config.Config) { c.Slack.Mode = "http" }, slack, events, 503},
		"Slack's buttons by HTTP":      {func(c *config.Config) { c.Slack.Mode = "http" }, slack, "POST /slack/interactions", 503},
		"Slack's commands by HTTP":     {func(c *config.Config) { c.Slack.Mode = "http" }, slack, "POST /slack/commands", 503},
		"Slack by Socket Mode":         {nil, slack, events, 404},
		"Slack by HTTP, not set up":    {func(c *config.Config) { c.Slack.Mode = "http" }, discord, events, 404},
		"Discord by HTTP":              {func(c *config.Config) { c.Discord.Mode = "http" }, discord, interactions, 503},
		"Discord by the gateway":       {nil, discord, interactions, 404},
		"Discord, and Slack by HTTP":   {func(c *config.Config) { c.Slack.Mode = "http" }, slack, interactions, 404},
		"push":                         {nil, push, documents, 503},
		"a push API without tokens":    {nil, slack, documents, 404},
		"the viewer":                   {func(c *config.Config) { c.Web.PublicURL = "https://a" }, push, "GET /source/a/1", 503},
		"no viewer":                    {nil, push, "GET /source/a/1", 404},
		"metrics":                      {nil, push, "GET /metrics", 503},
		"whether it lives":             {nil, push, "GET /healthz", 200},
		"whether it is ready":          {nil, push, "GET /readyz", 503},
		"what never is there":          {nil, push, "GET /", 404},
		"below what is there later on": {func(c *config.Config) { c.Slack.Mode = "http" }, slack, events + "/x", 404},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &wait{p: c.p, err: errors.New("away")}
			if c.change != nil {
				c.change(&w.c)
			}
			method, path, _ := strings.Cut(c.request, " ")
			r := httptest.NewRecorder()
			w.server(slog.New(slog.DiscardHandler)).ServeHTTP(r, httptest.NewRequest(method, path, http.NoBody))
			if r.Code != c.status {
				t.Errorf("%s gives %d %s, want %d", c.request, r.Code, r.Body, c.status)
			}
			if after := r.Header().Get("Retry-After"); (after != "") != (c.status == 503 && path != "/readyz") {
				t.Errorf("%s says Retry-After %q", c.request, after)
			}
		})
	}
}
