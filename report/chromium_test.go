package report_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
)

// chromium is a browser without a screen, asked over a pair of pipes (the DevTools protocol, a JSON message and a NUL each).
type chromium struct {
	t       *testing.T
	in      *os.File
	from    *os.File
	out     *bufio.Reader
	id      int
	session string
	events  []event
}

type event struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// browserPatience is how long one answer of the browser may take on a machine that has other things to do.
const browserPatience = 60 * time.Second

// openChromium starts one, or skips the test.
func openChromium(t *testing.T) *chromium {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "headless_shell"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		t.Skip("needs chromium (Debian: apt-get install --no-install-recommends chromium)")
	}
	toIn, toOut, err := os.Pipe()
	must.Do(t, err)
	fromIn, fromOut, err := os.Pipe()
	must.Do(t, err)
	c := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run", "--disable-background-networking",
		"--remote-debugging-pipe", "--user-data-dir="+t.TempDir(), "about:blank")
	for _, f := range []*os.File{toIn, fromOut} { // a browser waits in read
		must.Do(t, syscall.SetNonblock(int(f.Fd()), false))
	}
	c.ExtraFiles = []*os.File{toIn, fromOut} // 3 and 4
	if err := c.Start(); err != nil {
		t.Skipf("chromium does not start: %v", err)
	}
	_, _ = toIn.Close(), fromOut.Close()
	t.Cleanup(func() {
		_ = toOut.Close()
		_ = c.Process.Kill()
		_ = c.Wait()
		_ = fromIn.Close()
	})
	b := &chromium{t: t, in: toOut, from: fromIn, out: bufio.NewReader(fromIn)}
	var targets struct {
		TargetInfos []struct{ TargetID, Type string }
	}
	b.call("Target.getTargets", nil, &targets)
	for _, x := range targets.TargetInfos {
		if x.Type == "page" {
			var s struct{ SessionID string }
			b.call("Target.attachToTarget", map[string]any{"targetId": x.TargetID, "flatten": true}, &s)
			b.session = s.SessionID
			break
		}
	}
	if b.session == "" {
		t.Fatal("chromium has no page")
	}
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// call asks and waits for the answer; events that come meanwhile are kept.
func (b *chromium) call(method string, params map[string]any, into any) {
	b.t.Helper()
	b.id++
	m := map[string]any{"id": b.id, "method": method}
	if params != nil {
		m["params"] = params
	}
	if b.session != "" {
		m["sessionId"] = b.session
	}
	data := must.Get(json.Marshal(m))(b.t)
	if _, err := b.in.Write(append(data, 0)); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	for {
		a := b.read()
		if a.ID != b.id {
			continue
		}
		if a.Error != nil {
			b.t.Fatalf("%s: %s", method, a.Error)
		}
		if into != nil {
			if err := json.Unmarshal(a.Result, into); err != nil {
				b.t.Fatalf("%s: %v", method, err)
			}
		}
		return
	}
}

type answer struct {
	ID     int             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
	event
}

// read takes one message.
func (b *chromium) read() *answer {
	b.t.Helper()
	must.Do(b.t, b.from.SetReadDeadline(time.Now().Add(browserPatience)))
	data, err := b.out.ReadBytes(0)
	if err != nil {
		b.t.Fatalf("chromium says no more: %v", err)
	}
	a := &answer{}
	must.Do(b.t, json.Unmarshal(bytes.TrimSuffix(data, []byte{0}), a))
	if a.Method != "" {
		b.events = append(b.events, a.event)
	}
	return a
}

// open loads a page and waits until it is there.
func (b *chromium) open(html []byte) {
	b.t.Helper()
	name := filepath.Join(b.t.TempDir(), "page.html")
	must.Do(b.t, os.WriteFile(name, html, 0o644))
	b.events = nil
	b.call("Page.navigate", map[string]any{"url": "file://" + name}, nil)
	for seen := 0; ; b.read() {
		for ; seen < len(b.events); seen++ {
			if b.events[seen].Method == "Page.loadEventFired" {
				return
			}
		}
	}
}

// size is that of the window.
func (b *chromium) size(wide, high int, phone bool) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": wide, "height": high, "deviceScaleFactor": 1, "mobile": phone}, nil)
}

// scheme asks for light or dark colours.
func (b *chromium) scheme(name string) {
	b.t.Helper()
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": name}}}, nil)
}

// eval gives what an expression is.
func (b *chromium) eval(expression string, into any) {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, r.ExceptionDetails)
	}
	if into == nil {
		return
	}
	if err := json.Unmarshal(r.Result.Value, into); err != nil {
		b.t.Fatalf("%s: %v in %s", expression, err, r.Result.Value)
	}
}

// text is eval for a string.
func (b *chromium) text(expression string) string {
	b.t.Helper()
	var s string
	b.eval("String("+expression+")", &s)
	return s
}

// press is a key.
func (b *chromium) press(key string) {
	b.t.Helper()
	down := map[string]any{"type": "keyDown", "key": key}
	if len(key) == 1 {
		down["text"] = key
	}
	b.call("Input.dispatchKeyEvent", down, nil)
	b.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key}, nil)
}

// screenshot keeps a picture of the window, where ENILAB_SCREENSHOTS names a folder.
func (b *chromium) screenshot(name string) {
	b.t.Helper()
	folder := os.Getenv("ENILAB_SCREENSHOTS")
	if folder == "" {
		return
	}
	var r struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"format": "png"}, &r)
	b.keep(filepath.Join(folder, name+".png"), r.Data)
}

// pdf prints, and gives how many bytes that makes.
func (b *chromium) pdf(name string) int {
	b.t.Helper()
	var r struct{ Data string }
	b.call("Page.printToPDF", map[string]any{"printBackground": true}, &r)
	if folder := os.Getenv("ENILAB_SCREENSHOTS"); folder != "" {
		b.keep(filepath.Join(folder, name+".pdf"), r.Data)
	}
	return len(r.Data)
}

func (b *chromium) keep(name, data string) {
	b.t.Helper()
	raw, err := base64.StdEncoding.DecodeString(data)
	if err == nil {
		err = os.WriteFile(name, raw, 0o644)
	}
	must.Do(b.t, err)
}

// complaints are what the console was told, what was thrown, and what was asked of a network.
func (b *chromium) complaints() (out []string) {
	for _, e := range b.events {
		switch e.Method {
		case "Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled":
			out = append(out, fmt.Sprintf("%s %s", e.Method, e.Params))
		case "Network.requestWillBeSent":
			var p struct{ Request struct{ URL string } }
			if err := json.Unmarshal(e.Params, &p); err != nil || len(p.Request.URL) < 5 || p.Request.URL[:5] != "file:" && p.Request.URL[:5] != "data:" {
				out = append(out, "asked for "+p.Request.URL)
			}
		}
	}
	return out
}
