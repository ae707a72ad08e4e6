// Package mutants holds what a gate has to see, and what it may not: versions of enilab that are made from its own source in the ways in which upgrades
// have gone wrong, each with the check that says so, and versions that differ in nothing that matters. `make gate-mutants` makes them and gates each.
//
//	f, err := m.Build(ctx, root, temp)      a folder: the description, and the binaries of version From and To
//	enilab gate --from enilab.yaml@1.0.0=BASE --to enilab.yaml@2.0.0=MUTANT
//
// A mutant is a change of the source (go build -overlay), of the description, or of both. It is linked into nothing.
package mutants

import "github.com/enilab/enilab/sim"

// From and To are what the two versions are called.
const (
	From = "1.0.0"
	To   = "2.0.0"
)

// Change is a text of a source file that is there once, and what becomes of it.
type Change struct{ File, Old, New string }

// Mutant is a version after, made from this source.
type Mutant struct {
	Name string
	What string // it does, as a sentence
	// Red are checks or figures of which at least one is a regression; none: the gate has to be silent.
	Red []string
	// Cause is a part of the finding's cause. Of a figure there is none.
	Cause string
	// Plays are those that show it; empty: all.
	Plays []string
	// Load says that the load shows it, and not the scenario of a change.
	Load bool
	// Changes are of the source. Flags are go build's, beside those of make build. Range is YAML, of version To alone.
	Changes []Change
	Flags   []string
	Range   string
}

// Silent says whether it is none.
func (m *Mutant) Silent() bool { return len(m.Red) == 0 }

const (
	reachable  = "every live pod is reachable"
	flows      = "no flow of a living pod is cut"
	serves     = "a daemon that runs serves"
	itself     = "a daemon ends by itself"
	dels       = "every del ends in success"
	coolDown   = "no address is reused before its cool-down"
	thirdParty = "what third parties put on a node stays"
	// line is any expectation of the scenario.
	line = "line "
)

// initialized is where `ipamd init` has done its own.
const initialized = "	for i := range plan.Ops {\n		log.Info("

// initImports are what changes of initialize.go use.
func initImports(packages string) Change {
	return Change{"impl/daemon/initialize.go", "	\"github.com/enilab/enilab/impl/settings\"\n", "	\"github.com/enilab/enilab/impl/settings\"\n" + packages}
}

// All are the mutants, and behind them what is none.
func All() []Mutant {
	return []Mutant{
		{Name: "dies-at-start", What: "The daemon ends with a nil pointer once it has begun.", Red: []string{itself, serves}, Cause: "upgrade", Plays: []string{"upgrade"},
			Changes: []Change{{"impl/daemon/begin.go", "	d.kernel.watchEvents()\n", "	var none *daemon\n	none.cut = true\n"}}},
		{Name: "serves-late", What: "The daemon waits for ten minutes before it listens.", Red: []string{serves}, Cause: "upgrade", Plays: []string{"upgrade"},
			Changes: []Change{{"impl/daemon/run.go", "import \"context\"\n", "import (\n	\"context\"\n	\"time\"\n)\n"}, {"impl/daemon/run.go", "	d, err := newDaemon(c)\n", "	time.Sleep(10 * time.Minute)\n	d, err := newDaemon(c)\n"}}},
		{Name: "forgets-what-it-gave-out", What: "The daemon does not read ipam.json: what was released a moment ago is free.", Red: []string{coolDown}, Cause: "upgrade", Plays: []string{"upgrade"},
			Changes: []Change{{"impl/daemon/stores.go", "	in.Rows = append(in.Rows, rows...)\n", "	if kind != ipam.RunStore {\n		in.Rows = append(in.Rows, rows...)\n	}\n"},
				{"impl/ipam/policy.go", "Forgotten: coolDownOrConsistency,", "Forgotten: func(Settings, bool) time.Duration { return 0 },"}}},
		{Name: "removes-what-older-pods-need", What: "The init step takes the rules of pods away, and nobody puts them back.", Red: []string{reachable, flows}, Cause: "upgrade", Plays: []string{"upgrade"},
			Changes: []Change{initImports("	\"github.com/vishvananda/netlink\"\n"), {"impl/daemon/initialize.go", initialized,
				"	rules, _ := netlink.RuleList(netlink.FAMILY_V4)\n	for _, r := range rules {\n		if r.Priority == dataplane.PriorityFromPod || r.Priority == dataplane.PriorityToPod {\n			_ = netlink.RuleDel(&r)\n		}\n	}\n" + initialized},
				{"impl/ipam/policy.go", "Repair:    allThatLacks,", "Repair:    func(dataplane.Plan) dataplane.Plan { return dataplane.Plan{} },"}}},
		{Name: "refuses-the-older-plugin", What: "The daemon serves no plugin of the version before, which stays on the node.", Red: []string{dels, line}, Cause: "upgrade", Plays: []string{"upgrade"},
			Changes: []Change{{"impl/ipam/policy.go", "Speaks:    neighbourVersions,", "Speaks:    func(Verb, int, int) bool { return false },"}},
			Range:   "upgrade:\n  steps: [stop, files, init, start, serves, conflist]\n"},
		{Name: "cannot-delete-older-pods", What: "A DEL of a pod that the version before has made is an error.", Red: []string{dels}, Cause: "upgrade", Plays: []string{"upgrade"},
			Changes: []Change{{"impl/daemon/stores.go", "	in.Rows = append(in.Rows, rows...)\n", "	in.Rows = append(in.Rows, rows...)\n	for i := range rows {\n		older[rows[i].Att] = true\n	}\n"},
				{"impl/daemon/begin.go", "// begin reads the records", "var older = map[ipam.Attachment]bool{}\n\n// begin reads the records"},
				{"impl/daemon/requests.go", "	case ipc.Del:\n		rs.step(", "	case ipc.Del:\n		if older[q.Attachment()] && r.done == nil {\n			delete(rs.open, r.req)\n			r.pod.drop()\n			rs.respond(r.caller, refusal(ipam.CodeIO, \"the allocation lacks a field\"))\n			return\n		}\n		rs.step("}}},
		{Name: "another-veth-name", What: "Host veths have names that begin otherwise.", Red: []string{sim.FactVeth}, Cause: "upgrade", Plays: []string{"upgrade"},
			Range: "daemon:\n  environment: {AWS_VPC_K8S_CNI_VETHPREFIX: net}\n"},
		{Name: "another-mtu", What: "Pods have an MTU of 1500.", Red: []string{sim.FactMTU}, Cause: "upgrade", Plays: []string{"upgrade"},
			Range: "daemon:\n  environment: {AWS_VPC_ENI_MTU: \"1500\"}\n"},
		{Name: "another-snat", What: "Pods' packets leave the VPC with their own address.", Red: []string{sim.FactSource}, Cause: "upgrade", Plays: []string{"upgrade"},
			Range: "daemon:\n  environment: {AWS_VPC_K8S_CNI_EXTERNALSNAT: \"true\"}\n"},
		{Name: "more-rights-needed", What: "Before it changes anything at EC2 the daemon asks for security groups, which the role of the version before does not allow.", Red: []string{line}, Cause: "upgrade", Plays: []string{"upgrade"},
			Changes: []Change{{"impl/cloud/call.go", "	switch q.Action {\n", "	if _, err := api.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{}); err != nil {\n		return ipam.Result{}, err\n	}\n	switch q.Action {\n"}}},
		{Name: "clears-chains", What: "The init step flushes nftables, as firewall scripts do.", Red: []string{thirdParty}, Cause: "upgrade", Plays: []string{"upgrade"},
			Changes: []Change{initImports("	\"github.com/google/nftables\"\n"), {"impl/daemon/initialize.go", initialized,
				"	if c, err := nftables.New(); err == nil {\n		c.FlushRuleset()\n		_ = c.Flush()\n	}\n" + initialized}}},
		{Name: "clears-marks", What: "The init step flushes conntrack, and with it every connection's mark.", Red: []string{thirdParty}, Cause: "upgrade", Plays: []string{"upgrade"},
			Changes: []Change{initImports("	\"github.com/vishvananda/netlink\"\n"), {"impl/daemon/initialize.go", initialized, "	_ = netlink.ConntrackTableFlush(netlink.ConntrackTable)\n" + initialized}}},
		{Name: "clears-sysctls", What: "The init step sets a sysctl that a third party has set.", Red: []string{thirdParty}, Cause: "upgrade", Plays: []string{"upgrade"},
			Changes: []Change{{"impl/daemon/initialize.go", initialized, "	_ = os.WriteFile(\"/proc/sys/net/ipv4/tcp_keepalive_time\", []byte(\"7200\"), 0o644)\n" + initialized}}},
		{Name: "an-eni-more", What: "Twelve addresses more than the target are kept, which take an interface more.", Red: []string{"ENIs in the end"}, Load: true,
			Changes: []Change{{"impl/ipam/policy.go", "	want := max(used+s.Settings.WarmIPTarget,", "	want := max(12+used+s.Settings.WarmIPTarget,"}}},
		{Name: "calls-doubled", What: "Before each of its requests that change something the daemon describes what is there, five times.", Red: []string{"EC2 calls, DescribeNetworkInterfaces"}, Load: true,
			Changes: []Change{{"impl/cloud/call.go", "	switch q.Action {\n", "	for range 5 {\n		_, _ = api.DescribeNetworkInterfaces(ctx, &ec2.DescribeNetworkInterfacesInput{})\n	}\n	switch q.Action {\n"}}},
		{Name: "errors-doubled", What: "Before each of its requests that change something the daemon asks for an interface that there is not.", Red: []string{"EC2 errors, InvalidNetworkInterfaceID.NotFound"}, Load: true,
			Changes: []Change{{"impl/cloud/call.go", "	switch q.Action {\n", "	_, _ = api.DescribeNetworkInterfaces(ctx, &ec2.DescribeNetworkInterfacesInput{NetworkInterfaceIds: []string{\"eni-00000000000000001\"}})\n	switch q.Action {\n"}}},
		{Name: "add-twice-as-slow", What: "The plugin waits for a while in each ADD.", Red: []string{"ADD, p50"}, Load: true,
			Changes: []Change{{"impl/plugin/add.go", "func (v *verb) add() error {\n", "func (v *verb) add() error {\n	time.Sleep(150 * time.Millisecond)\n"},
				{"impl/plugin/add.go", "import (\n", "import (\n	\"time\"\n"}}},
		{Name: "memory-of-the-cluster", What: "The daemon keeps every pod of the API server, decoded.", Red: []string{"memory of the daemon"}, Load: true,
			Changes: []Change{{"impl/kube/pods.go", "url.Values{\"fieldSelector\": {\"spec.nodeName=\" + r.cfg.Node}, \"limit\": {strconv.Itoa(podsPerPage)}}\n",
				"url.Values{\"limit\": {strconv.Itoa(podsPerPage)}}\n	everything = nil\n"},
				{"impl/kube/pods.go", "		if page.Kind != \"PodList\" {\n", "		var whole map[string]any\n		if err := r.get(ctx, \"/api/v1/pods\", query, mostPage, &whole); err != nil {\n			return nil, err\n		}\n		everything = append(everything, whole)\n		if page.Kind != \"PodList\" {\n"},
				{"impl/kube/pods.go", "// Pods are the pods bound", "var everything []map[string]any\n\n// Pods are the pods bound"}}},
		{Name: "no-conflist", What: "The runtime's configuration is written where the runtime does not look.", Red: []string{serves}, Cause: "new version", Plays: []string{"new"},
			Range: "conflist: {to: /var/tmp}\n"},

		{Name: "rebuilt", What: "The same source, with another build ID.", Flags: []string{"-ldflags=-s -w -buildid=another"}},
		{Name: "other-log-text", What: "The daemon logs other words.", Changes: []Change{{"impl/daemon/begin.go", "d.log.Info(\"ipamd starts\",", "d.log.Info(\"the daemon of this node begins\","}}},
		{Name: "another-order-of-start", What: "The daemon watches intents before nodes and kernel.",
			Changes: []Change{{"impl/daemon/begin.go", "	d.kernel.watchEvents()\n	d.watchNode()\n	d.intents.begin()\n", "	d.intents.begin()\n	d.watchNode()\n	d.kernel.watchEvents()\n"}}},
		{Name: "other-file-times", What: "The same files, of another day."},
		{Name: "default-written-out", What: "A setting is written out with its default.", Range: "daemon:\n  environment: {AWS_VPC_ENI_MTU: \"9001\"}\n"},
		{Name: "slower-by-a-little", What: "The plugin takes four milliseconds more, some 5 % of an ADD.",
			Changes: []Change{{"impl/plugin/add.go", "func (v *verb) add() error {\n", "func (v *verb) add() error {\n	time.Sleep(4 * time.Millisecond)\n"},
				{"impl/plugin/add.go", "import (\n", "import (\n	\"time\"\n"}}},
	}
}
