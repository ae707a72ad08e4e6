// Package daemon is the daemon: the core (ipam.Node) with a kernel, a disk, EC2, a runtime and a socket around it. It contains no
// decision about an address; it carries out what the core wants and tells it what became of that.
//
// # One goroutine
//
// [Run] is the goroutine that owns the Node. Requests, outcomes and hints come to it over one channel; it takes what is there,
// steps the Node once for each, records the step, and starts the effects. Nothing in it waits for a disk, a kernel or a network,
// so a step is answered within a millisecond whatever else hangs. One thing is allowed to hold it up, and is bounded: a stream
// of the flight recorder, which must have a step before the step has a consequence.
//
//	plugin ── Add, Del, Check, GC, Gone ─┐                        ┌─ Save   one FIFO per store, group commit
//	intents ─────────────────── Del ─────┤                        ├─ Apply  one FIFO per lane, lanes at once
//	kernel ──── hint ────────────────────┼─► Step ─► record ─► ───┼─ Look   a goroutine each
//	API server ── Set ───────────────────┤                        ├─ Call   a goroutine each
//	effects ── Saved Applied Seen Called ┘                        └─ Reply  the caller's own goroutine
//
// Every timer is the loop's, by Config.Clock: a laboratory's clock jumps, and code that waits for an instant elsewhere
// would not notice. Bounds of effects (see bounds.go) are such timers too; a bound ends the effect's context, never
// the effect.
//
// # Parts
//
// Each knows some of those above it; the daemon is all of them, with the loop and what callers ask of it.
//
//	life      Config, log and clock; the loop's inbox and alarms, and every goroutine
//	core      the Node: stepped, and recorded
//	agent     the network policy agent: what it hears of which pod
//	requests  what plugins and intents ask, until the core replies and the answer is written
//	stores    records, and the Saves that wait for their disk
//	kernelIO  lanes of plans, looks at the kernel, and its events
//	remotes   calls and looks that ask a server, with their bounds
//	intents   the folder of DELs that plugins left
//	placing   the conflist
//	news      Events about the node
//	health    whether the node can take pods, and why it cannot
//	server    sockets and who has connected to them
//
// # A life
//
// Run waits for the node to be its own: the lock on RunDir (flock(2), which the kernel drops on SIGKILL), no daemon
// behind Rival, and the socket. Then it serves: from the first instant a request gets an answer, and before the core
// has recovered, that is the core's explanation. Nothing is asked of IMDS, EC2, runtime or API server before that, and
// none of them can keep a daemon from serving. After SIGTERM (the end of the context) no request is taken, what is
// under way ends or is answered within StopBound.
//
// # Records
//
// RunDir/ipam.json is RunStore, LibDir/enis.json is LibStore (ipam.EncodeRun, ipam.EncodeLib). A file is written whole:
// next to the old one, fsync, rename, fsync of the folder. One that cannot be read is set aside as NAME.bad-N, and the node
// is rebuilt from kernel and runtime; nothing is freed for it. RunDir/boot is the marker by which a reboot is known: the
// tmpfs loses it, or it names another boot.
//
// # What a node gets
//
// The init step installs the CNI plugins (package install). The conflist (package conflist) is written when this life serves for the first time, by
// write-and-rename, with whatever others have chained into it, and stays at the end: a runtime without one reports the network down (rule J).
//
// # Whose list is it
//
// A runtime's list is believed when it holds the daemon's own sandbox (rule A). A daemon knows its pod's name and not its sandbox: so
// the first ready sandbox of that pod is called [Self] in what the core sees, and Start.Daemon is Self. The daemon's pod uses
// the host's network, so no attachment carries the ID that is lost by this.
package daemon
