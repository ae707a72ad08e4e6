package daemon

import "context"

// Run is the daemon's life, until ctx ends (SIGTERM). An error says what c lacks; a node that cannot be had is no error but a wait.
func Run(ctx context.Context, c Config) error {
	d, err := newDaemon(c)
	if err != nil {
		return err
	}
	return d.run(ctx)
}
