package main

import (
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

func TestParse(t *testing.T) {
	o, out, err := parse([]string{"--out", "x.tar", "--tag", "v1", "--platform", "linux/amd64", "--platform", "linux/arm64", "--laboratory", "--dir", "d", "--roots", "r"}, os.Stderr)
	if err != nil || out != "x.tar" || o.Tag != "v1" || !slices.Equal(o.Platforms, []string{"linux/amd64", "linux/arm64"}) || !o.Laboratory || o.Dir != "d" || o.Roots != "r" {
		t.Errorf("%+v, %s, %v", o, out, err)
	}
	if o, out, err = parse(nil, os.Stderr); err != nil || out != "bin/enilab-cni.tar" || o.Tag != "" || o.Platforms != nil {
		t.Errorf("%+v, %s, %v", o, out, err)
	}
}

// roots is a PEM file with a certificate.
func roots(t *testing.T) string {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	name := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "image.tar")
	must.Do(t, os.WriteFile(out, []byte("as it was"), 0o644))
	for _, c := range []struct {
		args []string
		code int
		say  string
	}{
		{[]string{"--help"}, exitOK, "-platform"},
		{[]string{"image.tar"}, exitUsage, `unexpected argument "image.tar"`},
		{[]string{"--size", "1"}, exitUsage, "flag provided but not defined"},
		{[]string{"--out", out, "--platform", "linux/mips"}, exitFailed, `the platform is "linux/mips"`},
		{[]string{"--out", out, "--dir", dir, "--roots", roots(t), "--platform", "linux/amd64"}, exitFailed, "expected a folder of module"},
		{[]string{"--out", filepath.Join(out, "below")}, exitFailed, "not a directory"},
	} {
		var said strings.Builder
		if code := run(c.args, &said); code != c.code || !strings.Contains(said.String(), c.say) {
			t.Errorf("mkimage %v: exit code %d, it said:\n%s", c.args, code, said.String())
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
	if text, err := os.ReadFile(out); err != nil || string(text) != "as it was" {
		t.Errorf("a failure replaced the image that was there: %q, %v", text, err)
	}
}
