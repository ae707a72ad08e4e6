package daemon

import (
	"errors"
	"io"
	"log/slog"
	"sync"

	"github.com/enilab/enilab/impl/ipam"
)

func slogTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// gatedStore stands before RunStore's file: it can hold Commits up, fail them, and counts.
type gatedStore struct {
	Store
	mu     sync.Mutex
	broken bool
	sizes  []int // of batches
	gate   chan struct{}
}

// before is Parts.Store.
func (s *gatedStore) before(of Store) Store {
	if f, ok := of.(*file); !ok || f.kind != ipam.RunStore {
		return of
	}
	s.Store = of
	return s
}

func (s *gatedStore) fail(yes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = yes
}

func (s *gatedStore) Commit(saves []*ipam.Save) error {
	s.mu.Lock()
	s.sizes = append(s.sizes, len(saves))
	broken, gate := s.broken, s.gate
	s.mu.Unlock()
	if gate != nil {
		<-gate
	}
	if broken {
		return errors.New("the disk is full")
	}
	return s.Store.Commit(saves)
}
