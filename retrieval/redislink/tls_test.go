package redislink_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"footnote/retrieval/redisindex/redistest"
	"footnote/retrieval/redislink"
)

// Whatever is wrong with certificates, users and addresses, the program is told
// what to do, at once and not as something that waiting mends; and secrets are
// not shown.
func TestTLS(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	ours, others := redistest.NewAuthority(t), redistest.NewAuthority(t)
	hour := time.Now().Add(time.Hour)
	server := redistest.New(t, t.TempDir())
	admin := open(t, redislink.Options{URL: "redis://" + server.Address})
	if err := admin.Do(ctx, "ACL", "SETUSER", "bot", "on", ">hunter2", "~*", "&*", "+@all").Err(); err != nil {
		t.Fatal(err)
	}
	front := func(host string, ends time.Time, clients *redistest.Authority) string {
		cert, key := ours.Certificate(host, ends)
		return redistest.NewTLS(t, server.Address, cert, key, clients)
	}
	good, wanting := front("127.0.0.1", hour, nil), front("127.0.0.1", hour, ours)
	cert, key := ours.Certificate("bot", hour)
	oldCert, oldKey := ours.Certificate("bot", time.Now().Add(-time.Hour))
	strange, strangeKey := others.Certificate("bot", hour)
	in := func(at string, o redislink.Options) redislink.Options {
		o.URL, o.Username, o.Password = "rediss://"+at, "bot", "hunter2"
		if o.CAFile == "" {
			o.CAFile = ours.CAFile()
		}
		return o
	}
	page := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(page.Close)
	for name, c := range map[string]struct {
		o    redislink.Options
		says string // "": it works
	}{
		"a web server there":          {redislink.Options{URL: "redis://" + page.Listener.Addr().String(), Password: "hunter2"}, "not Redis: check host and port"},
		"right authority":             {in(good, redislink.Options{}), ""},
		"right certificate of ours":   {in(wanting, redislink.Options{CertFile: cert, KeyFile: key}), ""},
		"system's authorities":        {redislink.Options{URL: "rediss://" + good}, "redis.ca_file"},
		"another authority":           {in(good, redislink.Options{CAFile: others.CAFile()}), "redis.ca_file"},
		"another name":                {in(front("cache.example.org", hour, nil), redislink.Options{}), "name of the certificate"},
		"expired":                     {in(front("127.0.0.1", time.Now().Add(-time.Minute), nil), redislink.Options{}), "renew the server's certificate"},
		"not valid yet":               {in(front("127.0.0.1", time.Now().Add(48*time.Hour), nil), redislink.Options{}), "clock"},
		"no certificate of ours":      {in(wanting, redislink.Options{}), "set redis.cert_file"},
		"certificate of others":       {in(wanting, redislink.Options{CertFile: strange, KeyFile: strangeKey}), "redis.cert_file"},
		"expired certificate of ours": {in(wanting, redislink.Options{CertFile: oldCert, KeyFile: oldKey}), "redis.cert_file"},
		"no TLS there":                {in(server.Address, redislink.Options{}), "does not speak TLS"},
		"TLS there":                   {redislink.Options{URL: "redis://" + good, Username: "bot", Password: "hunter2"}, "write rediss://"},
		"TLS there with certificates": {redislink.Options{URL: "redis://" + wanting, Username: "bot", Password: "hunter2"}, "write rediss://"},
		"wrong password":              {redislink.Options{URL: "rediss://" + good, CAFile: ours.CAFile(), Username: "bot", Password: "canary"}, "FOOTNOTE_REDIS_PASSWORD"},
		"wrong password without TLS":  {redislink.Options{URL: "redis://bot:canary@" + server.Address}, "FOOTNOTE_REDIS_PASSWORD"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name != "no TLS there" { // that takes all of the time
				c.o.Deadline = 10 * time.Second
			}
			l := open(t, c.o)
			err := l.Usable(ctx)
			found := bad(l.Check(ctx, "footnote"))
			if c.says == "" {
				if err != nil || len(found) > 0 {
					t.Errorf("it does not work: %v, %q", err, found)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.says) || redislink.Unavailable(err) {
				t.Errorf("it gives %v, want a word on %q", err, c.says)
			}
			if len(found) != 1 || !strings.Contains(found[0], c.says) {
				t.Errorf("found %q, want %q", found, c.says)
			}
			if all := strings.Join(found, " ") + err.Error(); strings.Contains(all, "hunter2") || strings.Contains(all, "canary") {
				t.Errorf("it shows the password: %s", all)
			}
		})
	}
}

// A server that asks for a password says so.
func TestNoPassword(t *testing.T) {
	t.Parallel()
	server := redistest.New(t, t.TempDir())
	admin := open(t, redislink.Options{URL: "redis://" + server.Address})
	if err := admin.Do(context.Background(), "CONFIG", "SET", "requirepass", "hunter2").Err(); err != nil {
		t.Fatal(err)
	}
	l := open(t, redislink.Options{URL: "redis://" + server.Address})
	if err := l.Usable(context.Background()); err == nil || redislink.Unavailable(err) || !strings.Contains(err.Error(), "set FOOTNOTE_REDIS_PASSWORD") {
		t.Errorf("it gives %v", err)
	}
}

// What is not there is unavailable, whatever the address says it speaks.
func TestNothingThere(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	l.Close()
	for _, url := range []string{"redis://" + at, "rediss://" + at, "redis://" + at + "?master_name=m"} {
		if err := open(t, redislink.Options{URL: url}).Usable(context.Background()); !redislink.Unavailable(err) {
			t.Errorf("%s gives %v", url, err)
		}
	}
}
