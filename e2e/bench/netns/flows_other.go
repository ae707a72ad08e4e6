//go:build !linux

package main

import "errors"

func (m *machine) enterFlows(int) (int, error) { return 0, errors.ErrUnsupported }
