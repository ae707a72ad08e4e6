package vm

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sceneVariable names the memory that a machine's command shares with init.
const sceneVariable = "ENILAB_SCENE"

// Scene is what a command says to the init of its machine, and hears of it: where its scenario is, so that init can pause it. It is there in every
// run, so that one which is paused is the same until then.
//
//	0   machine's time of the scenario's t=0, 0: none runs
//	8   the laboratory is at rest and waits: 1
//	16  everybody else is frozen: 1
//	24  all is written down: 1
//	32  the run may branch now: 1
//	40  what its branch brings is there: 1
type Scene struct {
	mem    []byte
	wanted chan os.Signal
}

const (
	zeroAt   = 0
	restsAt  = 8
	frozenAt = 16
	toldAt   = 24
	mayAt    = 32
	cameAt   = 40
	sceneLen = 4096
)

func (s *Scene) word(at int) *uint64 { return (*uint64)(unsafe.Pointer(&s.mem[at])) }

func (s *Scene) get(at int) uint64 { return atomic.LoadUint64(s.word(at)) }

func (s *Scene) set(at int, x uint64) { atomic.StoreUint64(s.word(at), x) }

func mapScene(name string, flags int) (*Scene, error) {
	f, err := os.OpenFile(name, flags, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := f.Truncate(sceneLen); err != nil {
		return nil, err
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, sceneLen, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", name, err)
	}
	return &Scene{mem: mem}, nil
}

// OpenScene is the scene of the machine that this process is the command of; nil where it is none's.
func OpenScene() (*Scene, error) {
	name := os.Getenv(sceneVariable)
	if name == "" {
		return nil, nil
	}
	s, err := mapScene(name, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	s.wanted = make(chan os.Signal, 1)
	signal.Notify(s.wanted, unix.SIGUSR1)
	return s, nil
}

// Runs says that a scenario is at an instant now, and not that it ends: Ends does.
func (s *Scene) Runs(at time.Duration) { s.set(zeroAt, uint64(now()-at)) }

// Ends says that nothing runs any more.
func (s *Scene) Ends() { s.set(zeroAt, 0) }

// Wanted has something whenever the machine is to pause.
func (s *Scene) Wanted() <-chan os.Signal { return s.wanted }

// Branches says that the machine may be stopped here, and go on as several (Machine.Trunk). It does not wait.
func (s *Scene) Branches() { s.set(mayAt, 1) }

// Came waits until what the branch brings is in the machine.
func (s *Scene) Came() {
	for s.get(cameAt) == 0 {
		time.Sleep(sceneLook)
	}
}

// sceneLook is how often one of both looks for the other, in the machine's time.
const sceneLook = 100 * time.Microsecond

// Stand stops for good whoever calls it, at rest: everybody else is frozen, then tell writes into PauseFolder what is known and gives the places.
func (s *Scene) Stand(tell func() (*Places, error)) {
	s.set(restsAt, 1)
	for s.get(frozenAt) == 0 {
		time.Sleep(sceneLook)
	}
	if err := s.tell(tell); err != nil {
		fmt.Fprintln(os.Stderr, "what is known of the run could not be written down:", err)
	}
	s.set(toldAt, 1)
	select {}
}

func (*Scene) tell(tell func() (*Places, error)) error {
	if err := os.MkdirAll(PauseFolder, 0o755); err != nil {
		return err
	}
	p, err := tell()
	if p == nil {
		return err
	}
	data, e := json.Marshal(p)
	if e == nil {
		e = os.WriteFile(filepath.Join(PauseFolder, placesName), data, 0o644)
	}
	if err == nil {
		err = e
	}
	return err
}
