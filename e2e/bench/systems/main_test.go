package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/scn"
)

// TestTable: a figure is the median of the rounds, beside the first system.
func TestTable(t *testing.T) {
	x := &table{names: []string{"ours", "theirs", "none"}, rows: usualRows, of: map[string]map[string][]figures{}}
	for _, add := range []float64{0.5, 0.01, 0.02} {
		x.add("ours", "steady", &figures{Add: add})
		x.add("theirs", "steady", &figures{Add: 2 * add, Memory: 60e6})
		x.add("none", "steady", &figures{})
		for _, name := range x.names {
			x.add(name, "burst", &figures{Failed: 7, Calls: map[string]int64{"A": 2, "B": 3}})
		}
	}
	var out strings.Builder
	must.Do(t, x.print(&out, 3))
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"the median of 3 rounds", "WHAT ours theirs none ours/theirs ours/none", "ADD, one by one, p50, ms 20 40 0 0.50 -", "ADDs that failed 7 7 7 1.00 1.00", "requests to EC2 5 5 5"} {
		if !strings.Contains(text, want) {
			t.Errorf("expected %q in\n%s", want, out.String())
		}
	}
}

// TestAtHand: without a folder of systems there are ours and ptp, of the version that this repository requires.
func TestAtHand(t *testing.T) {
	t.Setenv("ENILAB_SYSTEMS", t.TempDir())
	if got := atHand(t.Context()); !slices.Equal(got, []string{"enilab", ptp}) {
		t.Errorf("of an empty folder: %v", got)
	}
	mod, err := os.ReadFile(filepath.Join("..", "..", "..", "go.mod"))
	if err != nil || !strings.Contains(string(mod), "containernetworking/plugins v"+strings.TrimPrefix(ptp, "ptp@")+" ") {
		t.Errorf("go.mod requires another version than %s: %v", ptp, err)
	}
}

// TestScenarios: they can be played.
func TestScenarios(t *testing.T) {
	dir := t.TempDir()
	names, err := writeSupply(dir)
	if err != nil || len(names) != 2*len(supplyModes) {
		t.Fatalf("%v, %v", names, err)
	}
	for i := range names {
		names[i] = filepath.Join(dir, names[i]+".scn")
	}
	for _, name := range append(names, "steady.scn", "burst.scn") {
		data := must.Get(os.ReadFile(name))(t)
		f, err := scn.Parse(name, data)
		if err == nil {
			_, err = sim.Check(f)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// TestSupplyRows: each row is of a scenario that is played, and what only looks is no change.
func TestSupplyRows(t *testing.T) {
	names := must.Get(writeSupply(t.TempDir()))(t)
	for _, r := range supplyRows() {
		if !slices.Contains(names, r.scenario) {
			t.Errorf("%s: no scenario %s", r.what, r.scenario)
		}
	}
	f := &figures{Calls: map[string]int64{"DescribeSubnets": 9, "GetSubnetCidrReservations": 9, "AssignPrivateIpAddresses": 2, "CreateNetworkInterface": 1}}
	if n := changes(f); n != 3 {
		t.Errorf("%v requests change something, expected 3", n)
	}
}
