package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRedis(t *testing.T) {
	t.Parallel()
	pem := writeFile(t, "nothing")
	for _, c := range []struct {
		name, yaml, flag string
		env              []string
		want             string   // index and address
		problems         []string // a part of each
	}{
		{name: "nothing said", want: "embedded "},
		{name: "an address in the file", yaml: "redis: {url: 'redis://cache:6379'}", want: "redis redis://cache:6379"},
		{name: "an address in the environment", env: []string{"FOOTNOTE_REDIS_URL", "rediss://cache"}, want: "redis rediss://cache"},
		{name: "an address as a flag", flag: "redis://here", yaml: "redis: {url: 'redis://cache'}", want: "redis redis://here"},
		{name: "the flag wins over embedded", flag: "redis://here", yaml: "index: embedded", want: "redis redis://here"},
		{name: "an address that is not used", yaml: "index: embedded\nredis: {url: 'redis://cache'}", want: "embedded redis://cache"},
		{name: "sentinels", flag: "redis://s1:26379?master_name=m&addr=s2:26379", want: "redis redis://s1:26379?master_name=m&addr=s2:26379"},
		{name: "no address", yaml: "index: redis", problems: []string{"redis.url: is not set"}},
		{name: "another index", yaml: "index: elsewhere", problems: []string{`"elsewhere" is not known`}},
		{name: "an address of something else", flag: "http://cache", problems: []string{"--redis: it is no address"}},
		{name: "a password in the address", yaml: "redis: {url: 'redis://bot:hunter2@cache'}", problems: []string{"FOOTNOTE_REDIS_PASSWORD"}},
		{name: "a cluster", yaml: "redis: {url: 'redis://cache?cluster=true'}", problems: []string{"a cluster, which cannot hold the index"}},
		{name: "no such port", flag: "redis://127.0.0.1:99999", problems: []string{"its port is none"}},
		{name: "port 0", flag: "redis://cache:0", problems: []string{"its port is none"}},
		{name: "the last port", flag: "redis://[::1]:65535", want: "redis redis://[::1]:65535"},
		{name: "two servers", flag: "redis://h:1,h:2", problems: []string{"several servers"}},
		{name: "a master without a name", flag: "redis://s1:26379?master_name=", problems: []string{"master_name is empty"}},
		{name: "another database", flag: "redis://cache/3", problems: []string{"database 0 only"}},
		{name: "a part that is not known", flag: "redis://cache?protocol=2", problems: []string{`"protocol" is not known`}},
		{
			name: "everything at once", yaml: "index: redis\nredis: {prefix: 'a b', vectors: round, cert_file: no.pem}\n",
			env:      []string{"FOOTNOTE_REDIS_USERNAME", "bot"},
			problems: []string{`"a b" is no such id`, `"round" is not known`, "redis.url: is not set", "redis.cert_file: open", "belong together", "FOOTNOTE_REDIS_PASSWORD: is not set"},
		},
		{name: "certificates without TLS", yaml: fmt.Sprintf("redis: {url: 'redis://c', ca_file: '%s'}", pem), problems: []string{"rediss://"}},
		{name: "certificates", yaml: fmt.Sprintf("redis: {url: 'rediss://c', ca_file: '%s'}", pem), want: "redis rediss://c"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := Load(Flags{File: writeFile(t, c.yaml), Data: t.TempDir(), Redis: c.flag}, environment(c.env...))
			var p *Problems
			switch {
			case errors.As(err, &p):
				if strings.Contains(err.Error(), "hunter2") {
					t.Errorf("the error shows the password: %v", err)
				}
				for _, want := range c.problems {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("the problems lack %q:\n%v", want, err)
					}
				}
				if len(p.All) != len(c.problems) {
					t.Errorf("%d problems, want %d:\n%v", len(p.All), len(c.problems), err)
				}
			case err != nil || len(c.problems) > 0:
				t.Fatalf("it gives %v, want %d problems", err, len(c.problems))
			case got.Index+" "+got.Redis.URL != c.want:
				t.Errorf("it is %q, want %q", got.Index+" "+got.Redis.URL, c.want)
			}
		})
	}
}

// The user and the password come from the environment or files that it names,
// and are handed to nobody.
func TestRedis_Secrets(t *testing.T) {
	t.Parallel()
	env := environment("FOOTNOTE_REDIS_USERNAME", "bot", "FOOTNOTE_REDIS_PASSWORD_FILE", writeFile(t, "hunter2\n"), "FOOTNOTE_REDIS_SENTINEL_PASSWORD", "hunter3")
	c, err := Load(Flags{Data: filepath.Join(t.TempDir(), "d"), Redis: "redis://cache"}, env)
	if err != nil || c.Redis.Username.Reveal() != "bot" || c.Redis.Password.Reveal() != "hunter2" || c.Redis.SentinelPassword.Reveal() != "hunter3" {
		t.Errorf("it gives %v", err)
	}
	if s := fmt.Sprintf("%+v", c); strings.Contains(s, "hunter") {
		t.Errorf("the password is printed: %s", s)
	}
	environ := []string{"FOOTNOTE_REDIS_URL=redis://cache", "FOOTNOTE_REDIS_PASSWORD=x", "FOOTNOTE_REDIS_USERNAME_FILE=y", "FOOTNOTE_REDIS_SENTINEL_PASSWORD=z"}
	if public := Public(environ); !slices.Equal(public, environ[:1]) {
		t.Errorf("public are %q", public)
	}
	if odd := Unknown(environ); len(odd) > 0 {
		t.Errorf("not known are %q", odd)
	}
}

// A secret that is wrong is one problem for those who read both parts of the
// configuration, with a Redis or without.
func TestRedis_BlankSecrets(t *testing.T) {
	t.Parallel()
	for _, name := range redisSecrets {
		for _, url := range []string{"", "redis://cache"} {
			env := environment(name, " ")
			c, err := Load(Flags{Data: filepath.Join(t.TempDir(), "d"), Redis: url}, env)
			_, more := c.Platforms(env)
			n := 0
			for _, e := range []error{err, more} {
				if p := (*Problems)(nil); errors.As(e, &p) {
					n += len(p.All)
				}
			}
			if all := fmt.Sprint(err, more); n != 1 || strings.Count(all, name+" is blank") != 1 {
				t.Errorf("%s is blank, address %q: %d problems, %s", name, url, n, all)
			}
		}
	}
}
