package vm

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

// TestChannel: the host reads what the machine wrote, in order; what does not fit is refused, and the exit code always fits.
func TestChannel(t *testing.T) {
	mem := make([]byte, textRoom+1<<16)
	host, guest := &channel{mem: mem}, &channel{mem: mem}
	if _, err := guest.job(); err == nil {
		t.Error("memory without a job was taken for one")
	}
	must.Do(t, host.prepare(&Job{Args: []string{"run", "x.scn"}, Seed: 7}))
	j, err := guest.job()
	if err != nil || j.Seed != 7 || !slices.Equal(j.Args, []string{"run", "x.scn"}) {
		t.Fatalf("found the job %+v, %v", j, err)
	}
	var got []string
	read := func() error {
		return host.read(func(kind uint32, data []byte) error {
			got = append(got, string(rune('0'+kind))+string(data[:min(len(data), 8)]))
			return nil
		})
	}
	must.Do(t, guest.write(recordStdout, []byte("held\n")))
	must.Do(t, read())
	must.Do(t, guest.write(recordStderr, nil))
	must.Do(t, guest.write(recordFile, []byte("a.pcap")))
	if err := guest.write(recordData, make([]byte, 1<<16)); !errors.Is(err, errFull) {
		t.Errorf("expected that it is full, found %v", err)
	}
	must.Do(t, guest.write(recordStdout, make([]byte, 2*maxRecord))) // text still fits
	for guest.write(recordStdout, make([]byte, 64)) == nil {
	}
	must.Do(t, guest.write(recordExit, []byte("1")))
	must.Do(t, read())
	if len(got) < 6 || !slices.Equal(got[:3], []string{"1held\n", "2", "3a.pcap"}) || got[len(got)-1] != "51" {
		t.Errorf("found the records %q", got[:min(len(got), 10)])
	}
	if err := (&channel{mem: mem}).prepare(&Job{Stdin: make([]byte, len(mem))}); err == nil {
		t.Error("a job larger than the memory was taken")
	}
}

// TestDifference: the first place of each file is named, with both texts.
func TestDifference(t *testing.T) {
	run := func(out, packets string, code int) *Played {
		return &Played{Result: &Result{Code: code}, Stdout: []byte(out), Files: map[string][]byte{"a/router.pcap": []byte(packets)}}
	}
	a := run("one\ntwo\nthree\n", "\x00\x01\x02", 0)
	if d := Difference(a, run("one\ntwo\nthree\n", "\x00\x01\x02", 0)); d != "" {
		t.Errorf("the same is told apart: %s", d)
	}
	d := Difference(a, run("one\ntow\nthree\n", "\x00\x01\x03", 1))
	for _, want := range []string{`standard output, line 2 (byte 5)`, `first   "two"`, `second  "tow"`, "a/router.pcap, byte 2", "first   02", "second  03", "exit code: 0 in the first run, 1 in the second"} {
		if !strings.Contains(d, want) {
			t.Errorf("expected %q in\n%s", want, d)
		}
	}
	b := run("one\ntwo\n", "\x00\x01\x02", 0)
	b.Files = nil
	if d := Difference(a, b); !strings.Contains(d, "(it ends here)") || !strings.Contains(d, "only the first run has it") {
		t.Error(d)
	}
}

// TestArguments: nothing in an emulator's command line is the host's.
func TestArguments(t *testing.T) {
	f := files{"/k", "/i", "/c", "/o"}
	line := strings.Join(arguments("amd64", f, 1<<20, "enilab.seed=7"), " ")
	for _, want := range []string{"-nodefaults", "-no-user-config", "shift=1,sleep=off", "clock=vm", "-rdrand,-rdseed", "random.trust_cpu=off", "rdinit=/init", "enilab.seed=7", "-nic none", "-seed 1"} {
		if !strings.Contains(line, want) {
			t.Errorf("expected %s in %s", want, line)
		}
	}
	if arm := strings.Join(arguments("arm64", f, 1<<20, ""), " "); !strings.Contains(arm, "-machine virt") || !strings.Contains(arm, "ttyAMA0") {
		t.Error(arm)
	}
}
