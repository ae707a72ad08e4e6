// Package kind is world "kind": scenarios on a cluster (sim/kind/cluster), where enilab's daemon and plugin run under a
// real kubelet, a real containerd and a real API server.
//
// A World's time is ahead of CLOCK_BOOTTIME, for models and daemons alike: its clock leaps over what only they would
// wait for (clock.go), and runs as real time does while kubelet, the runtime or the API server has something to do.
//
// A World is made of parts, each with its state and its file: members (the nodes), a journal (what several goroutines
// write, and the lock), an observer (what EC2 and the witness are told of members), a ledger (whose calls count), pace
// (whether the clock may leap), daemons (the DaemonSet), controller and pods (workloads).
package kind
