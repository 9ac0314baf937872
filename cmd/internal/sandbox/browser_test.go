package sandbox

import (
	"context"
	"errors"
	"flag"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"footnote/cmd/internal/config"
)

var pictures = flag.String("pictures", "", "directory for the pictures of the README; none are taken without it")

// browser starts a headless Chromium. Without one the test fails in CI and is
// skipped elsewhere.
func browser(t *testing.T) context.Context {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		const what = "there is no browser to drive the page with: install Chromium (apt-get install chromium)"
		if os.Getenv("CI") != "" {
			t.Fatal(what)
		}
		t.Skip(what)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.WindowSize(1180, 780),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-background-networking", true),
	)
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, stopTab := chromedp.NewContext(ctx)
	t.Cleanup(stopTab)
	if err := chromedp.Do(ctx); err != nil { // the browser lives as long as this context
		t.Fatalf("starting the browser: %v", err)
	}
	return ctx
}

// start runs a sandbox and returns the address of its page.
func start(t *testing.T, platform string) string {
	t.Helper()
	native, err := filepath.Glob("../../../.cache/native/" + runtime.GOOS + "-" + runtime.GOARCH + "/libonnxruntime*")
	if err != nil || len(native) == 0 {
		t.Fatal("the native parts are missing: make native")
	}
	library, err := filepath.Abs(native[0])
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	at, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- Run(ctx, Options{
			Platform: platform, Listen: "127.0.0.1:0", Data: t.TempDir(), Say: func(string) {}, Ready: func(url string) { at <- url },
			Environment: func(name string) (string, bool) { return library, name == "FOOTNOTE_MODELS_RUNTIME" },
			Log:         func(config.Config) *slog.Logger { return slog.New(slog.DiscardHandler) },
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the sandbox ended with %v", err)
		}
	})
	select {
	case url := <-at:
		return url
	case err := <-ended:
		ended <- errors.New("too early")
		t.Fatalf("the sandbox did not start: %v", err)
	}
	return ""
}

// user drives the page.
type user struct {
	t    *testing.T
	ctx  context.Context
	page string
}

// do runs what must end within two minutes: the models may be busy.
func (u *user) do(actions ...chromedp.Action[chromedp.Void]) {
	u.t.Helper()
	ctx, stop := context.WithTimeout(u.ctx, 2*time.Minute)
	defer stop()
	if err := chromedp.Do(ctx, actions...); err != nil {
		u.t.Fatalf("%v; the page:\n%s", err, u.text("body"))
	}
}

func (u *user) text(selector chromedp.CSS) string {
	ctx, stop := context.WithTimeout(u.ctx, 10*time.Second)
	defer stop()
	s, err := chromedp.Run(ctx, chromedp.Text(selector))
	if err != nil {
		u.t.Errorf("reading %s: %v", selector, err)
	}
	return s
}

// ask opens the page as a person in a place, asks, and waits for something.
func (u *user) ask(as, in, question string, until chromedp.CSS) {
	u.t.Helper()
	u.do(chromedp.Navigate(u.page+"?as="+as+"&in="+in), chromedp.WaitVisible(chromedp.CSS("#text")),
		chromedp.SendKeys(chromedp.CSS("#text"), question), chromedp.Click(chromedp.CSS("#send")), chromedp.WaitVisible(until))
}

func (u *user) picture(name string) {
	if *pictures == "" {
		return
	}
	png, err := chromedp.Run(u.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		u.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*pictures, name), png, 0o600); err != nil {
		u.t.Fatal(err)
	}
}

func (u *user) holds(selector chromedp.CSS, want ...string) {
	u.t.Helper()
	got := u.text(selector)
	for _, w := range want {
		if !strings.Contains(got, w) {
			u.t.Errorf("%s lacks %q:\n%s", selector, w, got)
		}
	}
}

const (
	howToRotate = "How do I rotate the API key?"
	whenStolen  = "When was the contractor's laptop stolen?"
)

// secret are words of the restricted report that no question holds.
var secret = []string{"April", "Security incident", "LH-2031", "train"}

func (u *user) hides(selector chromedp.CSS) {
	u.t.Helper()
	got := u.text(selector)
	for _, w := range secret {
		if strings.Contains(got, w) {
			u.t.Errorf("%s shows %q of a document that the person may not read:\n%s", selector, w, got)
		}
	}
}

func TestBrowser_Slack(t *testing.T) {
	u := &user{t, browser(t), start(t, "slack")}
	const source chromedp.CSS = `.thread .message.app button[data-key="source_1"]`
	u.ask("ada", "general", howToRotate, source)
	u.holds(".thread .message.app", "Settings > API keys", "[1]", "Sources", "API key rotation")
	u.picture("slack-sandbox.png")
	u.do(chromedp.Click(source), chromedp.WaitVisible(chromedp.CSS("#modal")))
	u.holds("#modal", "Source 1", "API key rotation")
	u.holds("#modal blockquote", "Create key")
	u.do(chromedp.Click(chromedp.CSS(`#modal [data-do="close"]`)), chromedp.WaitNotPresent(chromedp.CSS("#modal")))
	u.do(chromedp.Click(chromedp.CSS(`.thread .message.app button[data-key="helpful"]`)), chromedp.WaitVisible(chromedp.CSS(".message.only")))

	// The same channel: what bob may not read is not said, and not hinted at.
	const direct chromedp.CSS = `.thread .message.app button[data-key="direct"]`
	u.ask("bob", "general", whenStolen, direct)
	u.hides("#room")
	u.do(chromedp.Click(direct))
	u.do(chromedp.Navigate(u.page+"?as=bob&in=dm"), chromedp.WaitVisible(chromedp.CSS(`.message.app button[data-key="human"]`)))
	u.hides("#room")
	// Ada may read it, but not everybody in the channel.
	u.ask("ada", "dm", whenStolen, `.message.app button[data-key="source_1"]`)
	u.holds("#room", "April")
	u.ask("ada", "security", whenStolen, `.message.app button[data-key="source_1"]`)
	u.do(chromedp.Navigate(u.page + "?as=bob&in=security"))
	u.hides("body")
	u.holds("#places", "Bob Okafor cannot see it")
}

func TestBrowser_Discord(t *testing.T) {
	u := &user{t, browser(t), start(t, "discord")}
	const source chromedp.CSS = `.message.app button[data-key$=":s1"]`
	u.ask("ada", "general", howToRotate, source)
	u.holds(".message.app", "Settings > API keys", "[1]", "Sources", "Ada Lim used /ask")
	u.picture("discord-sandbox.png")
	u.do(chromedp.Click(source), chromedp.WaitVisible(chromedp.CSS(".message.only .embed blockquote")))
	u.holds(".message.only .embed", "API key rotation", "Create key")

	const private chromedp.CSS = `.message.app button[data-key$=":private"]`
	u.ask("bob", "general", whenStolen, private)
	u.hides("#room")
	u.do(chromedp.Click(private), chromedp.WaitVisible(chromedp.CSS(`.message.only button[data-key$=":human"]`)))
	u.hides("#room")
	u.ask("ada", "security", whenStolen, source)
	u.holds("#room", "April")
	// Whoever reads there is staff, too.
	u.ask("ada", "security", howToRotate, `.message.app ~ .message.app button[data-key$=":s1"]`)
	u.holds("#room", "Create key")
	u.do(chromedp.Navigate(u.page + "?as=bob&in=security"))
	u.hides("body")
}
