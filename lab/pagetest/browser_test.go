//go:build page

// Package pagetest looks at the status page as people do: in Chromium, fed by the real server over HTTP. make
// test-page runs it. Screenshots are left in the folder that PAGE_SHOTS names, for somebody to look at.
package pagetest

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser is one page in a Chromium of its own.
type browser struct {
	t   *testing.T
	ctx context.Context // it is how chromedp knows the page
}

// patience is how long a test waits for what must happen. It is no measure: shared machines stall.
const patience = time.Minute

// open starts Chromium, which ends with the test. Whatever the page writes to the console as an error fails
// the test: the content security policy speaks there too.
func open(t *testing.T) *browser {
	t.Helper()
	flags := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.UserDataDir(t.TempDir()),
		chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("hide-scrollbars", false))
	for _, path := range []string{"/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"} {
		if _, err := os.Stat(path); err == nil {
			flags = append(flags, chromedp.ExecPath(path))
			break
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	ctx, stop := chromedp.NewExecAllocator(ctx, flags...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(end)
	b := &browser{t: t, ctx: ctx}
	b.do() // starts it
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("the page threw: %s line %d: %+v", e.ExceptionDetails.Text, e.ExceptionDetails.LineNumber,
				e.ExceptionDetails.Exception)
		case *log.EventEntryAdded:
			// a server that was stopped, or is full
			if e.Entry.Level == log.EntryLevelError && !strings.Contains(e.Entry.Text, "net::ERR") &&
				!strings.Contains(e.Entry.Text, "503") {
				t.Errorf("the page complained: %s %s", e.Entry.Text, e.Entry.URL)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	b.do(order(log.Enable, cdp.Empty{}))
	return b
}

// order is a command of the browser's protocol that answers nothing.
func order[P, R any](command cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, command, params)
		return err
	})
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// look loads the page in a window of so many CSS pixels; scale is how many device pixels each has: a zoom of
// 200 % of a window is half its width at twice the scale.
func (b *browser) look(url string, width, height int64, scale float64, dark bool) {
	b.t.Helper()
	b.window(width, height, scale, dark)
	b.do(chromedp.Navigate(url))
	b.until("the page is fed", `document.getElementById("about").textContent !== "connecting"`)
}

func (b *browser) window(width, height int64, scale float64, dark bool) {
	b.t.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	b.do(order(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width,
		Height: height, DeviceScaleFactor: scale, Mobile: width < 500}),
		order(emulation.SetEmulatedMedia,
			emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme",
				Value: scheme}}}))
}

// js is what an expression comes to.
func js[T any](b *browser, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

func (b *browser) text(selector string) string {
	b.t.Helper()
	return js[string](b, `[...document.querySelectorAll(`+quoted(selector)+`)].filter((e) => e.checkVisibility())
		.map((e) => e.innerText).join("\n")`)
}

func quoted(text string) string { return "`" + strings.ReplaceAll(text, "`", "") + "`" }

// until waits for an expression to be true.
func (b *browser) until(what, expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	poll := chromedp.Poll[bool](expression, chromedp.WithPollingInterval(50*time.Millisecond),
		chromedp.WithPollingTimeout(0))
	if _, err := chromedp.Run(ctx, poll); err != nil {
		b.shoot("failed")
		b.t.Fatalf("%s: %v; the page says:\n%s", what, err, b.text("body"))
	}
}

// says waits for a text to be seen in what selector selects.
func (b *browser) says(selector, text string) {
	b.t.Helper()
	b.until(selector+" says "+text, `[...document.querySelectorAll(`+quoted(selector)+`)]
		.some((e) => e.checkVisibility() && e.innerText.includes(`+quoted(text)+`))`)
}

// shoot leaves a picture of the whole page.
func (b *browser) shoot(name string) {
	b.t.Helper()
	folder := os.Getenv("PAGE_SHOTS")
	if folder == "" {
		return
	}
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		b.t.Fatal(err)
	}
	path := filepath.Join(folder, strings.ReplaceAll(b.t.Name(), "/", "-")+"-"+name+".png")
	if err := os.WriteFile(path, picture, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// noSideways fails the test where the page must be moved sideways to be read.
func (b *browser) noSideways() {
	b.t.Helper()
	over := js[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`)
	if over > 0 {
		b.shoot("sideways")
		b.t.Errorf("the page is %d pixels wider than its window", over)
	}
}
