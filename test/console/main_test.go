package console_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/google/uuid"

	"github.com/sharedos-dev/operator/console"
	"github.com/sharedos-dev/operator/console/consoletest"
)

// chromium starts a browser, or skips where there is none; under CI that fails.
func chromium(t *testing.T) context.Context {
	t.Helper()
	var program string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			program = found
			break
		}
	}
	if program == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("chromium is needed")
		}
		t.Skip("chromium is needed")
	}
	opts := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(program), chromedp.UserDataDir(t.TempDir()))
	if os.Geteuid() == 0 {
		opts = append(opts, chromedp.NoSandbox) // root has no sandbox to give
	}
	allocator, cancel := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), opts...)
	t.Cleanup(cancel)
	browser, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	if err := chromedp.Do(browser); err != nil {
		t.Fatalf("start %s: %v", program, err)
	}
	return browser
}

// serve serves the console over a world, until the test ends.
func serve(t *testing.T, world *consoletest.Reader) string {
	t.Helper()
	handler, err := console.NewHandler(console.Options{Reader: world, Clock: consoletest.Now, NewID: uuid.NewString})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return s.URL
}

// tab is one page of the browser, and what went wrong in it.
type tab struct {
	context.Context
	base   string
	mu     sync.Mutex
	faults []string
}

// tabOf opens a page that watches for messages, exceptions, violations of the
// content policy, failed loads, and requests to anywhere but base.
func tabOf(browser context.Context, t *testing.T, base string) *tab {
	t.Helper()
	page := &tab{base: base}
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	page.Context = ctx
	if err := chromedp.Listen(ctx, page.watch); err != nil {
		t.Fatal(err)
	}
	_, network := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	_, log := chromedp.Call(ctx, log.Enable, cdp.Empty{})
	_, runtime := chromedp.Call(ctx, runtime.Enable, cdp.Empty{})
	if err := errors.Join(network, log, runtime); err != nil {
		t.Fatal(err)
	}
	return page
}

func (p *tab) watch(event any) {
	fault := ""
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		fault = "the page wrote to the console"
	case *runtime.EventExceptionThrown:
		fault = "exception: " + e.ExceptionDetails.Text
	case *log.EventEntryAdded:
		fault = fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, p.base+"/") {
			fault = "a request left the page: " + e.Request.URL
		}
	case *network.EventLoadingFailed:
		fault = "a load failed: " + e.ErrorText
	}
	if fault != "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.faults = append(p.faults, fault)
	}
}

// done returns the faults so far, and forgets them.
func (p *tab) done() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.faults
	p.faults = nil
	return out
}

// open loads a page at a width, in a colour scheme.
func (p *tab) open(path string, width int64, scheme string) error {
	_, err := chromedp.Call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	if err != nil {
		return err
	}
	if err := chromedp.Do(p, chromedp.EmulateViewport(width, 800)); err != nil {
		return err
	}
	response, err := chromedp.Run(p, chromedp.NavigateResponse(p.base+path))
	if err == nil && response.Status != http.StatusOK {
		err = fmt.Errorf("%s answered %d", path, response.Status)
	}
	return err
}

// shoot writes a picture of the whole page.
func (p *tab) shoot(dir, name string) error {
	picture, err := chromedp.Run(p, chromedp.FullScreenshot(100))
	if err != nil {
		return fmt.Errorf("take a picture: %w", err)
	}
	if len(picture) == 0 {
		return errors.New("the picture is empty")
	}
	return os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o600)
}

// screenshots is the folder for pictures.
func screenshots(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("SHAREDOS_SCREENSHOTS")
	if dir == "" {
		return t.TempDir()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
