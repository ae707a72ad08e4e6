package node

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// maxFrame bounds one message, in bytes. An observation of 250 pods is below 1 MiB; what ReadFile and Exec bring is cut by maxBytes.
const maxFrame = 64 << 20

// request asks the helper for something.
type request struct {
	ID     uint64
	Method string
	Args   json.RawMessage `json:",omitempty"`
}

// message is what the helper sends: an answer (ID is the request's) or an event (ID is 0).
type message struct {
	ID    uint64          `json:",omitempty"`
	Error string          `json:",omitempty"`
	Body  json.RawMessage `json:",omitempty"`
	Event *Event          `json:",omitempty"`
}

// What the methods take, where one value is not enough.
type (
	runArgs struct {
		Op  uint64
		Run Run
	}
	gcArgs struct {
		Valid  []Attachment
		Absent bool
	}
	addressArgs struct {
		Name    string
		Address netip.Prefix
		Gateway netip.Addr
	}
	fileArgs struct {
		Path string
		Data []byte
	}
	linkArgs struct{ Path, Target string }
	execArgs struct {
		Process
		Timeout time.Duration
	}
	askArgs struct {
		From    uint64
		To      netip.AddrPort
		Timeout time.Duration
	}
	signalArgs struct{ Signal syscall.Signal }
)

// And what they give, likewise.
type (
	ended struct {
		Code int
		Text string
	}
	output struct {
		Code int
		Data []byte
	}
	answer struct {
		Text string
		Took time.Duration
	}
)

// frames is a stream of length-prefixed JSON. Writes may come from several goroutines, reads from one.
type frames struct {
	stream io.ReadWriteCloser
	mu     sync.Mutex // one frame at a time
}

func (f *frames) write(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(body) > maxFrame {
		return fmt.Errorf("message has %d bytes, at most %d fit", len(body), maxFrame)
	}
	frame := append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body))), body...)
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err = f.stream.Write(frame)
	return err
}

func (f *frames) read(v any) error {
	var head [4]byte
	if _, err := io.ReadFull(f.stream, head[:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxFrame {
		return fmt.Errorf("message announces %d bytes, at most %d are allowed", size, maxFrame)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(f.stream, body); err != nil {
		return err
	}
	return json.Unmarshal(body, v)
}
