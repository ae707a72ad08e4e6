//go:build !linux

package daemon

import (
	"errors"
	"os"
)

func lock(string) (*os.File, error) { return nil, errors.New("lock the node: ipamd needs Linux") }

func bootID() string { return "" }
