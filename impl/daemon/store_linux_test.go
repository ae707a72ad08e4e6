package daemon

import (
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/internal/must"
)

// TestBadRecords: whatever is in the way, the daemon comes up, says so, sets it aside and frees nothing.
func TestBadRecords(t *testing.T) {
	good := must.Get(ipam.EncodeRun(0, 0, []ipam.Row{row("10.0.0.20", "one")}))(t)
	write := func(data string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			must.Do(t, os.WriteFile(path, []byte(data), 0o600))
		}
	}
	for name, make := range map[string]func(*testing.T, string){
		"truncated":      write(string(good[:len(good)/2])),
		"empty":          write(""),
		"foreign":        write("#!/bin/sh\n"),
		"null":           write("null"),
		"future version": write(`{"version":"vpc-cni-ipam/9","allocations":[]}`),
		"no address":     write(`{"version":"vpc-cni-ipam/1","allocations":[{"networkName":"n","containerID":"c","ifName":"i","ipv4":"pod"}]}`),
		"a directory": func(t *testing.T, path string) {
			must.Do(t, os.MkdirAll(filepath.Join(path, "sub"), 0o755))
		},
		"a dangling link": func(t *testing.T, path string) {
			must.Do(t, os.Symlink("nowhere", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 3).start().serves()
			one := r.add("one").Address
			r.end()
			path := filepath.Join(r.c.RunDir, "ipam.json")
			must.Do(t, os.RemoveAll(path))
			make(t, path)
			r.record = &buffer{}
			r.c.Record = r.record
			r.c.Settings.CoolDown = 100 * time.Millisecond // so long all rest that nobody has
			r.start().serves()
			if v := r.view(); v.View.Assigned != 1 || v.Rows[0].Address != one && len(v.Rows) == 1 {
				t.Errorf("rebuilt: %d assigned", v.View.Assigned)
			}
			if again := r.add("one").Address; again != one {
				t.Errorf("the pod has %v, before %v", again, one)
			}
			if !strings.Contains(r.log.String(), "checkpoint-unread") {
				t.Error("nobody says that a record was unreadable")
			}
			if !exists(path + ".bad-1") {
				t.Errorf("it was not set aside\n%s", r.log)
			}
			r.add("two")
			if rows := r.rows(); len(rows) < 2 {
				t.Errorf("the new record has %d rows", len(rows))
			}
		})
	}
}

// TestReadOnlyRecord: a record that can neither be read nor set aside nor written (procfs refuses a rename as a read-only file system
// does). The daemon is up, frees nothing, refuses ADDs in words that no runtime takes for success, and says why.
func TestReadOnlyRecord(t *testing.T) {
	r := newRig(t, 3)
	r.c.Checkpoint = "/proc/version"
	r.c.Settings.CoolDown = 100 * time.Millisecond // so long all rest that nobody has
	r.start().serves()
	out := r.must(addOf("one"), passed(t)...)
	if out.Code != ipam.CodeTryAgain || !strings.Contains(out.Text, "/proc/version") || strings.Contains(out.Text, "no such file") {
		t.Errorf("add: %+v", out)
	}
	r.eventually("it says that nothing can be set aside or written", func() bool {
		return strings.Contains(r.log.String(), "could not be set aside") && strings.Contains(r.log.String(), "the node is impaired")
	})
	if out := r.status(); !out.Ready || len(out.Reasons) == 0 {
		t.Errorf("status: %+v", out)
	}
}

func row(address, id string) ipam.Row {
	return ipam.Row{Address: netip.MustParseAddr(address), State: ipam.Assigned, Att: ipam.Attachment{Network: "aws-cni", ContainerID: id, IfName: "eth0"}}
}

// TestUpstreamRecord: amazon-vpc-cni-k8s's checkpoint, as 1.23.1 writes it, in a folder without a marker of ours.
func TestUpstreamRecord(t *testing.T) {
	r := newRig(t, 3)
	const theirs = `{"version":"vpc-cni-ipam/1","allocations":[{"networkName":"aws-cni","containerID":"c1","ifName":"eth0","ipv4":"10.0.0.21",` +
		`"allocationTimestamp":1700000000000000000,"metadata":{"k8sPodNamespace":"default","k8sPodName":"web-0","interfacesCount":1}}]}`
	must.Do(t, os.WriteFile(filepath.Join(r.c.RunDir, "ipam.json"), []byte(theirs), 0o600))
	r.start().serves()
	if said := r.log.String(); !strings.Contains(said, "recovered-from-checkpoint attachment=aws-cni/c1/eth0 address=10.0.0.21") || !strings.Contains(said, "assigned=1 ") {
		t.Errorf("it did not serve with the pod of their record\n%s", said)
	}
	theirPod := func(row ipam.Row) bool {
		return row.Address.String() == "10.0.0.21" && row.Att.ContainerID == "c1" && row.Pod.Name == "web-0"
	}
	if rows := r.view().Rows; !slices.ContainsFunc(rows, theirPod) { // it may cool: nothing of the pod is in this kernel
		t.Errorf("rows %+v\n%s", rows, r.log)
	}
}

func TestReboot(t *testing.T) {
	r := newRig(t, 3).start().serves()
	r.add("one")
	r.end()
	if rebooted(r.c.RunDir, filepath.Join(r.c.RunDir, "ipam.json"), bootID()) {
		t.Error("a restart is taken for a reboot")
	}
	if !rebooted(r.c.RunDir, filepath.Join(r.c.RunDir, "ipam.json"), "another boot") {
		t.Error("another boot is taken for a restart")
	}
	empty := t.TempDir()
	if !rebooted(empty, filepath.Join(empty, "ipam.json"), bootID()) {
		t.Error("an empty tmpfs is taken for a restart")
	}
	must.Do(t, os.WriteFile(filepath.Join(r.c.RunDir, bootFile), nil, 0o644))
	if rebooted(r.c.RunDir, filepath.Join(r.c.RunDir, "ipam.json"), bootID()) {
		t.Error("a daemon that was killed while it wrote the marker, or had no room to, is taken for a reboot: its pods' allocations would be dropped")
	}
}

// TestGroupCommit: what comes while a write runs is one write.
func TestGroupCommit(t *testing.T) {
	r, s := gatedRig(t, 40)
	r.add("first")
	gate := make(chan struct{})
	s.mu.Lock()
	s.gate, s.sizes = gate, nil
	s.mu.Unlock()
	answers := make(chan *ipc.Response, 20)
	for i := range 20 {
		files := passed(t)
		go func() { out, _ := r.call(addOf(fmt.Sprint("pod-", i)), files...); answers <- out }()
	}
	r.eventually("20 ADDs are open", func() bool { return r.view().Requests == 20 })
	close(gate)
	for range 20 {
		if out := <-answers; out == nil || out.Code != 0 {
			t.Fatalf("add: %+v", out)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sizes) > 3 {
		t.Errorf("20 ADDs made %d writes: %v", len(s.sizes), s.sizes)
	}
	r.end()
	r.replays()
}

// TestSaveFails: an ADD whose record cannot be written is refused and leaves nothing.
func TestSaveFails(t *testing.T) {
	r, s := gatedRig(t, 3)
	r.add("one")
	s.fail(true)
	out := r.must(addOf("two"), passed(t)...)
	if out.Code != ipam.CodeTryAgain || !strings.Contains(out.Text, "the disk is full") {
		t.Errorf("add: %+v", out)
	}
	if v := r.view(); v.View.Assigned != 1 || len(v.Reasons) == 0 {
		t.Errorf("view: %d assigned, reasons %q", v.View.Assigned, v.Reasons)
	}
	s.fail(false)
	r.add("two")
	if rows := r.rows(); len(rows) < 2 {
		t.Errorf("rows: %v", rows)
	}
	r.end()
	r.replays()
}

func TestFileTakesBack(t *testing.T) {
	f := &file{path: filepath.Join(t.TempDir(), "no", "ipam.json")}
	if _, _, err := f.Read(); err != nil {
		t.Fatal(err)
	}
	one := row("10.0.0.1", "one")
	if err := f.Commit([]*ipam.Save{{Seq: 1, Put: []ipam.Row{one}}, {Seq: 2, Drop: []ipam.Key{one.Key()}, Put: []ipam.Row{row("10.0.0.2", "two")}}}); err == nil {
		t.Fatal("a file in no folder was written")
	}
	if len(f.rows) != 0 {
		t.Errorf("after a failed commit: %v", f.rows)
	}
	f.path = filepath.Join(t.TempDir(), "ipam.json")
	must.Do(t, f.Commit([]*ipam.Save{{Seq: 3, Put: []ipam.Row{one}}}))
	f.path = filepath.Join(t.TempDir(), "no", "ipam.json")
	changed := one
	changed.State = ipam.Cooling
	if err := f.Commit([]*ipam.Save{{Seq: 4, Put: []ipam.Row{changed}}, {Seq: 5, Drop: []ipam.Key{one.Key()}}}); err == nil {
		t.Fatal("a file in no folder was written")
	}
	if got := f.rows[one.Key()]; !reflect.DeepEqual(got, one) {
		t.Errorf("after a failed commit: %+v, want %+v", got, one)
	}
}

// readOnly is a store with that in it.
type readOnly struct {
	rows    []ipam.Row
	written int
	err     error
}

func (s *readOnly) Read() ([]ipam.Row, int, error) { return s.rows, s.written, s.err }
func (s *readOnly) Commit([]*ipam.Save) error      { return errors.New("it is read only") }

// TestStoresAreReadOneAfterTheOther: the node starts with the rows of all and every reason why there may be more.
// People are told of a record that another version wrote, and of no other.
func TestStoresAreReadOneAfterTheOther(t *testing.T) {
	one, two := []ipam.Row{row("10.0.0.1", "one")}, []ipam.Row{row("10.0.0.2", "two")}
	a, b := errors.New("a"), errors.New("b")
	for name, c := range map[string]struct {
		run, lib readOnly
		rows     int
		unread   string
		others   int // of another version
	}{
		"nothing":       {},
		"this version":  {run: readOnly{rows: one, written: 2}, lib: readOnly{rows: two, written: 2}, rows: 2},
		"other version": {run: readOnly{rows: one, written: 1}, lib: readOnly{rows: two, written: 3}, rows: 2, others: 2},
		"other CNI":     {run: readOnly{rows: one}, lib: readOnly{written: 1}, rows: 1, others: 1},
		"one unread":    {run: readOnly{rows: one, written: 1}, lib: readOnly{err: b}, rows: 1, unread: "b", others: 1},
		"both unread":   {run: readOnly{err: a}, lib: readOnly{err: b, written: 1}, unread: "a; b"},
	} {
		var log buffer
		kinds := map[ipam.Store]*readOnly{ipam.RunStore: &c.run, ipam.LibStore: &c.lib}
		config := Config{Version: 2, Parts: Parts{Store: func(of Store) Store { return kinds[of.(*file).kind] }}}
		s := &stores{core: &core{life: &life{c: config, log: slogTo(&log)}}}
		var in ipam.Start
		for _, kind := range []ipam.Store{ipam.RunStore, ipam.LibStore} {
			s.read(kind, &file{kind: kind}, &in)
			if s.lanes[kind].store != Store(kinds[kind]) {
				t.Errorf("%s: what is written goes to %v", name, s.lanes[kind].store)
			}
		}
		n := strings.Count(log.String(), "another version")
		if len(in.Rows) != c.rows || in.Unread != c.unread || n != c.others {
			t.Errorf("%s: %d rows, unread %q, %d of another version; expected %+v", name, len(in.Rows), in.Unread, n, c)
		}
	}
}

func TestManyBadRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "enis.json")
	for range maxBad + 3 {
		must.Do(t, os.WriteFile(path, []byte("x"), 0o600))
		f := &file{path: path, kind: ipam.LibStore}
		if _, _, err := f.Read(); err == nil {
			t.Fatal("x was read")
		}
	}
	list, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(list) != maxBad {
		t.Errorf("%d files: %v", len(list), err)
	}
}

// FuzzRecords: no file makes the reader panic; what it reads it can write and read again; what it cannot read it sets aside.
func FuzzRecords(f *testing.F) {
	one := must.Get(ipam.EncodeRun(0, 0, []ipam.Row{row("10.0.0.20", "one")}))(f)
	f.Add(one, false)
	f.Add([]byte(`{"version":"vpc-cni-ipam/1","allocations":null}`), false)
	f.Add([]byte(`{"version":"enilab-intents/1","record":2,"intents":[{"token":"a","stage":"intended"}]}`), true)
	f.Add([]byte("{"), true)
	memory := "/dev/shm" // an fsync of a disk takes as long as a hundred inputs
	if !exists(memory) {
		memory = ""
	}
	f.Fuzz(func(t *testing.T, data []byte, lib bool) {
		dir := must.Get(os.MkdirTemp(memory, "ipamd"))(t)
		defer os.RemoveAll(dir)
		s := &file{path: filepath.Join(dir, "record.json")}
		if lib {
			s.kind = ipam.LibStore
		}
		must.Do(t, os.WriteFile(s.path, data, 0o600))
		rows, _, err := s.Read()
		if err != nil {
			if len(rows) > 0 || exists(s.path) || !exists(s.path+".bad-1") {
				t.Fatalf("%d rows beside the error %v; set aside: %v", len(rows), err, exists(s.path+".bad-1"))
			}
			return
		}
		if err := s.Commit([]*ipam.Save{{Seq: 1}}); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		again := &file{path: s.path, kind: s.kind}
		if more, _, err := again.Read(); err != nil || len(more) != len(rows) {
			t.Fatalf("what was written cannot be read: %d rows, before %d: %v", len(more), len(rows), err)
		}
	})
}

// BenchmarkCommit: 110 pods, and 250 of a node with prefixes, whose free addresses are on record too: a write of those takes less
// than a millisecond on the tmpfs that the file is on.
func BenchmarkCommit(b *testing.B) {
	b.Run("110 pods", func(b *testing.B) { benchmarkCommit(b, 110, 0) })
	b.Run("250 pods in prefixes", func(b *testing.B) { benchmarkCommit(b, 250, 22) })
}

func benchmarkCommit(b *testing.B, pods, free int) {
	dir, err := os.MkdirTemp("/dev/shm", "ipamd")
	if err != nil {
		b.Skip("needs a tmpfs at /dev/shm: ", err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	f := &file{path: filepath.Join(dir, "ipam.json")}
	if _, _, err := f.Read(); err != nil {
		b.Fatal(err)
	}
	var all ipam.Save
	for i := range pods + free {
		r := row(netip.AddrFrom4([4]byte{10, 0, 1 + byte(i>>8), byte(i)}).String(), fmt.Sprintf("%064d", i))
		if r.Prefixed = free > 0; i >= pods {
			all.Put = append(all.Put, ipam.Row{Address: r.Address, State: ipam.Cooling, ENI: "eni-1", Prefixed: true})
			continue
		}
		r.Pod, r.Netns, r.Veth, r.ENI, r.Allocated = ipam.Pod{Namespace: "default", Name: fmt.Sprint("web-", i), UID: "u"}, 4026531840, "eni0123456789a", "eni-1", time.Hour
		all.Put = append(all.Put, r)
	}
	must.Do(b, f.Commit([]*ipam.Save{&all}))
	one := &ipam.Save{Put: all.Put[:1]}
	b.ResetTimer()
	for b.Loop() {
		must.Do(b, f.Commit([]*ipam.Save{one}))
	}
}

// TestRunFileIsWhatEncodeRunWrites: the file is what ipam.EncodeRun writes.
func TestRunFileIsWhatEncodeRunWrites(t *testing.T) {
	for _, version := range []int{1, 2} {
		rows := map[ipam.Key]ipam.Row{}
		var c lineCache
		var all []ipam.Row
		check := func() {
			t.Helper()
			want := must.Get(ipam.EncodeRun(version, 1_700_000_000, all))(t)
			for range 2 {
				got, err := c.encode(version, 1_700_000_000, rows)
				if err != nil || string(got) != string(want) {
					t.Fatalf("version %d, %d rows: %v\n got %s\nwant %s", version, len(all), err, got, want)
				}
			}
		}
		check()
		for i := range 12 {
			r := row(fmt.Sprintf("10.0.0.%d", 200-i), fmt.Sprint("c", i))
			r.Pod, r.Netns, r.Allocated = ipam.Pod{Namespace: "d[]", Name: "p<]&"}, 5, time.Hour
			if i%3 == 0 {
				r.State, r.ReleasedAt = ipam.Cooling, 2*time.Hour
			}
			if i == 5 {
				r.Extra = `{"future":[1,{"a":[]}],"metadata":{"more":"x"}}`
			}
			rows[r.Key()] = r
			c.changed(r.Key())
			all = append(all, r)
			check()
		}
		for i := range all { // one rests, one is gone
			k := all[i].Key()
			if i%2 == 0 {
				all[i].State, all[i].ReleasedAt = ipam.Cooling, time.Hour
				rows[k] = all[i]
				c.changed(k)
				check()
			}
		}
		for len(all) > 0 {
			k := all[len(all)/2].Key()
			all = slices.Delete(all, len(all)/2, len(all)/2+1)
			delete(rows, k)
			c.changed(k)
			check()
		}
	}
}

func TestMain(m *testing.M) {
	if args, ok := os.LookupEnv(processArgs); ok {
		os.Exit(runProcess(args))
	}
	if err := flag.Set("test.parallel", "16"); err != nil { // they wait more than they work
		panic(err)
	}
	os.Exit(m.Run())
}

// TestRecordThatCannotBeEncoded is not written: what is on disk stays, and the caller hears of it.
func TestRecordThatCannotBeEncoded(t *testing.T) {
	f := &file{path: filepath.Join(t.TempDir(), "enis.json"), kind: ipam.LibStore, version: ipam.Version}
	if _, _, err := f.Read(); err != nil {
		t.Fatal(err)
	}
	must.Do(t, f.Commit([]*ipam.Save{{Put: []ipam.Row{intentRow("a")}}}))
	if err := f.Commit([]*ipam.Save{{Put: []ipam.Row{{Intent: &ipam.Intent{}}}}}); err == nil || !strings.Contains(err.Error(), "a token") {
		t.Errorf("an intent without a token is written: %v", err)
	}
	if rows, _, err := f.Read(); err != nil || len(rows) != 1 || rows[0].Intent.Token != "a" {
		t.Errorf("the disk has %+v, %v; expected the intent that was there", rows, err)
	}
}
