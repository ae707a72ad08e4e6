//go:build !linux

package agent

func lacking() string { return "it needs Linux" }
