package netns

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/enilab/enilab/sim/netns/node"
	"github.com/enilab/enilab/sim/vpc"
	"github.com/enilab/enilab/systems"
)

const (
	// servingPause is the pause between two requests to a daemon that starts.
	servingPause = 100 * time.Millisecond
	// servingPatience is how long one request may take.
	servingPatience = 2 * time.Second
)

// awaitServing asks a daemon until it serves, and returns whether it does. The end of ctx ends the wait: the daemon
// exited.
func awaitServing(ctx context.Context, box *node.Node, s *systems.Serves) bool {
	return await(ctx, func() bool { return asked(ctx, box, s) == nil })
}

// configured waits until the configuration is there that an entrypoint writes once the daemon serves: until then a node takes no pods.
func configured(ctx context.Context, box *node.Node, s *systems.System) bool {
	return await(ctx, func() bool {
		_, err := os.Stat(box.Root() + systems.ConfigFolder + "/" + s.Conflist.Name)
		return err == nil
	})
}

// await returns true once something holds, and false when ctx ends before.
func await(ctx context.Context, holds func() bool) bool {
	pause := time.NewTicker(servingPause)
	defer pause.Stop()
	for ctx.Err() == nil {
		if holds() {
			return true
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
	}
	return false
}

// asked is nil when the daemon's answer is good.
func asked(ctx context.Context, box *node.Node, s *systems.Serves) error {
	ctx, cancel := context.WithTimeout(ctx, slowed(servingPatience))
	defer cancel()
	switch {
	case s.HTTP != "":
		return askedHTTP(ctx, box, s.HTTP)
	case s.GRPC:
		return askedGRPC(ctx, box, s)
	}
	c, err := dial(ctx, box, s)
	if err == nil {
		err = c.Close()
	}
	return err
}

// dial connects from inside the node.
func dial(ctx context.Context, box *node.Node, s *systems.Serves) (c net.Conn, err error) {
	var d net.Dialer
	if s.Unix != "" {
		return d.DialContext(ctx, "unix", box.Root()+s.Unix)
	}
	return dialTCP(ctx, box, s.TCP)
}

func dialTCP(ctx context.Context, box *node.Node, addr string) (c net.Conn, err error) {
	d := net.Dialer{FallbackDelay: -1} // no goroutine of its own, which would be in another namespace
	e := vpc.Do(box.Netns(), func() error { c, err = d.DialContext(ctx, "tcp4", addr); return nil })
	return c, errors.Join(e, err)
}

func askedHTTP(ctx context.Context, box *node.Node, to string) error {
	u, err := url.Parse(to)
	if err != nil {
		return err
	}
	t := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
		return dialTCP(ctx, box, addr)
	}}
	defer t.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	answer, err := t.RoundTrip(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}

func askedGRPC(ctx context.Context, box *node.Node, s *systems.Serves) error {
	c, err := grpc.NewClient("passthrough:///daemon", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx, box, s) }))
	if err != nil {
		return err
	}
	defer c.Close()
	answer, err := grpc_health_v1.NewHealthClient(c).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	if err != nil {
		return err
	}
	if answer.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		return errors.New(answer.Status.String())
	}
	return nil
}
