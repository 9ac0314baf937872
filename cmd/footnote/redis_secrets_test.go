package main

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
)

// Neither the user's password nor an address that holds one is ever shown: not
// when it is right, wrong, refused or of no use.
func TestRedis_SecretsAreNotShown(t *testing.T) {
	t.Parallel()
	const secret = "canary-hunter2"
	r := newOnRedis(t)
	r.do("ACL", "SETUSER", "bot", "on", ">"+secret, "~*", "&*", "+@all")
	r.do("ACL", "SETUSER", "poor", "on", ">"+secret, "~*", "&*", "+@all", "-ft.search", "-hset")
	at := strings.TrimPrefix(r.proxy.URL(), "redis://")
	const nowhere = "redis://127.0.0.1:1"
	user := func(name, password string) []string {
		return []string{"FOOTNOTE_REDIS_USERNAME=" + name, "FOOTNOTE_REDIS_PASSWORD=" + password}
	}
	for name, c := range map[string]struct {
		args []string
		url  string
		env  []string
		says string
	}{
		"right":              {[]string{"doctor", "--json"}, "redis://" + at, user("bot", secret), "the user has the rights"},
		"wrong":              {[]string{"doctor"}, "redis://" + at, user("bot", secret+"x"), "WRONGPASS"},
		"wrong, asking":      {[]string{"ask", "--as", "ada", rotate}, "redis://" + at, user("bot", secret+"x"), "FOOTNOTE_REDIS_PASSWORD"},
		"too few rights":     {[]string{"doctor"}, "redis://" + at, user("poor", secret), "+ft.search"},
		"nothing there":      {[]string{"doctor"}, nowhere, user("bot", secret), "does not answer"},
		"Sentinels' alone":   {[]string{"doctor"}, nowhere + "?master_name=m", []string{"FOOTNOTE_REDIS_SENTINEL_PASSWORD=" + secret}, "does not answer"},
		"in the address":     {[]string{"docs", "list"}, "redis://bot:" + secret + "@" + at + "/7?x=" + secret, nil, "FOOTNOTE_REDIS_PASSWORD"},
		"in what is no host": {[]string{"docs", "list"}, "redis://bot:" + secret + "@%zz", nil, "redis://HOST:PORT"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := program(t, t.TempDir(), append(c.args, "--redis", c.url)...)
			cmd.Env = append(cmd.Env, c.env...)
			out, err := cmd.CombinedOutput()
			if (err == nil) != (name == "right") || !strings.Contains(string(out), c.says) || strings.Contains(string(out), "canary") {
				t.Errorf("it ends with %v, says nothing of %q, or shows the secret:\n%s", err, c.says, out)
			}
		})
	}
	t.Run("serving", func(t *testing.T) {
		t.Parallel()
		s := newSlack(t)
		file := r.configuration("slack: {mode: socket, api_url: '" + s.APIURL() + "'}\n")
		write(t, file, strings.Replace(read(t, file), "level: info", "level: debug", 1))
		r.do("ACL", "SETUSER", "served", "on", ">"+secret, "~*", "&*", "+@all")
		p := serve(t, file, append(slackEnv(s), user("served", secret)...)...)
		r.do("ACL", "SETUSER", "served", "resetpass", ">changed")
		r.do("CLIENT", "KILL", "USER", "served")
		p.ready(http.StatusServiceUnavailable)
		if err := p.stop(syscall.SIGTERM); err != nil {
			t.Errorf("told to stop it ended with %v", err)
		}
		if strings.Contains(p.log(), "canary") {
			t.Errorf("its log shows it:\n%s", p.log())
		}
	})
}
