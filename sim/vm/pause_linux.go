package vm

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// nodeGroup is where everybody of the laboratory is when the machine pauses, but the laboratory itself.
const nodeGroup = runGroup + "/nodes"

// pausePatience is how long the laboratory may take to come to rest, and to write down what it knows, in the machine's time.
const pausePatience = 30 * time.Second

// netnsFolder is where ip(8) looks for named network namespaces.
const netnsFolder = "/run/netns"

// pauseLook is how often init sees how far the scenario is from the instant at which it pauses.
const pauseLook = time.Second

// untilPause pauses the machine at an instant of the scenario, if somebody wants that. It looks in every run, and only the last look before that instant
// is at another time: until then such a run is the one that nobody pauses.
func (i *guest) untilPause() {
	for {
		left := pauseLook
		if zero := i.scene.get(zeroAt); zero != 0 {
			left = i.channel.noted(pauseAt) - (now() - time.Duration(zero))
		}
		if left <= 0 {
			i.pause()
		}
		pause(min(left, pauseLook))
	}
}

// pause ends the run for good and gives somebody a shell. It does not return. Its thread is the jitter's, which takes the CPU from everybody else
// whenever it wants it.
func (i *guest) pause() {
	err := i.stand()
	if err == nil {
		err = i.host()
	}
	if err == nil && i.job.Out != "" {
		err = errors.Join(i.handOut(), i.handOutAs(filepath.Base(PauseFolder), PauseFolder))
	}
	if err != nil {
		_ = i.channel.write(recordLack, []byte("pause: "+err.Error()))
	} else {
		_ = i.channel.write(recordExit, []byte("0"))
	}
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	select {}
}

// stand lets the laboratory come to rest, freezes everybody else, lets it tell, and freezes it too.
func (i *guest) stand() error {
	if err := unix.Kill(i.command, unix.SIGUSR1); err != nil {
		return fmt.Errorf("tell the laboratory that it is to stand still: %w", err)
	}
	if !i.await(restsAt) {
		return fmt.Errorf("the laboratory has not come to rest within %v: expected that it ends what it does; try a later instant", pausePatience)
	}
	if err := i.freezeNodes(); err != nil {
		return err
	}
	i.scene.set(frozenAt, 1)
	if !i.await(toldAt) {
		return fmt.Errorf("the laboratory has not written down within %v what it knows", pausePatience)
	}
	return freeze(runGroup)
}

// await waits for a word of the scene.
func (i *guest) await(at int) bool {
	for end := now() + pausePatience; i.scene.get(at) == 0; pause(sceneLook) {
		if now() > end {
			return false
		}
	}
	return true
}

// freezeNodes freezes all of the command's processes but itself. The laboratory's own may start none meanwhile: it waits.
func (i *guest) freezeNodes() error {
	if err := os.Mkdir(nodeGroup, 0o755); err != nil {
		return err
	}
	for moved := true; moved; { // whoever has been started while this looked is found the next time
		moved = false
		list, err := members(runGroup)
		if err != nil {
			return err
		}
		for _, pid := range list {
			if pid == i.command {
				continue
			}
			err := os.WriteFile(nodeGroup+"/cgroup.procs", []byte(strconv.Itoa(pid)), 0)
			if err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("freeze process %d: %w", pid, err)
			}
			moved = moved || err == nil
		}
	}
	return freeze(nodeGroup)
}

func members(group string) (list []int, err error) {
	data, err := os.ReadFile(group + "/cgroup.procs")
	for _, f := range strings.Fields(string(data)) {
		pid, e := strconv.Atoi(f)
		err = errors.Join(err, e)
		list = append(list, pid)
	}
	return list, err
}

// freeze stops all processes of a cgroup, and waits until they stand.
func freeze(group string) error {
	if err := os.WriteFile(group+"/cgroup.freeze", []byte("1"), 0); err != nil {
		return fmt.Errorf("freeze %s: %w", group, err)
	}
	for end := now() + pausePatience; now() < end; pause(sceneLook) {
		data, err := os.ReadFile(group + "/cgroup.events")
		if err != nil {
			return err
		}
		if strings.Contains(string(data), "frozen 1") {
			return nil
		}
	}
	return fmt.Errorf("freeze %s: its processes do not stand after %v", group, pausePatience)
}

// host makes the machine ready for somebody to look around, and waits until he leaves.
func (i *guest) host() error {
	o, err := i.errand.order()
	if err != nil {
		return err
	}
	if err := unpackTar("/", i.errand.tools()); err != nil {
		return fmt.Errorf("unpack the tools: %w", err)
	}
	p, err := namePlaces()
	if err != nil {
		return err
	}
	if err := i.channel.write(recordStderr, []byte(p.help(i.job.Out))); err != nil {
		return err
	}
	i.errand.set(pausedAt, 1)
	v := &visitor{guest: i, order: o}
	return v.run()
}

// namePlaces gives the laboratory's namespaces the names by which ip(8) knows them.
func namePlaces() (*Places, error) {
	p := &Places{}
	data, err := os.ReadFile(filepath.Join(PauseFolder, placesName))
	if err == nil {
		err = json.Unmarshal(data, p)
	}
	if err != nil {
		return nil, fmt.Errorf("what the laboratory says of its namespaces: %w", err)
	}
	if err := os.MkdirAll(netnsFolder, 0o755); err != nil {
		return nil, err
	}
	p.List = slices.DeleteFunc(p.List, func(x Place) bool { // of a pod's that only a process of it holds there is no path
		_, err := os.Stat(x.Netns)
		return err != nil
	})
	for _, x := range p.List {
		name := filepath.Join(netnsFolder, x.Name)
		if err := os.WriteFile(name, nil, 0o444); err != nil {
			return nil, err
		}
		if err := unix.Mount(x.Netns, name, "", unix.MS_BIND, ""); err != nil {
			return nil, fmt.Errorf("name the namespace %s: %w", x.Netns, err)
		}
	}
	return p, nil
}

// help is what somebody is told who comes in. out is the folder of --out, if there is one.
func (p *Places) help(out string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s. Everything stands still, for good.\nnetwork namespaces:\n", p.Title)
	width := 0
	for _, x := range p.List {
		width = max(width, len(x.Name))
	}
	for _, x := range p.List {
		fmt.Fprintf(&b, "  %-*s  %s\n", width, x.Name, x.About)
	}
	b.WriteString(`look:
  nsenter --net=/run/netns/node-1 ip rule                in a network namespace; with iproute2's ip also: ip netns exec node-1 ss -tanp
  enilab netns exec node-1 -- ls /run/aws-node           in a node with its files and processes; router is one too
  cat /pause/report.txt /pause/timeline.txt              the report so far, and all that has happened
  cat /pause/ec2.json /pause/pods.json                   EC2's truth, and the pods'
`)
	if out != "" {
		fmt.Fprintf(&b, "  %-54s EC2's calls and the packets so far\n", "find "+out)
	}
	b.WriteString(`leave: exit, or Control-D. The same seed gets here again.
`)
	return b.String()
}

// visitor is the shell of a machine that has paused.
type visitor struct {
	*guest
	order *order
}

// shells are those that are looked for, the first that is there.
func (o *order) shells() []string {
	if o.Terminal {
		return []string{"/bin/bash", "/usr/bin/bash", "/bin/sh", "/usr/bin/sh"}
	}
	return []string{"/bin/sh", "/usr/bin/sh"}
}

func (v *visitor) run() error {
	shells := v.order.shells()
	k := slices.IndexFunc(shells, func(s string) bool { _, err := os.Stat(s); return err == nil })
	if k < 0 {
		return errors.New("the computer has no sh that could be put into the machine")
	}
	cmd := exec.Command(shells[k])
	cmd.Dir = PauseFolder
	cmd.Env = []string{"PATH=/opt/enilab/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "TMPDIR=/tmp", "TERM=" + v.order.Term, "PS1=paused:\\w# "}
	if v.order.Terminal {
		return v.interactive(cmd)
	}
	return v.scripted(cmd)
}

// scripted lets the shell carry out commands that are all there.
func (v *visitor) scripted(cmd *exec.Cmd) error {
	const name = "/run/commands"
	if err := os.WriteFile(name, v.errand.input(0), 0o600); err != nil {
		return err
	}
	in, err := os.Open(name)
	if err != nil {
		return err
	}
	cmd.Stdin = in
	var from, to [2]*os.File
	for k := range from {
		if from[k], to[k], err = os.Pipe(); err != nil {
			return err
		}
	}
	cmd.Stdout, cmd.Stderr = to[0], to[1]
	if err := v.start(cmd); err != nil {
		return err
	}
	ends := make(chan error, len(from))
	for k, kind := range []uint32{recordStdout, recordStderr} {
		_ = to[k].Close()
		go func() { ends <- v.copy(kind, from[k]) }()
	}
	<-v.visit
	for _, f := range from { // somebody whom the shell has left behind may hold it open
		_ = f.SetReadDeadline(time.Now().Add(time.Second))
	}
	return errors.Join(<-ends, <-ends)
}

// start starts the shell, whose end reap tells.
func (v *visitor) start(cmd *exec.Cmd) error {
	err := cmd.Start()
	if err != nil {
		return fmt.Errorf("start the shell: %w", err)
	}
	v.shell.Store(int64(cmd.Process.Pid))
	return nil
}

// typeLook is how often is looked for what was typed, and waitLooks how often in a row somebody has to wait for it before the machine's time stands.
const (
	typeLook  = time.Millisecond
	waitLooks = 3
)

// interactive lets somebody type. While a program waits for that, time stands: the machine says so, and does nothing but look for what is typed,
// until the host stops it altogether.
func (v *visitor) interactive(cmd *exec.Cmd) error {
	master, slave, err := openTerminal(v.order.Rows, v.order.Cols)
	if err != nil {
		return fmt.Errorf("make a terminal: %w", err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	if err := v.start(cmd); err != nil {
		return err
	}
	_ = slave.Close()
	go func() {
		b := make([]byte, 64<<10)
		for {
			n, err := master.Read(b)
			if n > 0 {
				_ = v.channel.write(recordStdout, b[:n])
			}
			if err != nil {
				return // nobody has the terminal open any more
			}
		}
	}()
	for taken, waits := 0, 0; ; pause(typeLook) {
		select {
		case <-v.visit:
			pause(10 * typeLook) // for its last words
			return nil
		default:
		}
		if typed := v.errand.input(taken); len(typed) > 0 {
			n, err := master.Write(typed)
			if err != nil {
				return err
			}
			taken, waits = taken+n, 0
			continue
		}
		if waits++; !waitsForTyping(master) {
			waits = 0
		}
		if waits < waitLooks {
			continue
		}
		v.errand.set(asksAt, uint64(1+taken))
		for v.errand.get(givenAt) == uint64(taken) {
		}
		v.errand.set(asksAt, 0)
		waits = 0
	}
}

func openTerminal(rows, cols uint16) (master, slave *os.File, err error) {
	fd, err := unix.Open("/dev/pts/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	master = os.NewFile(uintptr(fd), "terminal")
	if err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: cols})
	}
	var n int
	if err == nil {
		n, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
	}
	if err == nil {
		slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		_ = master.Close()
	}
	return master, slave, err
}

// waitsForTyping says whether all of what a terminal shows has been read, and its foreground does nothing but wait for somebody to type.
func waitsForTyping(master *os.File) bool {
	if n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCINQ); err != nil || n > 0 {
		return false
	}
	front, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPGRP)
	if err != nil {
		return false
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(front) + "/syscall")
	if err != nil {
		return false
	}
	f := strings.Fields(string(text))
	if len(f) < 4 { // it runs
		return false
	}
	number, err := strconv.Atoi(f[0])
	if err != nil {
		return false
	}
	at, known := waiting()[number]
	return known && (at == 0 || f[at] == "0x0" || strings.HasSuffix(f[at], "ffffffff"))
}

// waiting are system calls that wait for input, and which of their arguments says for how long: 0 is none.
func waiting() map[int]int {
	out := map[int]int{unix.SYS_READ: 0, unix.SYS_PPOLL: 3, unix.SYS_PSELECT6: 5}
	if runtime.GOARCH == "amd64" { // arm64 has none of these
		const poll, sel = 7, 23
		out[poll], out[sel] = 3, 5
	}
	return out
}
