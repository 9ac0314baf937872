package slack

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// The address of the API is found where only the platform's is set, and
// nowhere else is asked.
func TestAddressOfTheAPI(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		serves, set string
		unknown     bool // methods that are not there answer as Slack does
		code        string
	}{
		"as it is":                    {serves: "/api/", set: "/api/"},
		"no slash at the end":         {serves: "/api/", set: "/api"},
		"the platform":                {serves: "/api/", set: ""},
		"the platform, slash":         {serves: "/api/", set: "/"},
		"the platform below a path":   {serves: "/fake/slack/api/", set: "/fake/slack"},
		"the platform, as Slack":      {serves: "/api/", set: "/", unknown: true},
		"an API of another name":      {serves: "/v1/", set: "/v1"},
		"an API at the root":          {serves: "/", set: ""},
		"nothing there":               {serves: "/api/", set: "/nowhere/", code: "http_404"},
		"nothing there, named an API": {serves: "/v1/", set: "/api/", code: "http_404"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch {
				case r.URL.Path == c.serves+"auth.test":
					_, _ = io.WriteString(w, `{"ok":true,"user_id":"U0BOT","team_id":"T1","bot_id":"B1"}`)
				case c.unknown:
					_, _ = io.WriteString(w, `{"ok":false,"error":"unknown_method","req_method":"x"}`)
				default:
					http.NotFound(w, r)
				}
			}))
			defer web.Close()
			conf := Config{BotToken: "xoxb-1", AppToken: "xapp-1", APIURL: web.URL + c.set}
			if err := conf.check(); err != nil {
				t.Fatal(err)
			}
			api := newClient(conf, func(error) {})
			w, err := api.whoami(t.Context())
			if codeOf(err) != c.code || (err == nil) != (w.user == "U0BOT") {
				t.Fatalf("%+v %v", w, err)
			}
			if again, err := api.whoami(t.Context()); again.user != w.user || codeOf(err) != c.code {
				t.Errorf("then %+v %v", again, err)
			}
		})
	}
}
