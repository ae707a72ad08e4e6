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
// # What is left behind
//
// Nothing: image, job and output are memory files without a name, and QEMU dies with the thread that waits for it.
package vm
