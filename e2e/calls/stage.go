package calls

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Bounds of what a life waits for. Kubelet tries again after 10 to 15 s, and removes dead sandboxes once a minute.
const (
	soon    = 2 * time.Minute
	removal = 4 * time.Minute
)

// stage is where a life is lived: a namespace of its own.
type stage struct {
	*Bench
	space string
	began time.Time // the recordings may hold older lives of the same name
}

// Record lives a life and gives its recording: the calls for its own pods, and those for no pod (STATUS) meanwhile.
func Record(ctx context.Context, b *Bench, l Life) (recorded []byte, err error) {
	s := &stage{b, "life-" + l.Name, time.Now()}
	if err := s.open(ctx); err != nil {
		return nil, fmt.Errorf("life %s: %w", l.Name, err)
	}
	defer func() {
		err = errors.Join(err, s.close(context.WithoutCancel(ctx)))
	}()
	if err := l.run(ctx, s); err != nil {
		return nil, fmt.Errorf("life %s: %w\nwhat was called so far:\n%s", l.Name, err, s.story(context.WithoutCancel(ctx)))
	}
	if err := s.quiet(ctx); err != nil {
		return nil, fmt.Errorf("life %s: %w\nwhat was called so far:\n%s", l.Name, err, s.story(context.WithoutCancel(ctx)))
	}
	raw, err := s.Exec(ctx, nil, "cat", outerDir+"/"+RecordingFile)
	if err != nil {
		return nil, fmt.Errorf("life %s: %w", l.Name, err)
	}
	return Cut([]byte(raw), s.space, s.began), nil
}

func (s *stage) open(ctx context.Context) error {
	if err := s.ask(ctx, "POST", "/api/v1/namespaces", object{"metadata": object{"name": s.space}}, nil); err != nil {
		return fmt.Errorf("namespace %s, which should not be there yet: %w", s.space, err)
	}
	return s.wait(ctx, soon, "the service account of "+s.space, func(ctx context.Context) (bool, error) {
		err := s.ask(ctx, "GET", "/api/v1/namespaces/"+s.space+"/serviceaccounts/default", nil, nil)
		return err == nil, err
	})
}

// close leaves nothing of the life, whatever became of it.
func (s *stage) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, removal)
	defer cancel()
	if err := s.Faults(ctx); err != nil {
		return err
	}
	if err := s.ask(ctx, "DELETE", "/api/v1/namespaces/"+s.space, atOnce, nil); err != nil {
		return err
	}
	return s.gone(ctx, "namespace", "/api/v1/namespaces", s.space)
}

// runs are the calls so far of the life's pods: what the runtime did, or what of it reached the real plugin.
func (s *stage) runs(ctx context.Context, dir string) ([]Call, error) {
	raw, err := s.Exec(ctx, nil, "sh", "-c", "cat "+dir+"/"+RecordingFile+" 2>/dev/null || true")
	if err != nil {
		return nil, err
	}
	// The last line may be one that is being written.
	raw = raw[:strings.LastIndexByte(raw, '\n')+1]
	all, err := Read(bytes.NewReader(Cut([]byte(raw), s.space, s.began)))
	return Of(all, s.space), err
}

func (s *stage) story(ctx context.Context) string {
	runs, err := s.runs(ctx, outerDir)
	if err != nil {
		return err.Error()
	}
	return Text(runs)
}

// called waits until a call has been seen n times for a pod in a recording; ended: not only begun.
func (s *stage) called(ctx context.Context, dir, verb, pod string, n int, ended bool) error {
	what := fmt.Sprintf("%s number %d for %s", verb, n, pod)
	if ended {
		what = "the end of " + what
	}
	return s.wait(ctx, soon, what, func(ctx context.Context) (bool, error) {
		runs, err := s.runs(ctx, dir)
		found := 0
		for i := range runs {
			if r := &runs[i]; r.Verb == verb && r.Pod == pod && (!ended || !r.Killed()) {
				found++
			}
		}
		return found >= n, err
	})
}

// quiet waits until the runtime has forgotten every sandbox of the life, and the last calls have ended.
func (s *stage) quiet(ctx context.Context) error {
	err := s.wait(ctx, removal, "the runtime to forget every sandbox of "+s.space, func(ctx context.Context) (bool, error) {
		runs, err := s.runs(ctx, outerDir)
		if err != nil {
			return false, err
		}
		// Both stores: a sandbox whose ADD has not ended is only in the first, one of containerd 1.x only in the second.
		known, err := s.Exec(ctx, nil, "sh", "-c", "ctr -n k8s.io sandboxes list; ctr -n k8s.io containers list -q")
		if err != nil {
			return false, err
		}
		for _, r := range runs {
			if strings.Contains(known, r.ContainerID) {
				return false, fmt.Errorf("sandbox %.12s of %s is known", r.ContainerID, r.Pod)
			}
		}
		return true, nil
	})
	if err != nil {
		return err
	}
	// What the runtime has killed, and what was killed with it, does not run any more; what nobody waits for may.
	return s.wait(ctx, soon, "the last calls of "+s.space+" to end", func(ctx context.Context) (bool, error) {
		running, err := s.Exec(ctx, nil, "sh", "-c", `for p in /proc/[0-9]*; do tr '\0' '\n' <$p/environ 2>/dev/null | grep -x "CNI_ARGS=.*K8S_POD_NAMESPACE=$0.*" || true; done`, s.space)
		if err == nil && running != "" {
			err = fmt.Errorf("still running: %s", running)
		}
		return err == nil, err
	})
}

// fault is a fault of a pod's calls of the plugin.
func (s *stage) fault(pod, verb string, f Fault) Fault {
	f.Plugin, f.Verb, f.Pod = s.Plugin, verb, s.space+"/"+pod
	return f
}
