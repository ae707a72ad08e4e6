package vm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Where a machine has what it is made of.
const (
	initPath     = "/init"
	programPath  = Programs + "/enilab"
	moduleFolder = "/modules"
)

// Programs is the folder of enilab and its neighbours in a machine.
const Programs = "/opt/enilab/bin"

// emulators are the programs that play a machine, by the architecture as Go says it.
func emulators() map[string]string {
	return map[string]string{"amd64": "qemu-system-x86_64", "arm64": "qemu-system-aarch64"}
}

// memory is a machine's, in MiB. The kernel sizes its tables by it, so it is the same everywhere.
const memory = 2048

// files are what the emulator opens: paths.
type files struct{ kernel, image, channel, console string }

// Where a machine that branches has its memory, the device's state when it branches, and the emulator's control socket:
// the numbers of files that the emulator is handed.
const (
	memoryFD = 6 + iota
	stateFD
	controlFD
)

// branching are the emulator's further arguments for a machine whose memory is a file. The trunk writes to that file and
// is controlled from outside. A branch (from is true) reads it, keeps what it writes to itself, and begins with the
// state of the trunk's devices, in which the memory is left out.
func branching(arguments []string, from bool) []string {
	share := "on"
	more := []string{"-chardev", fmt.Sprintf("socket,id=control,fd=%d", controlFD), "-mon", "chardev=control,mode=control"}
	if from {
		share = "off"
		more = []string{"-global", "migration.send-configuration=off", "-incoming", fmt.Sprintf("fd:%d", stateFD)}
	}
	out := slices.Clone(arguments)
	out[slices.Index(out, "-machine")+1] += ",memory-backend=ram"
	out = append(out, "-object", fmt.Sprintf("memory-backend-file,id=ram,mem-path=/proc/self/fd/%d,size=%dM,share=%s", memoryFD, memory, share))
	return append(out, more...)
}

// arguments is the emulator's command line. Whatever it says by default that is the host's or completes by the host's time is taken away.
//
// rr=record is there for its lock alone, and what it records is thrown away: without it QEMU's main loop may look at a CPU that has just
// halted and has not yet added up its instructions, and leap from an instant that is some microseconds old. On an idle computer that happens in
// one run of five, on a busy one in each.
//
// Without erms kernel and Go runtime copy and clear memory with plain stores and not by "rep movsb", which the emulator carries out byte by
// byte: that alone was a seventh of what a run took.
func arguments(arch string, f files, channel int64, words string) []string {
	machine, cpu, console := "pc,hpet=off", "max,-rdrand,-rdseed,-erms", "ttyS0"
	if arch == "arm64" {
		machine, cpu, console = "virt,dtb-randomness=off", "cortex-a57", "ttyAMA0" // it has no instruction for random numbers
	}
	return []string{
		"-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-monitor", "none", "-parallel", "none", "-nic", "none",
		"-machine", machine, "-cpu", cpu, "-smp", "1", "-m", strconv.Itoa(memory),
		"-accel", "tcg", "-icount", "shift=1,sleep=off,rr=record,rrfile=/dev/null", // 2 ns an instruction
		"-rtc", "base=2026-01-01,clock=vm",
		"-seed", "1", // what QEMU itself draws, such as the entropy that it hands to kernels
		"-serial", "file:" + f.console,
		"-object", fmt.Sprintf("memory-backend-file,id=channel,mem-path=%s,size=%d,share=on", f.channel, channel),
		"-device", "ivshmem-plain,memdev=channel,master=on", // master: its state can be saved
		"-kernel", f.kernel, "-initrd", f.image,
		"-append", kernelLine(console, words),
	}
}

// kernelLine is the kernel's command line. It ends the kernel's own work that comes back every second or more often and is of no use here: each
// time ends a leap, which costs the host much more than the few instructions that are carried out. words are what
// differs from seed to seed: the kernel mixes all of it into its entropy.
func kernelLine(console, words string) string {
	return strings.Join([]string{"console=" + console, "rdinit=" + initPath, "panic=-1", "oops=panic", "loglevel=5", "nokaslr", "mitigations=off",
		"random.trust_cpu=off", "random.trust_bootloader=off", "tsc=reliable", "8250.nr_uarts=1", "net.ifnames=0", "cryptomgr.notests",
		"nowatchdog", "sysctl.vm.compaction_proactiveness=0", "sysctl.vm.stat_interval=600", words}, " ")
}
