package vm

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/internal/splitmix"
)

// Booted says whether this process is a machine's first one: Init is what it has to do.
func Booted() bool { return os.Getpid() == 1 && len(os.Args) > 0 && os.Args[0] == initPath }

// Init is what a machine's first process does: it makes the machine ready, carries out the job, hands out what came of it, and turns the machine
// off. It does not return.
func Init() {
	i := &guest{}
	code, err := i.run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "init:", err) // the console
		if i.channel != nil {
			_ = i.channel.write(recordLack, []byte(err.Error()))
		}
	} else if err := i.channel.write(recordExit, []byte(strconv.Itoa(code))); err != nil {
		fmt.Fprintln(os.Stderr, "init: exit code:", err)
	}
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	select {} // a kernel that cannot: the host sees that nobody is alive
}

// guest is the machine from inside.
type guest struct {
	channel *channel
	errand  errand
	job     *Job
	scene   *Scene
	command int          // process ID of the job's
	visit   chan int     // exit code of the shell of a machine that has paused
	shell   atomic.Int64 // its process ID
}

func (i *guest) run() (code int, err error) {
	if err := mountAll("", []mountPoint{{"/proc", "proc", ""}, {"/sys", "sysfs", ""}, {"/dev", "devtmpfs", "mode=755"}}); err != nil {
		return 0, err
	}
	if i.channel, i.errand.mem, err = openChannel(); err != nil {
		return 0, err
	}
	if i.job, err = i.channel.job(); err != nil {
		return 0, err
	}
	for _, step := range []func() error{i.addEntropy, loadModules, enterRoot, limits, i.network, i.files} {
		if err := step(); err != nil {
			return 0, err
		}
	}
	go i.beat()
	return i.play()
}

type mountPoint struct{ at, kind, options string }

func mountAll(root string, points []mountPoint) error {
	for _, p := range points {
		if err := os.MkdirAll(root+p.at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(p.kind, root+p.at, p.kind, 0, p.options); err != nil && !errors.Is(err, unix.EBUSY) { // devtmpfs may be there
			return fmt.Errorf("mount %s: %w", p.at, err)
		}
	}
	return nil
}

// openChannel finds the PCI device whose memory the host shares: the channel, and what is behind it.
func openChannel() (c *channel, rest []byte, err error) {
	devices, err := filepath.Glob("/sys/bus/pci/devices/*")
	if err != nil {
		return nil, nil, err
	}
	for _, dir := range devices {
		vendor, _ := os.ReadFile(dir + "/vendor")
		device, _ := os.ReadFile(dir + "/device")
		if strings.TrimSpace(string(vendor)) != "0x1af4" || strings.TrimSpace(string(device)) != "0x1110" { // QEMU, ivshmem
			continue
		}
		if err := os.WriteFile(dir+"/enable", []byte("1"), 0); err != nil {
			return nil, nil, fmt.Errorf("enable the memory that is shared with the host: %w", err)
		}
		f, err := os.OpenFile(dir+resource(), os.O_RDWR, 0)
		if err != nil {
			return nil, nil, err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return nil, nil, err
		}
		mem, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return nil, nil, fmt.Errorf("map the memory that is shared with the host: %w", err)
		}
		if len(mem) != memorySize {
			return nil, nil, fmt.Errorf("the memory that is shared with the host has %d bytes, expected %d", len(mem), memorySize)
		}
		return &channel{mem: mem[:channelSize:channelSize]}, mem[channelSize:], nil
	}
	return nil, nil, errors.New("there is no PCI device ivshmem: this process is meant for machines of enilab run --in vm")
}

// resource is the file of the memory: on arm64 the one that is mapped as memory and not as a device's registers, which want aligned accesses.
func resource() string {
	if runtime.GOARCH == "arm64" {
		return "/resource2_wc"
	}
	return "/resource2"
}

// addEntropy makes the kernel's random numbers ready at once, from the seed: else whoever wants some first waits for the kernel to gather some.
func (i *guest) addEntropy() error {
	f, err := os.OpenFile("/dev/random", os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var pool struct {
		bits, size int32
		words      [8]uint64
	}
	pool.bits, pool.size = int32(8*unsafe.Sizeof(pool.words)), int32(unsafe.Sizeof(pool.words))
	state := i.job.Seed
	for k := range pool.words {
		pool.words[k] = splitmix.Next(&state)
	}
	if _, _, no := unix.Syscall(unix.SYS_IOCTL, f.Fd(), unix.RNDADDENTROPY, uintptr(unsafe.Pointer(&pool))); no != 0 {
		return fmt.Errorf("add entropy: %w", no)
	}
	return nil
}

// loadModules loads those that the image has, in the order of their names.
func loadModules() error {
	list, err := os.ReadDir(moduleFolder)
	if err != nil {
		return err
	}
	for _, e := range list {
		f, err := os.Open(filepath.Join(moduleFolder, e.Name()))
		if err != nil {
			return err
		}
		err = unix.FinitModule(int(f.Fd()), "", 0)
		_ = f.Close()
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("load module %s: %w", e.Name(), err)
		}
	}
	return nil
}

// enterRoot leaves the initramfs, out of which pivot_root does not lead: a new root with its folders, moved over it, as switch_root does.
func enterRoot() error {
	const root = "/newroot"
	if err := os.Mkdir(root, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("root", root, "tmpfs", 0, "mode=755"); err != nil {
		return fmt.Errorf("mount the root: %w", err)
	}
	list, err := os.ReadDir("/")
	if err != nil {
		return err
	}
	for _, e := range list {
		from, to := "/"+e.Name(), root+"/"+e.Name()
		switch {
		case from == root || from == moduleFolder || from == initPath || from == "/proc" || from == "/sys" || from == "/dev" || from == "/tmp" || from == "/run" || from == "/root":
		case e.Type()&fs.ModeSymlink != 0:
			target, err := os.Readlink(from)
			if err == nil {
				err = os.Symlink(target, to)
			}
			if err != nil {
				return err
			}
		case e.IsDir():
			if err := os.Mkdir(to, 0o755); err != nil {
				return err
			}
			if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
				return fmt.Errorf("mount %s: %w", from, err)
			}
		}
	}
	err = mountAll(root, []mountPoint{{"/proc", "proc", ""}, {"/sys", "sysfs", ""}, {"/dev", "devtmpfs", "mode=755"}, {"/dev/pts", "devpts", ""}, {"/dev/shm", "tmpfs", "mode=1777"},
		{"/run", "tmpfs", "mode=755"}, {"/tmp", "tmpfs", "mode=1777"}, {"/sys/fs/cgroup", "cgroup2", ""}})
	if err != nil {
		return err
	}
	for _, dir := range []string{"/etc", "/var/tmp", "/root", "/opt", "/usr"} {
		if err := os.MkdirAll(root+dir, 0o755); err != nil {
			return err
		}
	}
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move the root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("enter the root: %w", err)
	}
	return os.Chdir("/")
}

// limits lets the command have as many files as it wants.
func limits() error {
	const files = 1 << 20 // the kernel's fs.nr_open
	return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: files, Max: files})
}

func (i *guest) network() error {
	if err := unix.Sethostname([]byte("enilab")); err != nil {
		return err
	}
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	return nil
}

// files writes the job's.
func (i *guest) files() error {
	for _, f := range i.job.Files {
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(f.Path, f.Data, 0o644); err != nil {
			return err
		}
	}
	if i.job.Out != "" {
		if err := os.MkdirAll(i.job.Out, 0o755); err != nil {
			return err
		}
	}
	return os.MkdirAll(i.job.Dir, 0o755)
}

// now is the machine's time.
func now() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return time.Duration(t.Nano())
}

// beatEvery is how often init says that it is alive: seldom enough to cost nothing in hours that nobody uses.
const beatEvery = time.Second

func (i *guest) beat() {
	for {
		i.channel.note(aliveAt, now())
		time.Sleep(beatEvery)
	}
}

// runGroup is the cgroup of the command and all its children: the jitter follows how long they have the CPU.
const runGroup = "/sys/fs/cgroup/run"

// play runs the command to its end.
func (i *guest) play() (code int, err error) {
	// With any controller the kernel also gives the group the one of perf, which cannot be asked for and is what the jitter needs.
	if err := os.WriteFile(filepath.Join(filepath.Dir(runGroup), "cgroup.subtree_control"), []byte("+pids"), 0); err != nil {
		return 0, err
	}
	if err := os.Mkdir(runGroup, 0o755); err != nil {
		return 0, err
	}
	group, err := unix.Open(runGroup, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	clock, err := newCPUClock(group)
	if err != nil {
		return 0, err
	}
	var from, to [2]*os.File
	for k := range from {
		if from[k], to[k], err = os.Pipe(); err != nil {
			return 0, err
		}
	}
	in, err := i.stdin()
	if err != nil {
		return 0, err
	}
	if i.scene, err = mapScene(sceneFile, os.O_RDWR|os.O_CREATE|os.O_EXCL); err != nil {
		return 0, err
	}
	env := append([]string{"PATH=/opt/enilab/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "TMPDIR=/tmp", sceneVariable + "=" + sceneFile}, i.job.Env...)
	i.channel.note(beganAt, now())
	p, err := os.StartProcess(programPath, append([]string{"enilab"}, i.job.Args...), &os.ProcAttr{Dir: i.job.Dir, Env: env, Files: []*os.File{in, to[0], to[1]},
		Sys: &unix.SysProcAttr{UseCgroupFD: true, CgroupFD: group}})
	if err != nil {
		return 0, fmt.Errorf("start the command: %w", err)
	}
	for _, f := range append(to[:], in) {
		_ = f.Close()
	}
	ends := make(chan error, len(from))
	for k, kind := range []uint32{recordStdout, recordStderr} {
		go func() { ends <- i.copy(kind, from[k]) }()
	}
	i.command, i.visit = p.Pid, make(chan int, 1)
	go clock.jitter(i.job.Seed)
	go i.untilPause()
	if i.job.Trunk {
		go i.untilBranch()
	}
	code = i.reap(p.Pid)
	for _, f := range from { // somebody whom the command has left behind may hold it open
		_ = f.SetReadDeadline(time.Now().Add(time.Second))
	}
	for range from {
		if e := <-ends; e != nil {
			err = errors.Join(err, e)
		}
	}
	return code, errors.Join(err, i.handOut())
}

func (i *guest) stdin() (*os.File, error) {
	const name = "/run/stdin"
	if err := os.WriteFile(name, i.job.Stdin, 0o600); err != nil {
		return nil, err
	}
	return os.Open(name)
}

// copy hands out what the command prints, as it comes.
func (i *guest) copy(kind uint32, f *os.File) error {
	b := make([]byte, 64<<10)
	for {
		n, err := f.Read(b)
		if n > 0 {
			if err := i.channel.write(kind, b[:n]); err != nil {
				return fmt.Errorf("output: %w", err)
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case err != nil:
			return err
		}
	}
}

// sceneFile is the memory that the command and init share.
const sceneFile = "/run/enilab-scene"

// reap waits for a process, and for every orphan that ends meanwhile.
func (i *guest) reap(pid int) int {
	for {
		var s unix.WaitStatus
		got, err := unix.Wait4(-1, &s, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return -1
		case got == int(i.shell.Load()):
			i.visit <- codeOf(s)
		case got != pid:
		default:
			return codeOf(s)
		}
	}
}

// codeOf is an exit code as shells say it.
func codeOf(s unix.WaitStatus) int {
	if s.Signaled() {
		return 128 + int(s.Signal())
	}
	return s.ExitStatus()
}

// handOut hands out the files that the command has left.
func (i *guest) handOut() error {
	if i.job.Out == "" {
		return nil
	}
	return i.handOutAs("", i.job.Out)
}

// handOutAs hands out the files of a folder, as those of another one.
func (i *guest) handOutAs(as, folder string) error {
	return filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		inside, err := filepath.Rel(folder, name)
		if err != nil {
			return err
		}
		inside = filepath.Join(as, inside)
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := i.channel.write(recordFile, []byte(inside)); err != nil {
			return fmt.Errorf("%s: %w", inside, err)
		}
		if len(data) == 0 {
			return nil
		}
		if err := i.channel.write(recordData, data); err != nil {
			return fmt.Errorf("%s, %d bytes: %w", inside, len(data), err)
		}
		return nil
	})
}
