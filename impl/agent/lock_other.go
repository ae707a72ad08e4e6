//go:build !linux

package agent

import (
	"errors"
	"os"
)

func lock(string) (*os.File, error) { return nil, errors.New("lock the node: ipamd needs Linux") }

func bootID() string { return "" }
