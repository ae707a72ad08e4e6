package vm

import (
	"fmt"
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
		"-device", "ivshmem-plain,memdev=channel",
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
