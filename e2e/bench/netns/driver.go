package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"sync"
	"time"
)

// job is what the driver, a process of the node, does: the batches one after the other.
type job struct {
	Plugins map[string]contender
	Batches []batch
	Pause   time.Duration // between batches
}

// contender is a plugin and its configuration.
type contender struct {
	Path string
	Conf json.RawMessage
}

// batch is plugins that are started at once.
type batch struct {
	What string // the series that its times belong to; empty: nobody asks
	Runs []run
}

// run is one run of a plugin.
type run struct {
	Plugin, Verb string
	ID           string `json:",omitempty"` // of the container
	Netns, Name  string `json:",omitempty"` // Name is the pod's
}

// outcome is how a run ended.
type outcome struct {
	What  string `json:",omitempty"`
	Took  time.Duration
	Error string `json:",omitempty"`
}

const cniPath = "/opt/cni/bin"

// drive does the job in a file of the node, and prints an outcome for each run, in their order.
func drive(path string, out io.Writer) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var j job
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	debug.SetGCPercent(-1) // what is measured is the plugin
	var outcomes []outcome
	for i := range j.Batches {
		if i > 0 {
			time.Sleep(j.Pause)
		}
		outcomes = append(outcomes, j.Batches[i].drive(j.Plugins)...)
	}
	return json.NewEncoder(out).Encode(outcomes)
}

// drive starts all runs of a batch at once and waits for them.
func (b *batch) drive(plugins map[string]contender) []outcome {
	outcomes := make([]outcome, len(b.Runs))
	start := make(chan struct{})
	var wait sync.WaitGroup
	for i := range b.Runs {
		cmd, printed := b.Runs[i].command(plugins)
		o := &outcomes[i]
		wait.Go(func() {
			<-start
			began := time.Now()
			err := cmd.Run()
			o.Took, o.What = time.Since(began), b.What
			if err != nil {
				o.Error = fmt.Sprintf("%v: %s", err, printed)
			}
		})
	}
	close(start)
	wait.Wait()
	return outcomes
}

// command is how a container runtime runs a plugin (CNI specification 1.1.0, section 2).
func (r *run) command(plugins map[string]contender) (*exec.Cmd, *bytes.Buffer) {
	p := plugins[r.Plugin]
	printed := &bytes.Buffer{}
	cmd := &exec.Cmd{Path: p.Path, Args: []string{p.Path}, Dir: "/", Stdin: bytes.NewReader(p.Conf), Stdout: printed, Stderr: printed}
	cmd.Env = []string{"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "CNI_COMMAND=" + r.Verb, "CNI_CONTAINERID=" + r.ID, "CNI_NETNS=" + r.Netns, "CNI_IFNAME=eth0",
		"CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=" + r.Name + ";K8S_POD_INFRA_CONTAINER_ID=" + r.ID, "CNI_PATH=" + cniPath}
	return cmd, printed
}
