// Package vm plays a command of enilab in a machine of its own: a stock QEMU, without KVM, disk or network, whose time is counted in
// instructions. The same kernel, files, command and seed give the same bytes, whatever else the computer does, and no privilege is needed.
//
//	host                                              guest
//	enilab ── Machine.Run                             /init is enilab too (Init): modules, mounts, then the command
//	   initramfs (Image): binaries, modules ────────→ /
//	   Job: arguments, scenario files, seed ────────→ ┐
//	   stdout, stderr, files, exit code ←──────────── ┘ shared memory (a PCI device's, package-private format: channel)
//	   console text ←──────────────────────────────── first serial port
//
// A Laboratory is a machine that has what world netns needs: ipamd and aws-cni beside enilab, systems under test, and
// the tools of this computer that they execute. It says before it starts what is missing. The commands run, swarm and
// gate play in it.
//
// # Why it repeats
//
// One CPU executes instructions one after another and a clock that counts them (-icount), which leaps when nobody has anything to do
// (sleep=off). What goes in is there before the first instruction; what comes out leaves by stores to memory and to a serial port that is a
// file, which never make the guest wait or tell it anything. No device completes by the host's time: there is no disk, no network, no entropy
// device, and the real-time clock is the guest's own. CPU instructions for random numbers are taken away, the kernel trusts no other source
// of them than the seed, and the seed is a word of its command line.
//
// # Which interleaving
//
// The seed is the kernel's entropy, and with it that of every process: hash seeds, the runtime's choices, initial sequence numbers. It also
// draws the instants, of the command's CPU time, at which Init takes the CPU from everybody for up to a millisecond (jitter), so that other seeds meet
// other interleavings, and each seed its own again.
//
// # Pausing
//
// Machine.Pause stops a run for good at an instant of its scenario. Init looks once a second, in every run with the same instructions, and
// only the last look before the instant is at another time: until then a run which is paused is the one that is not. Then the laboratory comes to rest between two things that it does,
// everybody else is frozen (cgroup), it writes down what it knows, and is frozen too. The shell, its commands and its tools come through memory of
// the host's that the machine has not looked at before (errand). While a program waits for somebody to type, the host stops the emulator: time stands.
//
// # Branching
//
// Machine.Trunk stops a run where several go on from it, as the plays of a gate do that begin with the same version. The
// machine's memory is a file, which each branch maps for itself and which stays as it is; what its devices hold, 13 KB,
// is handed to each. That takes a third of a second. The machine carries out instructions that look at nothing from
// outside while it is stopped, so at which of them it stands makes no difference, and neither does how many branches
// there are: a branch is always played from a trunk, also when it is the only one.
//
// QEMU's own snapshots do not do: a migration ends with a failed assertion in a machine whose events are recorded (see
// arguments), and savevm needs a disk and writes all of the memory to it.
//
// # What is left behind
//
// Nothing: image, job and output are memory files without a name, and QEMU dies with the thread that waits for it.
package vm
