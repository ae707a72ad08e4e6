package vm

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// A channel is the memory that a machine shares with its host. The host writes a job there before the machine starts and nothing after; the
// machine only adds records behind what it has written already, and says how far it is. So neither ever waits for the other.
//
//	0   magic
//	8   length of the job
//	16  instant at which init was alive last, in nanoseconds of the machine's time; 0: not yet
//	24  where the next record goes
//	32  instant at which the command began, the same way
//	40  instant of the scenario at which the machine is to pause; never: noPause
//	64  the job, as JSON, then records at multiples of eight
//
// Behind all records are the errand's bytes: what only a machine that has paused looks at (see errand).
//
// A record is its kind (4 bytes), its length (4 bytes), and its bytes.
const (
	channelMagic = "enilabvm"
	jobLengthAt  = 8
	aliveAt      = 16
	writtenAt    = 24
	beganAt      = 32
	pauseAt      = 40
	branchAt     = 48
	jobAt        = 64
	recordHead   = 8
)

// channelSize is what text and files of a machine may have together, and memorySize that and an errand: a power of two, as a PCI device wants. It
// costs what is written.
const (
	channelSize = memorySize - errandSize
	memorySize  = 512 << 20
	errandSize  = 256 << 20
)

// noPause is an instant that no scenario reaches.
const noPause = math.MaxInt64

// textRoom is kept for text and the exit code when files have filled the rest.
const textRoom = 4 << 20

// record kinds.
const (
	recordStdout = 1 + iota
	recordStderr
	recordFile // a path; its data follow
	recordData
	recordExit // the command's exit code, as decimal text: the last record
	recordLack // why there was no command
)

// maxRecord is how many bytes a record has at most.
const maxRecord = 1 << 20

// Job is what a machine is told to do.
type Job struct {
	Args  []string  // of enilab
	Dir   string    // absolute: where it runs
	Env   []string  // NAME=VALUE, beside PATH, HOME and TMPDIR
	Stdin []byte    // what it reads
	Files []JobFile // that it finds
	Out   string    // folder whose files come back when it has ended; empty: none
	Seed  uint64    // of entropy and delays
	Trunk bool      // it branches (Machine.Trunk)
}

// JobFile is a file in the machine.
type JobFile struct {
	Path string // absolute
	Data []byte
}

type channel struct {
	mem []byte
	mu  sync.Mutex // guards at and the memory behind it
	at  int
}

func (c *channel) word(at int) *uint64 { return (*uint64)(unsafe.Pointer(&c.mem[at])) }

// prepare writes a job into new memory.
func (c *channel) prepare(j *Job) error {
	data, err := json.Marshal(j)
	if err != nil {
		return err
	}
	if len(data) > len(c.mem)/4 {
		return fmt.Errorf("arguments and scenarios have %d bytes, and a machine takes at most %d", len(data), len(c.mem)/4)
	}
	copy(c.mem[jobAt:], data)
	binary.LittleEndian.PutUint64(c.mem[jobLengthAt:], uint64(len(data)))
	atomic.StoreUint64(c.word(writtenAt), uint64(c.begin()))
	c.note(pauseAt, noPause)
	copy(c.mem, channelMagic)
	return nil
}

// begin is where the first record is.
func (c *channel) begin() int {
	return align(jobAt + int(binary.LittleEndian.Uint64(c.mem[jobLengthAt:])))
}

func align(n int) int { return (n + 7) &^ 7 }

// job reads what prepare wrote.
func (c *channel) job() (*Job, error) {
	if string(c.mem[:len(channelMagic)]) != channelMagic {
		return nil, errors.New("the memory that is shared with the host holds no job")
	}
	n := binary.LittleEndian.Uint64(c.mem[jobLengthAt:])
	if n > uint64(len(c.mem)-jobAt) {
		return nil, fmt.Errorf("the job has %d bytes, and its memory %d", n, len(c.mem))
	}
	j := &Job{}
	if err := json.Unmarshal(c.mem[jobAt:jobAt+n], j); err != nil {
		return nil, fmt.Errorf("the job: %w", err)
	}
	c.at = c.begin()
	return j, nil
}

var errFull = errors.New("what the machine may hand out is full")

// write adds a record, or several when it is large.
func (c *channel) write(kind uint32, data []byte) error {
	for first := true; first || len(data) > 0; first = false {
		n := min(len(data), maxRecord)
		if err := c.add(kind, data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

func (c *channel) add(kind uint32, data []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	room := len(c.mem) - c.at
	if kind == recordFile || kind == recordData {
		room -= textRoom
	}
	if kind != recordExit {
		room -= 2 * recordHead // for the exit code
	}
	if room < recordHead+len(data) {
		return errFull
	}
	binary.LittleEndian.PutUint32(c.mem[c.at:], kind)
	binary.LittleEndian.PutUint32(c.mem[c.at+4:], uint32(len(data)))
	copy(c.mem[c.at+recordHead:], data)
	c.at = align(c.at + recordHead + len(data))
	atomic.StoreUint64(c.word(writtenAt), uint64(c.at))
	return nil
}

// note writes an instant into one of the first words.
func (c *channel) note(at int, now time.Duration) { atomic.StoreUint64(c.word(at), uint64(now)) }

func (c *channel) noted(at int) time.Duration { return time.Duration(atomic.LoadUint64(c.word(at))) }

// read takes the records that are there and were not read yet.
func (c *channel) read(each func(kind uint32, data []byte) error) error {
	if c.at == 0 {
		c.at = c.begin()
	}
	for written := int(atomic.LoadUint64(c.word(writtenAt))); c.at < written; {
		if written > len(c.mem) {
			return fmt.Errorf("the machine says that it has written %d bytes, and there is room for %d", written, len(c.mem))
		}
		kind, n := binary.LittleEndian.Uint32(c.mem[c.at:]), int(binary.LittleEndian.Uint32(c.mem[c.at+4:]))
		if n > maxRecord || c.at+recordHead+n > written {
			return fmt.Errorf("a record of the machine has %d bytes: its memory is damaged", n)
		}
		if err := each(kind, c.mem[c.at+recordHead:c.at+recordHead+n]); err != nil {
			return err
		}
		c.at = align(c.at + recordHead + n)
	}
	return nil
}
