//go:build !linux

package daemon

func lacking() string { return "it needs Linux" }
