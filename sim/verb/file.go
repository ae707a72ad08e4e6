package verb

import (
	"slices"
	"strconv"
	"strings"

	"github.com/enilab/enilab/sim/scn"
)

// File is what is known of a scenario while its actions are checked: what its lines will have done, whatever happens.
type File struct {
	Type    string // of the nodes' instances
	Nodes   int
	Subnets int  // of the cluster
	Version int  // of the daemons that it begins with
	Whole   bool // no line is missing
	Headed  bool // nor is the cluster line

	Most     map[string]int  // workload: the most pods that it ever has
	Held     map[int]bool    // nodes whose daemon some line keeps down; 0 is all
	Hung     map[string]bool // pods of which some line hangs a process
	Sockets  bool            // some line has the runtime's socket be another one than the right one
	Versions map[int]bool    // that some line exchanges daemon or plugin for; 0 is a system's
	Settles  bool            // the file gives time to settle

	Made    []string // workloads, up to the line that is checked
	Systems []string // that lines upgrade to, as NAME@WHERE

	Errors scn.ErrorList
	pos    scn.Pos // of the verb that is checked
}

// NewFile knows nothing yet.
func NewFile(whole, headed bool) *File {
	return &File{Whole: whole, Headed: headed, Subnets: 1, Most: map[string]int{}, Held: map[int]bool{}, Hung: map[string]bool{},
		Versions: map[int]bool{}}
}

// AtLeast notes that a workload has so many pods at some time.
func (f *File) AtLeast(workload string, pods int) { f.Most[workload] = max(f.Most[workload], pods) }

// Check refuses an action that cannot strike, whatever happens.
func (f *File) Check(pos scn.Pos, a *Act) {
	f.pos = pos
	if n := a.Int("node"); n > f.Nodes {
		f.bad("", "there is no node-%d: the cluster has nodes=%d", n, f.Nodes)
	}
	if n := a.Int("subnet"); a.Text("subnet") != "" && (n < 1 || n > f.Subnets) && f.Headed {
		f.bad("name it with subnets=CIDR,... on the cluster line", "there is no subnet %d: the cluster has %d", n, f.Subnets)
	}
	for _, name := range []string{"times", "faults"} {
		if a.Text(name) != "" && a.Int(name) == 0 {
			f.bad("write "+name+"=1 or more", "%s %s=0 strikes nobody", a.Verb, name)
		}
	}
	for _, name := range []string{"for", "by"} {
		if a.Text(name) != "" && a.Duration(name) == 0 {
			f.bad("such as "+name+"=30s", "%s %s=0s strikes nobody", a.Verb, name)
		}
	}
	if a.Of.Check != nil {
		a.Of.Check(f, a)
	}
}

// bad enters a mistake of the action that is checked.
func (f *File) bad(hint, format string, args ...any) {
	f.Errors = append(f.Errors, scn.Errorf(f.pos, hint, format, args...))
}

// isMade refuses an action about a workload that no line before it has made.
func (f *File) isMade(name string) {
	if !slices.Contains(f.Made, name) && f.Whole {
		hint := "start pods NAME COUNT on node-1, or kube create NAME COUNT, makes one"
		if near := scn.Suggest(name, f.Made); near != "" {
			hint = "did you mean " + strconv.Quote(near) + "?"
		}
		f.bad(hint, "no workload %q was made before this line", name)
	}
}

// Pod refuses a pod that can never be there.
func (f *File) Pod(pos scn.Pos, name string) bool {
	if !f.Whole {
		return true
	}
	f.pos = pos
	most, workload := -1, ""
	for _, n := range f.Made {
		number, ok := strings.CutPrefix(name, n+"-")
		i, err := strconv.Atoi(number)
		if !ok || err != nil || i < 0 {
			continue
		}
		if i < f.Most[n] {
			return true
		}
		if f.Most[n] > most {
			most, workload = f.Most[n], n
		}
	}
	if workload != "" {
		f.bad("the last one is "+workload+"-"+strconv.Itoa(max(0, most-1)),
			"there is never a pod %s: workload %s is scaled to %d at most", name, workload, most)
		return false
	}
	f.bad("a pod is called WORKLOAD-0, WORKLOAD-1 and so on; there are "+strings.Join(f.Made, ", "),
		"no workload of pod %q was made before this line", name)
	return false
}
